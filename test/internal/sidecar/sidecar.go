// Package sidecar builds kwok-dra and runs it against a cluster, as its own
// process, the way users do.
package sidecar

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"syscall"
	"time"

	"github.com/kwok-dra/kwok-dra/test/cluster"
)

// readyLimit is how long a sidecar takes that will never become ready, however busy
// the machine and large the fleet.
const readyLimit = 15 * time.Minute

// logTail is how many bytes of a log an error shows.
const logTail = 4 << 10

// Process is a running sidecar, or another program that is run as one.
type Process struct {
	// URL is where it serves health and metrics, without a path.
	URL string
	// Log is the path of its log.
	Log string

	name    string
	command *exec.Cmd
	exited  chan struct{}
}

// Start starts a sidecar and returns when it is ready. It is the cluster's
// administrator unless another --kubeconfig is among the arguments. Its log goes
// to the directory of the cluster's logs. It ends with the cluster at the latest.
func Start(ctx context.Context, c *cluster.Cluster, arguments ...string) (*Process, error) {
	p, err := Launch(c, arguments...)
	if err != nil {
		return nil, err
	}
	if err := p.WaitReady(ctx); err != nil {
		return nil, errors.Join(err, p.Kill())
	}
	return p, nil
}

// Launch starts a sidecar and returns at once.
func Launch(c *cluster.Cluster, arguments ...string) (*Process, error) {
	binary, err := Binary()
	if err != nil {
		return nil, err
	}
	return LaunchProgram(c, binary, arguments...)
}

// LaunchProgram starts a program that takes the sidecar's arguments and returns
// at once.
func LaunchProgram(c *cluster.Cluster, binary string, arguments ...string) (*Process, error) {
	program, err := c.Adopt(binary)
	if err != nil {
		return nil, err
	}
	variables, err := containerEnvironment()
	if err != nil {
		return nil, err
	}
	name := filepath.Base(binary)
	log, err := os.CreateTemp(c.Logs(), name+"-*.log")
	if err != nil {
		return nil, fmt.Errorf("create log of %s: %w", name, err)
	}
	defer func() { _ = log.Close() }()
	all := append([]string{"--kubeconfig", c.Kubeconfig(), "--server-address", "127.0.0.1:0", "-v=2"}, arguments...)
	p := &Process{Log: log.Name(), name: name, command: exec.Command(program, all...), exited: make(chan struct{})}
	p.command.Env = slices.Concat(variables, os.Environ())
	p.command.Stdout, p.command.Stderr = log, log
	// Out of reach of a Ctrl-C that is meant for the caller.
	p.command.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := p.command.Start(); err != nil {
		return nil, fmt.Errorf("start %s: %w", name, err)
	}
	go func() {
		defer close(p.exited)
		_ = p.command.Wait()
	}()
	return p, nil
}

// Arguments are those that it was started with.
func (p *Process) Arguments() []string { return slices.Clone(p.command.Args[1:]) }

// WaitReady waits until the sidecar reports that it is ready. The error says what it waits for.
func (p *Process) WaitReady(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, readyLimit)
	defer cancel()
	for {
		_, waiting := p.Get(ctx, "/readyz")
		if waiting == nil {
			return nil
		}
		select {
		case <-p.exited:
			return fmt.Errorf("%s ended before it was ready:\n%s", p.name, p.logEnd())
		case <-ctx.Done():
			asking, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
			defer cancel()
			_, waiting = p.Get(asking, "/readyz")
			return fmt.Errorf("wait for %s: %w\n%s", p.name, errors.Join(ctx.Err(), waiting), p.logEnd())
		case <-time.After(5 * time.Millisecond):
		}
	}
}

func (p *Process) logEnd() []byte {
	log, _ := os.ReadFile(p.Log)
	return log[max(0, len(log)-logTail):]
}

var serving = regexp.MustCompile(`"Serving health and metrics" address="([^"]+)"`)

// AddressIn is where a sidecar serves, by its log, or "" as long as it does not.
func AddressIn(log string) string {
	content, _ := os.ReadFile(log)
	match := serving.FindSubmatch(content)
	if match == nil {
		return ""
	}
	return string(match[1])
}

// IsReady reports whether the sidecar says that it is ready.
func (p *Process) IsReady(ctx context.Context) bool {
	_, err := p.Get(ctx, "/readyz")
	return err == nil
}

// Get asks the sidecar for a path.
func (p *Process) Get(ctx context.Context, path string) ([]byte, error) {
	if p.URL == "" {
		address := AddressIn(p.Log)
		if address == "" {
			return nil, fmt.Errorf("ask %s for %s: it does not serve yet", p.name, path)
		}
		p.URL = "http://" + address
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, p.URL+path, nil)
	if err != nil {
		return nil, fmt.Errorf("ask %s for %s: %w", p.name, path, err)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return nil, fmt.Errorf("ask %s for %s: %w", p.name, path, err)
	}
	defer func() { _ = response.Body.Close() }()
	body, err := io.ReadAll(response.Body)
	if err == nil && response.StatusCode != http.StatusOK {
		err = fmt.Errorf("status %s: %s", response.Status, bytes.TrimSpace(body))
	}
	return body, err
}

// Metric sums the values of all series of a metric whose labels contain the
// given pairs, such as `verb="create"`.
func (p *Process) Metric(ctx context.Context, name string, labels ...string) (float64, error) {
	body, err := p.Get(ctx, "/metrics")
	if err != nil {
		return 0, err
	}
	return SumMetric(string(body), name, labels...), nil
}

// PID is the process id.
func (p *Process) PID() int {
	return p.command.Process.Pid
}

// Stop asks the sidecar to end and waits until it has.
func (p *Process) Stop() error {
	return p.endBySignal(syscall.SIGTERM)
}

// Kill ends the sidecar without a chance to clean up.
func (p *Process) Kill() error {
	return p.endBySignal(syscall.SIGKILL)
}

func (p *Process) endBySignal(signal syscall.Signal) error {
	if err := p.command.Process.Signal(signal); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("end %s: %w", p.name, err)
	}
	<-p.exited
	return nil
}
