package cluster

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"sync"

	"github.com/kwok-dra/kwok-dra/test/cluster/build"
	"github.com/kwok-dra/kwok-dra/test/cluster/internal/filelock"
	"github.com/kwok-dra/kwok-dra/test/cluster/internal/process"
	"github.com/kwok-dra/kwok-dra/test/cluster/progress"
)

// ErrNotFound says that there is no cluster of that name.
var ErrNotFound = errors.New("no such cluster")

// Up starts a cluster that keeps running when this process ends, until Down. It
// needs a name in o, and returns the cluster that is already there; created says
// whether it is a new one. Of a cluster that is there it starts again what has
// ended, as all has after a reboot: what users made in it is never lost.
func Up(ctx context.Context, o Options) (c *Cluster, created bool, err error) {
	o, home, unlock, err := lockCluster(ctx, o)
	if err != nil {
		return nil, false, err
	}
	defer unlock()
	switch c, err := findCluster(ctx, home); {
	case err == nil:
		return c, false, c.resumeCluster(ctx, outputOf(o))
	case !errors.Is(err, ErrNotFound):
		return nil, false, err
	}
	// What is there, if anything, was never complete.
	if err := removeHome(ctx, home); err != nil {
		return nil, false, err
	}
	if err := os.MkdirAll(home, 0o755); err != nil {
		return nil, false, fmt.Errorf("create directory for cluster: %w", err)
	}
	c, err = startCluster(ctx, o, home)
	if err == nil {
		err = c.writeState()
	}
	if err != nil {
		return nil, false, errors.Join(err, c.Stop())
	}
	c.ports.Unlock()
	return c, true, c.watchdog.endWithoutCleanup()
}

// Down stops the cluster of that name, and says whether there was one.
func Down(ctx context.Context, name string) (bool, error) {
	_, home, unlock, err := lockCluster(ctx, Options{Name: name})
	if err != nil {
		return false, err
	}
	defer unlock()
	if _, err := os.Stat(home); errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return true, removeHome(ctx, home)
}

// Find returns a cluster that Up has started, or ErrNotFound.
func Find(ctx context.Context, name string) (*Cluster, error) {
	home, err := namedHome(name)
	if err != nil {
		return nil, err
	}
	c, err := findCluster(ctx, home)
	if err != nil {
		return nil, fmt.Errorf("find cluster %s: %w", name, err)
	}
	return c, nil
}

// lockCluster keeps others from starting or stopping the same cluster.
func lockCluster(ctx context.Context, o Options) (_ Options, home string, unlock func(), err error) {
	if o.Name == "" {
		return o, "", nil, fmt.Errorf("name cluster that stays: %w", errName)
	}
	if o, err = o.withDefaults(); err != nil {
		return o, "", nil, err
	}
	if home, err = namedHome(o.Name); err != nil {
		return o, "", nil, err
	}
	lock, err := filelock.Wait(ctx, home+".lock", func() {
		fmt.Fprintf(outputOf(o), "Waiting for another process that starts or stops cluster %s ...\n", o.Name)
	})
	if err != nil {
		return o, "", nil, err
	}
	return o, home, lock.Unlock, nil
}

func namedHome(name string) (string, error) {
	if !simpleName.MatchString(name) {
		return "", fmt.Errorf("name cluster %q: %w", name, errName)
	}
	cache, err := build.Cache()
	if err != nil {
		return "", err
	}
	return filepath.Join(cache, "clusters", name), nil
}

// state is what a later process has to know of a cluster.
type state struct {
	Name     string
	Versions build.Versions
	Disable  []string
}

func (c *Cluster) writeState() error {
	content, err := json.Marshal(state{Name: c.Name(), Versions: c.Versions(), Disable: c.options.Disable})
	if err != nil {
		return fmt.Errorf("encode state of cluster: %w", err)
	}
	if err := os.WriteFile(c.pathOf("cluster.json"), content, 0o644); err != nil {
		return fmt.Errorf("write state of cluster: %w", err)
	}
	return nil
}

func findCluster(ctx context.Context, home string) (*Cluster, error) {
	content, err := os.ReadFile(filepath.Join(home, "cluster.json"))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, ErrNotFound
	}
	if err != nil {
		return nil, fmt.Errorf("read state of cluster: %w", err)
	}
	var s state
	if err := json.Unmarshal(content, &s); err != nil {
		return nil, fmt.Errorf("read state of cluster: %w", err)
	}
	// They are there, unless somebody has cleared the cache meanwhile.
	programs, err := build.Ensure(ctx, build.Options{Versions: s.Versions})
	if err != nil {
		return nil, err
	}
	c := &Cluster{
		runner:   runner{folder: folder{home, s.Name}},
		options:  Options{Name: s.Name, KubernetesVersion: s.Versions.Kubernetes, KwokVersion: s.Versions.Kwok, Disable: s.Disable},
		programs: programs,
	}
	c.stop = sync.OnceValue(c.removeFolder)
	return c, nil
}

// resumeCluster returns when the cluster serves, and starts what has ended of it.
func (c *Cluster) resumeCluster(ctx context.Context, out io.Writer) error {
	ctx, cancel := context.WithTimeoutCause(ctx, startTimeout, fmt.Errorf("not ready after %s", startTimeout))
	defer cancel()
	pids, err := c.ComponentPIDs()
	if err != nil {
		return err
	}
	api, err := newAdminClient(c)
	if err == nil && c.firstEnded(slices.Collect(maps.Keys(pids))...) == nil && api.canCreatePods(ctx, c.options) {
		return nil
	}
	step := progress.Start(out, "Starting cluster "+c.Name()+" again, with all that is in it")
	err = c.waitReady(ctx)
	step.Finish(err)
	if err != nil {
		return fmt.Errorf("start cluster %s again (removing it helps, but loses what is in it): %w", c.Name(), err)
	}
	return nil
}

// Runs says whether a process belongs to the cluster and runs.
func (c *Cluster) Runs(pid int) bool {
	_, found, err := process.Find(c.home, pid)
	return err == nil && found
}

// Lock lets one process at a time do with a named cluster what takes more than Up
// or Down. It calls waiting once if it has to wait.
func Lock(ctx context.Context, name string, waiting func()) (unlock func(), err error) {
	home, err := namedHome(name)
	if err != nil {
		return nil, err
	}
	lock, err := filelock.Wait(ctx, home+".turn.lock", waiting)
	if err != nil {
		return nil, err
	}
	return lock.Unlock, nil
}
