package cluster

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/kwok-dra/kwok-dra/test/cluster/internal/process"
)

// ErrUnknownComponent says that the cluster has no such component.
var ErrUnknownComponent = errors.New("no such component")

// componentTimeout bounds the stop and the start of one component, however busy the
// machine.
const componentTimeout = startTimeout

// StopComponent stops one component, for example kube-controller-manager, and
// returns when it has ended. kwokctl can only stop whole clusters. It does
// nothing when the component does not run.
func (c *Cluster) StopComponent(ctx context.Context, name string) error {
	component, err := c.component(name)
	if err != nil {
		return err
	}
	pid, err := c.pid(name)
	if err != nil {
		return err
	}
	p, found, err := process.Find(c.home, pid)
	if err != nil || !found {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, componentTimeout)
	defer cancel()
	// First the chance to end by itself, then none.
	const patience = 3 * time.Second
	asked := time.Now()
	sig := syscall.SIGTERM
	return process.Until(ctx, "stop component "+name, func() (bool, error) {
		if time.Since(asked) > patience {
			sig = syscall.SIGKILL
		}
		if err := p.Signal(sig); err != nil {
			return false, err
		}
		running, err := p.Running()
		// A killed process counts as ended when its first thread has; the others may
		// hold its ports for a while yet.
		return !running && !component.listensAny(), err
	})
}

// StartComponent starts a component that was stopped and returns when it
// listens on its ports. It does nothing when the component runs.
func (c *Cluster) StartComponent(ctx context.Context, name string) error {
	component, err := c.component(name)
	if err != nil {
		return err
	}
	if !c.ended(name) {
		return nil
	}
	if err := c.fork(component); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, componentTimeout)
	defer cancel()
	return process.Until(ctx, "start component "+name, func() (bool, error) {
		if c.ended(name) {
			return false, c.endedError(name)
		}
		return component.listens(), nil
	})
}

// listens says whether the component listens on all of its ports.
func (p component) listens() bool {
	return !slices.ContainsFunc(p.Ports, func(p port) bool { return !p.open() })
}

// listensAny says whether it listens on any of them.
func (p component) listensAny() bool {
	return slices.ContainsFunc(p.Ports, port.open)
}

func (p port) open() bool {
	conn, err := net.DialTimeout("tcp", net.JoinHostPort(loopback, strconv.Itoa(p.Port)), time.Second)
	if err != nil {
		return false
	}
	_ = conn.Close()
	return true
}

// ended says whether a component was started and does not run any more.
func (c *Cluster) ended(name string) bool {
	pid, err := c.pid(name)
	if err != nil {
		return false // not started yet
	}
	_, found, err := process.Find(c.home, pid)
	return err == nil && !found
}

func (c *Cluster) pid(name string) (int, error) {
	content, err := os.ReadFile(c.pidFile(name))
	if err != nil {
		return 0, fmt.Errorf("read process number of component %s: %w", name, err)
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(content)))
	if err != nil {
		return 0, fmt.Errorf("read process number of component %s: %w", name, err)
	}
	return pid, nil
}

func (c *Cluster) pidFile(name string) string { return c.state("pids", name+".pid") }

func (c *Cluster) log(name string) string { return c.state("logs", name+".log") }

func (c *Cluster) disabled(name string) bool { return slices.Contains(c.options.Disable, name) }
