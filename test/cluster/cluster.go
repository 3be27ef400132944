// Package cluster starts and stops real Kubernetes clusters with kwok's fake
// nodes: etcd, the control plane and kwok as processes on loopback, in a few
// seconds, without root, containers or images. The programs are built from Go
// modules, see package build. Clusters are independent of each other, of the
// user's ~/.kwok and of ~/.kube.
//
// A cluster never outlives the process that started it, however that ends,
// unless it was started by Up.
package cluster

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/kwok-dra/kwok-dra/test/cluster/build"
	"github.com/kwok-dra/kwok-dra/test/cluster/internal/filelock"
	"github.com/kwok-dra/kwok-dra/test/cluster/progress"
)

// A Cluster is a running cluster.
type Cluster struct {
	runner
	options   Options
	programs  *build.Programs
	ports     *filelock.Lock
	sparePort int
	watchdog  *watchdog

	stop func() error
}

// Start starts a cluster and returns when it serves: the API server is ready, a
// Pod could be created in the default namespace, and everything else runs. When
// it fails, nothing is left behind.
func Start(ctx context.Context, o Options) (*Cluster, error) {
	o, err := o.withDefaults()
	if err != nil {
		return nil, err
	}
	home, err := temporaryHome()
	if err != nil {
		return nil, err
	}
	c, err := startCluster(ctx, o, home)
	if err != nil {
		return nil, errors.Join(err, c.Stop())
	}
	return c, nil
}

func temporaryHome() (string, error) {
	home, err := os.MkdirTemp("", "kwok-dra-")
	if err != nil {
		return "", fmt.Errorf("create directory for cluster: %w", err)
	}
	return filepath.Abs(home)
}

// startCluster starts a cluster in the directory home. Also with an error it returns a
// cluster, of which as much runs as could be started, to be stopped by the caller.
func startCluster(ctx context.Context, o Options, home string) (*Cluster, error) {
	c := &Cluster{runner: runner{folder: folder{home, o.Name}}, options: o}
	c.stop = sync.OnceValue(c.removeFolder)
	var err error
	// First of all: a build takes minutes, in which this process may be ended.
	if c.watchdog, err = startWatchdog(home); err != nil {
		return c, err
	}
	c.programs, err = build.Ensure(ctx, build.Options{
		Versions: build.Versions{Kubernetes: o.KubernetesVersion, Kwok: o.KwokVersion},
		Output:   o.Output,
	})
	if err != nil {
		return c, err
	}
	step := progress.Start(outputOf(o), fmt.Sprintf("Starting cluster %s (Kubernetes %s, kwok %s)", o.Name, o.KubernetesVersion, o.KwokVersion))
	began := time.Now()
	err = c.createCluster(ctx, step)
	step.Finish(err)
	if err != nil {
		return c, fmt.Errorf("start cluster %s: %w", o.Name, err)
	}
	return c, AppendTime(StartTime, time.Since(began))
}

func outputOf(o Options) io.Writer {
	if o.Output == nil {
		return io.Discard
	}
	return o.Output
}

// Stop ends all processes of the cluster and removes its files. It returns
// when they are gone. Further calls do nothing and return the same.
func (c *Cluster) Stop() error { return c.stop() }

func (c *Cluster) removeFolder() error {
	ctx, cancel := context.WithTimeout(context.Background(), stopTimeout)
	defer cancel()
	defer c.ports.Unlock()
	err := removeHome(ctx, c.home)
	if c.watchdog == nil {
		return err
	}
	if err != nil {
		// Perhaps the watchdog can still do it.
		return errors.Join(fmt.Errorf("stop cluster %s: %w", c.Name(), err), c.watchdog.cleanUpAndWait())
	}
	return c.watchdog.endWithoutCleanup()
}

// Versions are the versions that the cluster runs.
func (c *Cluster) Versions() build.Versions { return c.programs.Versions }

// SparePort is a port of loopback for a program that cannot choose a free one by itself.
// It was free when Start started the cluster, and no other cluster takes it. So is the next
// one.
func (c *Cluster) SparePort() int { return c.sparePort }

// Binary is the path of one of the built programs, for example kubectl, or ""
// for an unknown name.
func (c *Cluster) Binary(name string) string { return c.programs.Path(name) }

// Kubectl runs kubectl as the cluster's administrator and returns its output.
// An error has what kubectl wrote to stderr.
func (c *Cluster) Kubectl(ctx context.Context, args ...string) (string, error) {
	return c.KubectlInput(ctx, nil, args...)
}

// KubectlInput is Kubectl with a standard input, for "kubectl apply -f -".
func (c *Cluster) KubectlInput(ctx context.Context, in io.Reader, args ...string) (string, error) {
	cmd := c.KubectlCommand(ctx, args...)
	cmd.Stdin = in
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		return stdout.String(), fmt.Errorf("run kubectl %s: %w: %s", strings.Join(args, " "), err, bytes.TrimSpace(stderr.Bytes()))
	}
	return stdout.String(), nil
}

// KubectlCommand is kubectl as the cluster's administrator, not started yet, for
// those who want its output while it runs.
func (c *Cluster) KubectlCommand(ctx context.Context, args ...string) *exec.Cmd {
	// By its path in the directory of the cluster, so that it ends with it.
	cmd := exec.CommandContext(ctx, c.pathOf("bin", "kubectl"), append([]string{"--kubeconfig", c.Kubeconfig()}, args...)...)
	cmd.Env = c.processEnvironment()
	return cmd
}
