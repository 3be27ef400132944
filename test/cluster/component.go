package cluster

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/kwok-dra/kwok-dra/test/cluster/internal/process"
)

// component is how kwokctl starts a component, as it writes it down.
type component struct {
	Name    string   `json:"name" yaml:"name"`
	Links   []string `json:"links" yaml:"links"` // those to start before
	Binary  string   `json:"binary" yaml:"binary"`
	Args    []string `json:"args" yaml:"args"`
	WorkDir string   `json:"workDir" yaml:"workDir"`
	Envs    []env    `json:"envs,omitempty" yaml:"envs"`
	Ports   []port   `json:"ports" yaml:"ports"`
}

type env struct {
	Name  string `json:"name" yaml:"name"`
	Value string `json:"value" yaml:"value"`
}

type port struct {
	Port int `json:"port" yaml:"port"`
}

// ErrUnknownComponent says that the cluster has no such component.
var ErrUnknownComponent = errors.New("no such component")

// componentTimeout bounds the stop and the start of one component.
const componentTimeout = 30 * time.Second

// StopComponent stops one component, for example kube-controller-manager, and
// returns when it has ended. kwokctl can only stop whole clusters. It does
// nothing when the component does not run.
func (c *Cluster) StopComponent(ctx context.Context, name string) error {
	if _, err := c.component(name); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, componentTimeout)
	defer cancel()
	// First the chance to end by itself, then none.
	const patience = 5 * time.Second
	asked := time.Now()
	sig := syscall.SIGTERM
	return process.Until(ctx, "stop component "+name, func() (bool, error) {
		pid, err := c.pid(name)
		if err != nil {
			return false, err
		}
		if time.Since(asked) > patience {
			sig = syscall.SIGKILL
		}
		running, err := process.Signal(c.home, pid, sig)
		return !running, err
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

func (p component) listens() bool {
	for _, port := range p.Ports {
		conn, err := net.DialTimeout("tcp", net.JoinHostPort(loopback, strconv.Itoa(port.Port)), time.Second)
		if err != nil {
			return false
		}
		_ = conn.Close()
	}
	return true
}

// fork starts a component as kwokctl does: in the background, with a log file
// and a file with the number of the process.
func (c *Cluster) fork(p component) error {
	log, err := os.OpenFile(c.log(p.Name), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return fmt.Errorf("open log of component %s: %w", p.Name, err)
	}
	defer func() { _ = log.Close() }()
	cmd := exec.Command(p.Binary, p.Args...)
	cmd.Dir = p.WorkDir
	cmd.Env = c.environment()
	for _, env := range p.Envs {
		cmd.Env = append(cmd.Env, env.Name+"="+env.Value)
	}
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("start component %s: %w", p.Name, err)
	}
	// Its result is of no interest, but without this it would stay in the process
	// table after its end.
	go func() { _ = cmd.Wait() }()
	if err := os.WriteFile(c.pidFile(p.Name), []byte(strconv.Itoa(cmd.Process.Pid)), 0o644); err != nil {
		return fmt.Errorf("write process number of component %s: %w", p.Name, err)
	}
	return nil
}

// ended says whether a component was started and does not run any more.
func (c *Cluster) ended(name string) bool {
	pid, err := c.pid(name)
	if err != nil {
		return false // not started yet
	}
	running, err := process.Signal(c.home, pid, syscall.Signal(0))
	return err == nil && !running
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

func (c *Cluster) component(name string) (component, error) {
	all, err := c.components()
	if err != nil {
		return component{}, err
	}
	i := slices.IndexFunc(all, func(p component) bool { return p.Name == name })
	if i < 0 {
		return component{}, fmt.Errorf("find component %q: %w", name, ErrUnknownComponent)
	}
	return all[i], nil
}

// components reads what kwokctl has started from where it keeps it.
func (c *Cluster) components() ([]component, error) {
	f, err := os.Open(c.state("kwok.yaml"))
	if err != nil {
		return nil, fmt.Errorf("open state of kwokctl: %w", err)
	}
	defer func() { _ = f.Close() }()
	for documents := yaml.NewDecoder(f); ; {
		var document struct {
			Kind       string      `yaml:"kind"`
			Components []component `yaml:"components"`
		}
		err := documents.Decode(&document)
		if errors.Is(err, io.EOF) {
			return nil, fmt.Errorf("read state of kwokctl: %w", ErrUnknownComponent)
		}
		if err != nil {
			return nil, fmt.Errorf("read state of kwokctl: %w", err)
		}
		if document.Kind == "KwokctlConfiguration" {
			return document.Components, nil
		}
	}
}
