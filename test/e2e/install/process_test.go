package install

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/kwok-dra/kwok-dra/test/cluster"
	"github.com/kwok-dra/kwok-dra/test/internal/sidecar"
)

// command is what is started.
type command struct {
	name, program          string
	arguments, environment []string
	log                    string
	// address is where it serves, or "" where its log says that.
	address string
	// host is the name that the process sees its host have. Optional.
	host string
}

// process is one that runs. It ends with the cluster at the latest.
type process struct {
	command
	running *exec.Cmd
	exited  chan struct{}
	// ending says that the test ends it.
	ending atomic.Bool
}

func startProcess(c *cluster.Cluster, what command) (*process, error) {
	program, err := c.Adopt(what.program)
	if err != nil {
		return nil, err
	}
	log, err := os.Create(what.log)
	if err != nil {
		return nil, fmt.Errorf("create log: %w", err)
	}
	defer func() { _ = log.Close() }()
	p := &process{command: what, running: exec.Command(program, what.arguments...), exited: make(chan struct{})}
	p.running.Env = what.environment
	p.running.Stdout, p.running.Stderr = log, log
	p.running.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if what.host != "" {
		if err := onHost(p.running, what.host); err != nil {
			return nil, err
		}
	}
	if err := p.running.Start(); err != nil {
		return nil, fmt.Errorf("start %s: %w", program, err)
	}
	go func() {
		defer close(p.exited)
		_ = p.running.Wait()
	}()
	return p, nil
}

// stop asks the process to end, and waits until it has.
func (p *process) stop() {
	p.ending.Store(true)
	_ = p.running.Process.Signal(syscall.SIGTERM)
	select {
	case <-p.exited:
	case <-time.After(10 * time.Second):
		_ = p.running.Process.Kill()
		<-p.exited
	}
}

// kill ends the process as the end of its machine does.
func (p *process) kill() {
	p.ending.Store(true)
	_ = p.running.Process.Kill()
	<-p.exited
}

// hasExited reports whether the process has ended.
func (p *process) hasExited() bool {
	select {
	case <-p.exited:
		return true
	default:
		return false
	}
}

// exitError says how the process has ended.
func (p *process) exitError() error {
	return fmt.Errorf("%s ended with %s:\n%s", strings.Join(p.running.Args, " "), p.running.ProcessState, p.output())
}

// output is what the process has written so far.
func (p *process) output() string {
	content, err := os.ReadFile(p.log)
	if err != nil {
		return err.Error()
	}
	return string(content)
}

// prober trusts every certificate, as kubelets do.
var prober = &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}}

var errNotServing = errors.New("its log does not say yet where it serves")

// get asks for a path, with a token if there is one, and tells the status.
func (p *process) get(ctx context.Context, scheme corev1.URIScheme, path, token string) (int, error) {
	address := cmp.Or(p.address, sidecar.AddressIn(p.log))
	if address == "" {
		return 0, errNotServing
	}
	url := strings.ToLower(string(cmp.Or(scheme, corev1.URISchemeHTTP))) + "://" + address + path
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
	if err != nil {
		return 0, err
	}
	if token != "" {
		request.Header.Set("Authorization", "Bearer "+token)
	}
	response, err := prober.Do(request)
	if err != nil {
		return 0, err
	}
	return response.StatusCode, response.Body.Close()
}

// passes waits until the process passes a probe of its container, which is one
// of a path on the port on which it serves.
func (p *process) passes(ctx context.Context, probe *corev1.Probe, container *corev1.Container) error {
	if probe == nil {
		return nil
	}
	if port := probe.HTTPGet.Port; port.StrVal != "" && (len(container.Ports) != 1 || container.Ports[0].Name != port.StrVal) {
		return fmt.Errorf("port %s is not one of the container", port.StrVal)
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for {
		status, err := p.get(ctx, probe.HTTPGet.Scheme, probe.HTTPGet.Path, "")
		if err == nil && status == http.StatusOK && !p.hasExited() { // another process may have the port by now
			return nil
		}
		select {
		case <-p.exited:
			return p.exitError()
		case <-ctx.Done():
			return fmt.Errorf("%s answers with status %d: %w", probe.HTTPGet.Path, status, errors.Join(err, ctx.Err()))
		case <-time.After(10 * time.Millisecond):
		}
	}
}
