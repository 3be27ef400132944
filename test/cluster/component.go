package cluster

import (
	"context"
	"errors"
	"net"
	"slices"
	"strconv"
	"syscall"
	"time"

	"github.com/kwok-dra/kwok-dra/test/cluster/internal/process"
)

// ErrUnknownComponent says that the cluster has no such component.
var ErrUnknownComponent = errors.New("no such component")

// componentTimeout bounds the stop and the start of one component, however busy the
// machine.
const componentTimeout = startTimeout

// A runner starts and stops the components of a cluster.
type runner struct {
	folder
	gates *map[string]bool // those of SetFeatureGates, if it was called
}

// StopComponent stops one component, for example kube-controller-manager, and
// returns when it has ended. kwokctl can only stop whole clusters. It does
// nothing when the component does not run.
func (r *runner) StopComponent(ctx context.Context, name string) error {
	component, err := r.componentByName(name)
	if err != nil {
		return err
	}
	pid, err := r.readPID(name)
	if err != nil {
		return err
	}
	p, found, err := process.Find(r.home, pid)
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
func (r *runner) StartComponent(ctx context.Context, name string) error {
	component, err := r.componentByName(name)
	if err != nil {
		return err
	}
	if !r.hasEnded(name) {
		return nil
	}
	if err := r.startComponent(component); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, componentTimeout)
	defer cancel()
	return process.Until(ctx, "start component "+name, func() (bool, error) {
		if r.hasEnded(name) {
			return false, r.endedError(name)
		}
		return component.isListening(), nil
	})
}

// isListening says whether the component listens on all of its ports.
func (p component) isListening() bool {
	return !slices.ContainsFunc(p.Ports, func(p port) bool { return !p.isOpen() })
}

// listensAny says whether it listens on any of them.
func (p component) listensAny() bool {
	return slices.ContainsFunc(p.Ports, port.isOpen)
}

func (p port) isOpen() bool {
	conn, err := net.DialTimeout("tcp", net.JoinHostPort(loopback, strconv.Itoa(p.Port)), time.Second)
	if err != nil {
		return false
	}
	_ = conn.Close()
	return true
}

// ComponentPIDs are the process numbers of all components, by their names, also of those
// that have ended.
func (r *runner) ComponentPIDs() (map[string]int, error) {
	components, err := r.allComponents()
	if err != nil {
		return nil, err
	}
	pids := map[string]int{}
	for _, component := range components {
		if pids[component.Name], err = r.readPID(component.Name); err != nil {
			return nil, err
		}
	}
	return pids, nil
}

// hasEnded says whether a component was started and does not run any more.
func (r *runner) hasEnded(name string) bool {
	pid, err := r.readPID(name)
	if err != nil {
		return false // not started yet
	}
	_, found, err := process.Find(r.home, pid)
	return err == nil && !found
}
