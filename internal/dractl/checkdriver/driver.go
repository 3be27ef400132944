package checkdriver

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/kwok-dra/kwok-dra/internal/dractl/process"
	"github.com/kwok-dra/kwok-dra/internal/extensions/realdrivers/kubelet/plugin"
)

const (
	// registration is how long a driver has to register after its start.
	registration = 30 * time.Second
	// logFile is the file in the folder of the world to which the driver writes.
	logFile = "log"

	// grace is how long a driver has to end after SIGTERM, as the containers of a Pod by
	// default.
	grace = 30 * time.Second

	// The ids of the driver's processes stand for the UIDs of its Pods, and are as long.
	firstInstance  = "0f5ca1ab-1ab0-4ca5-8e00-000000000001"
	secondInstance = "0f5ca1ab-1ab0-4ca5-8e00-000000000002"
)

// runner runs the driver on the site.
type runner struct {
	site

	// driver is the name under which the driver has registered, "" before.
	driver string
	// process is the driver, or nil.
	process *process.Process
	// broken is why the driver did not start. No statement is tried after that.
	broken error
}

// startProcess starts a process of the driver.
func (r *runner) startProcess(ctx context.Context, instance string) (*process.Process, error) {
	p := places{
		node: r.name, plugins: r.kubelet.root.Plugins(), registry: r.kubelet.root.Registry(),
		kubeconfig: r.kubeconfig, cdi: r.cdiFolder(), driver: r.expected, instance: instance,
	}
	return process.Start(ctx, process.Options{Arguments: p.replacePlaceholders(r.arguments), Environment: p.environmentVariables(), Log: filepath.Join(r.folder, logFile)})
}

// ensureRunning starts the driver unless it runs and is registered.
func (r *runner) ensureRunning(ctx context.Context) error {
	if r.broken != nil {
		reason, _, _ := strings.Cut(r.broken.Error(), "\n") // the last lines of the driver follow
		return skipped("the driver does not start: " + reason)
	}
	if r.process != nil && r.process.Err() == nil && r.driver != "" && r.kubelet.Connected(r.driver) {
		return nil
	}
	if err := r.stopDriver(); err != nil {
		return err
	}
	r.broken = r.startDriver(ctx, r.calledPlugin())
	return r.broken
}

// startDriver starts the driver, and waits until it registers anew.
func (r *runner) startDriver(ctx context.Context, before *plugin.Plugin) (err error) {
	if r.process, err = r.startProcess(ctx, firstInstance); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, registration)
	defer cancel()
	return waitUntil(ctx, func() (string, error) {
		if err := r.process.Err(); err != nil {
			return "", err
		}
		if err := r.learnDriverName(); err != nil {
			return "", err
		}
		switch now := r.calledPlugin(); {
		case now == nil:
			return "no driver has registered in " + r.kubelet.root.Registry() + r.lastProblem(), nil
		case now == before || !r.kubelet.Connected(r.driver):
			return "driver " + r.driver + " has not registered anew" + r.lastProblem(), nil
		}
		return "", nil
	})
}

// stopDriver ends the driver as a kubelet does.
func (r *runner) stopDriver() error {
	if r.process == nil {
		return nil
	}
	stopped := r.process
	r.process = nil
	return stopped.Stop(grace)
}

// restartDriver ends the driver and starts it again.
func (r *runner) restartDriver(ctx context.Context, end func() error) error {
	before := r.calledPlugin()
	if err := end(); err != nil {
		return err
	}
	return r.startDriver(ctx, before)
}

// calledPlugin returns the plugin that the kubelet would call, or nil.
func (r *runner) calledPlugin() *plugin.Plugin {
	found, err := r.kubelet.Get(r.driver)
	if err != nil {
		return nil
	}
	return found
}

// lastProblem returns the last error that the kubelet has logged.
func (r *runner) lastProblem() string {
	if last := r.kubelet.problems.String(); last != "" {
		return ": " + last
	}
	return ""
}

// learnDriverName learns the name of the driver.
func (r *runner) learnDriverName() error {
	r.kubelet.mu.Lock()
	registered := slices.Clone(r.kubelet.drivers)
	r.kubelet.mu.Unlock()
	switch {
	case r.driver != "" || len(registered) == 0:
		return nil
	case r.expected != "" && !slices.Contains(registered, r.expected):
		return fmt.Errorf("driver %s has registered, and not %s", strings.Join(registered, ", "), r.expected)
	case r.expected != "":
		r.driver = r.expected
	default:
		r.driver = registered[0]
	}
	return nil
}

// skipped says why a statement cannot be tried.
type skipped string

func (s skipped) Error() string { return string(s) }
