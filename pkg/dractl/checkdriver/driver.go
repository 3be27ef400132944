package checkdriver

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/kwok-dra/kwok-dra/pkg/dractl/process"
	"github.com/kwok-dra/kwok-dra/pkg/kubelet/plugin"
)

const (
	// registration is how long a driver has to register after its start.
	registration = 30 * time.Second
	// grace is how long a driver has to end after SIGTERM, as the containers of a Pod by
	// default.
	grace = 30 * time.Second

	// The ids of the processes of the driver, in place of the UIDs of its Pods. Those are
	// longer, but so are the paths of the folders here.
	firstInstance  = "0f5ca1ab"
	secondInstance = "1ab0ca5e"
)

// launch starts a process of the driver.
func (w *world) launch(ctx context.Context, instance string) (*process.Process, error) {
	p := w.places(instance)
	return process.Start(ctx, process.Options{Arguments: p.replace(w.arguments), Environment: p.environment(), Log: w.log()})
}

// up has the driver run and be registered.
func (w *world) up(ctx context.Context) error {
	if w.broken != nil {
		return skipped("the driver does not start: " + firstLine(w.broken))
	}
	if w.process != nil && w.process.Err() == nil && w.driver != "" && w.kubelet.Connected(w.driver) {
		return nil
	}
	if err := w.stop(); err != nil {
		return err
	}
	w.broken = w.start(ctx, w.current())
	return w.broken
}

// start starts the driver, and waits until it registers anew.
func (w *world) start(ctx context.Context, before *plugin.Plugin) (err error) {
	if w.process, err = w.launch(ctx, firstInstance); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, registration)
	defer cancel()
	return w.awaitRegistration(ctx, before)
}

// stop ends the driver as a kubelet does.
func (w *world) stop() error {
	if w.process == nil {
		return nil
	}
	stopped := w.process
	w.process = nil
	return stopped.Stop(grace)
}

// kill ends the driver without asking it.
func (w *world) kill() error {
	killed := w.process
	w.process = nil
	return killed.Kill()
}

// restart ends the driver and starts it again.
func (w *world) restart(ctx context.Context, end func() error) error {
	before := w.current()
	if err := end(); err != nil {
		return err
	}
	return w.start(ctx, before)
}

// current is the plugin that the kubelet would call, or nil.
func (w *world) current() *plugin.Plugin {
	found, err := w.kubelet.Get(w.driver)
	if err != nil {
		return nil
	}
	return found
}

// awaitRegistration waits until a plugin other than the one before is registered and
// connected.
func (w *world) awaitRegistration(ctx context.Context, before *plugin.Plugin) error {
	return until(ctx, func() (string, error) {
		if err := w.process.Err(); err != nil {
			return "registration", err
		}
		if err := w.meet(); err != nil {
			return "registration", err
		}
		switch now := w.current(); {
		case now == nil:
			return "no driver has registered in " + w.kubelet.root.Registry() + w.because(), nil
		case now == before || !w.kubelet.Connected(w.driver):
			return "driver " + w.driver + " has not registered anew" + w.because(), nil
		}
		return "", nil
	})
}

// because is what the kubelet has logged last.
func (w *world) because() string {
	if last := w.kubelet.problems.String(); last != "" {
		return ": " + last
	}
	return ""
}

// meet learns the name of the driver.
func (w *world) meet() error {
	registered := w.kubelet.registered()
	switch {
	case w.driver != "" || len(registered) == 0:
		return nil
	case w.expected != "" && !slices.Contains(registered, w.expected):
		return fmt.Errorf("driver %s has registered, and not %s", strings.Join(registered, ", "), w.expected)
	case w.expected != "":
		w.driver = w.expected
	default:
		w.driver = registered[0]
	}
	return nil
}

// skipped says why a statement cannot be tried.
type skipped string

func (s skipped) Error() string { return string(s) }

// isSkipped reports whether an error says so.
func isSkipped(err error) bool {
	_, is := errors.AsType[skipped](err)
	return is
}

// firstLine is an error without the lines of the driver.
func firstLine(err error) string {
	line, _, _ := strings.Cut(err.Error(), "\n")
	return line
}
