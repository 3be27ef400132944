package cluster

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"sync"

	"github.com/kwok-dra/kwok-dra/test/cluster/build"
	"github.com/kwok-dra/kwok-dra/test/cluster/internal/filelock"
	"github.com/kwok-dra/kwok-dra/test/cluster/internal/process"
)

// ErrNotFound says that there is no cluster of that name.
var ErrNotFound = errors.New("no such cluster")

// Up starts a cluster that keeps running when this process ends, until Down. It
// needs a name in o, and returns the cluster that is already there if it serves;
// created says whether it is a new one.
func Up(ctx context.Context, o Options) (c *Cluster, created bool, err error) {
	o, home, unlock, err := reserve(ctx, o)
	if err != nil {
		return nil, false, err
	}
	defer unlock()
	if c, err := find(ctx, home); err == nil && c.alive(ctx, output(o)) {
		return c, false, nil
	}
	if ctx.Err() != nil { // it may be alive, nobody has waited long enough
		return nil, false, fmt.Errorf("look for cluster %s: %w", o.Name, context.Cause(ctx))
	}
	// What is there, if anything, did not survive a reboot or the like.
	if err := remove(ctx, home); err != nil {
		return nil, false, err
	}
	if err := os.MkdirAll(home, 0o755); err != nil {
		return nil, false, fmt.Errorf("create directory for cluster: %w", err)
	}
	c, err = start(ctx, o, home)
	if err == nil {
		err = c.writeState()
	}
	if err != nil {
		return nil, false, errors.Join(err, c.Stop())
	}
	c.ports.Unlock()
	return c, true, c.watchdog.dismiss()
}

// Down stops the cluster of that name, and says whether there was one.
func Down(ctx context.Context, name string) (bool, error) {
	_, home, unlock, err := reserve(ctx, Options{Name: name})
	if err != nil {
		return false, err
	}
	defer unlock()
	if _, err := os.Stat(home); errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return true, remove(ctx, home)
}

// Find returns a cluster that Up has started, or ErrNotFound.
func Find(ctx context.Context, name string) (*Cluster, error) {
	home, err := namedHome(name)
	if err != nil {
		return nil, err
	}
	c, err := find(ctx, home)
	if err != nil {
		return nil, fmt.Errorf("find cluster %s: %w", name, err)
	}
	return c, nil
}

// reserve keeps others from starting or stopping the same cluster.
func reserve(ctx context.Context, o Options) (_ Options, home string, unlock func(), err error) {
	if o.Name == "" {
		return o, "", nil, fmt.Errorf("name cluster that stays: %w", errName)
	}
	if o, err = o.complete(); err != nil {
		return o, "", nil, err
	}
	if home, err = namedHome(o.Name); err != nil {
		return o, "", nil, err
	}
	lock, err := filelock.Wait(ctx, home+".lock", func() {
		fmt.Fprintf(output(o), "Waiting for another process that starts or stops cluster %s ...\n", o.Name)
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
	if err := os.WriteFile(c.path("cluster.json"), content, 0o644); err != nil {
		return fmt.Errorf("write state of cluster: %w", err)
	}
	return nil
}

func find(ctx context.Context, home string) (*Cluster, error) {
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
	c.stop = sync.OnceValue(c.remove)
	return c, nil
}

var errNotRunning = errors.New("not running")

// alive says whether the cluster serves. A cluster that runs gets its time to
// answer on a busy machine: it is thrown away otherwise.
func (c *Cluster) alive(ctx context.Context, out io.Writer) bool {
	api, err := c.adminClient()
	if err != nil {
		return false
	}
	ctx, cancel := context.WithTimeout(ctx, componentTimeout)
	defer cancel()
	var told sync.Once
	return process.Until(ctx, "look for cluster "+c.Name(), func() (bool, error) {
		if c.ended(Etcd) || c.ended(APIServer) {
			return false, errNotRunning
		}
		serves := c.serves(ctx, api)
		if !serves {
			told.Do(func() { fmt.Fprintf(out, "Waiting for cluster %s to answer ...\n", c.Name()) })
		}
		return serves, nil
	}) == nil
}
