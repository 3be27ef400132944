package cluster

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"time"

	"github.com/kwok-dra/kwok-dra/test/cluster/build"
	"github.com/kwok-dra/kwok-dra/test/cluster/internal/process"
	"github.com/kwok-dra/kwok-dra/test/cluster/progress"
)

// startTimeout bounds the start of a cluster, which takes four seconds on an
// idle machine, however busy the machine.
const startTimeout = 5 * time.Minute

// createCluster starts everything and waits until it serves.
func (c *Cluster) createCluster(ctx context.Context, step *progress.Step) error {
	ctx, cancel := context.WithTimeoutCause(ctx, startTimeout, fmt.Errorf("not ready after %s", startTimeout))
	defer cancel()
	if err := c.writeInputs(); err != nil {
		return err
	}
	step.State("waiting for the API server")
	if err := c.runKwokctl(ctx); err != nil {
		return err
	}
	step.State("waiting for the controllers")
	return c.waitReady(ctx)
}

// writeInputs writes all that kwokctl needs.
func (c *Cluster) writeInputs() error {
	for link, program := range map[string]string{"kwokctl": "kwokctl", "kubectl": "kubectl", Kwok: "kwok"} {
		if _, err := c.linkProgram(c.programs.Path(program), c.pathOf("bin", link)); err != nil {
			return err
		}
	}
	cache, err := build.Cache()
	if err != nil {
		return err
	}
	ports, err := takePorts(cache)
	if err != nil {
		return err
	}
	c.ports, c.sparePort = ports.lock, ports.first+portsUsed
	return settings{c.folder, c.options, c.programs}.writeConfiguration(ports)
}

// runKwokctl creates the cluster. kwokctl waits for an API server for minutes,
// also for one that has ended, so it is not left alone with that.
func (c *Cluster) runKwokctl(ctx context.Context) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	log, err := os.Create(c.pathOf("kwokctl.log"))
	if err != nil {
		return fmt.Errorf("create log of kwokctl: %w", err)
	}
	defer func() { _ = log.Close() }()

	args := []string{"create", "cluster", "--name", c.Name(), "--kubeconfig", ""}
	for _, file := range c.options.Config {
		args = append(args, "--config", file)
	}
	cmd := exec.CommandContext(ctx, c.pathOf("bin", "kwokctl"), args...)
	cmd.Env = c.processEnvironment()
	cmd.Dir = c.home
	// A file and no pipe: the components would keep a pipe open for ever.
	cmd.Stdout, cmd.Stderr = log, log
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("start kwokctl: %w", err)
	}
	done := make(chan error, 1)
	go func() { done <- cmd.Wait() }()
	return c.waitForKwokctl(ctx, cancel, done)
}

// waitForKwokctl waits for kwokctl, and cancels it as soon as it waits in vain.
func (c *Cluster) waitForKwokctl(ctx context.Context, cancel context.CancelCauseFunc, done <-chan error) error {
	poll := time.NewTicker(100 * time.Millisecond)
	defer poll.Stop()
	for {
		select {
		case err := <-done:
			if cause := context.Cause(ctx); cause != nil {
				return cause
			}
			if err != nil {
				return fmt.Errorf("run kwokctl: %w, its last lines:\n%s", err, lastLines(c.pathOf("kwokctl.log")))
			}
			return nil
		case <-poll.C:
			if err := c.firstEnded(Etcd, APIServer); err != nil {
				cancel(err)
			}
		}
	}
}

func (r *runner) firstEnded(names ...string) error {
	for _, name := range names {
		if r.hasEnded(name) {
			return r.endedError(name)
		}
	}
	return nil
}

func (r *runner) endedError(name string) error {
	return fmt.Errorf("%s ended, its last lines:\n%s", name, lastLines(r.logPath(name)))
}

var errGaveUp = errors.New("ended again and again")

// waitReady waits until the cluster can be used. The controllers give up when
// the API server takes too long to start, as it may on a busy machine, and nobody
// else would start them again.
func (c *Cluster) waitReady(ctx context.Context) error {
	api, err := newAdminClient(c)
	if err != nil {
		return err
	}
	const attempts = 5
	restarts := map[string]int{}
	components, err := c.allComponents()
	if err != nil {
		return err
	}
	return process.Until(ctx, "wait for the cluster", func() (bool, error) {
		for _, component := range components {
			if !c.hasEnded(component.Name) {
				continue
			}
			if restarts[component.Name]++; restarts[component.Name] > attempts {
				return false, fmt.Errorf("%w: %w", errGaveUp, c.endedError(component.Name))
			}
			if err := c.startComponent(component); err != nil {
				return false, err
			}
		}
		return api.canCreatePods(ctx, c.options), nil
	})
}

// lastLines returns the last lines of a log.
func lastLines(path string) string {
	const keep = 20
	content, err := os.ReadFile(path)
	if err != nil {
		return err.Error()
	}
	lines := strings.Split(strings.TrimSpace(string(content)), "\n")
	return strings.Join(lines[max(0, len(lines)-keep):], "\n")
}
