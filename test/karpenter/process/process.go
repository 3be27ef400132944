// Package process builds Karpenter with its KWOK provider and runs it against a
// cluster, as its own process.
package process

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"

	"github.com/kwok-dra/kwok-dra/test/cluster"
	"github.com/kwok-dra/kwok-dra/test/sidecar"
)

// Binary builds Karpenter and returns its path. It builds once per process.
var Binary = sync.OnceValues(func() (string, error) {
	path := filepath.Join(sidecar.Root(), "bin", "karpenter")
	build := exec.Command("go", "build", "-trimpath", "-ldflags=-s -w", "-o", path, "./provider")
	build.Dir = filepath.Join(sidecar.Root(), "test", "karpenter")
	build.Env = append(os.Environ(), "CGO_ENABLED=0", "GOWORK=off")
	if output, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build Karpenter: %w\n%s", err, output)
	}
	return path, nil
})

// Process is a running Karpenter.
type Process struct {
	// Log is the path of its log.
	Log string

	command *exec.Cmd
	exited  chan struct{}
}

// Options say with what Karpenter runs.
type Options struct {
	// InstanceTypes is a file of instance types as Karpenter's KWOK provider has it.
	InstanceTypes string
	// Templates are files of ResourcePoolTemplates.
	Templates []string
}

// Start installs Karpenter's custom resource definitions in a cluster and starts
// Karpenter as its administrator. It takes some seconds to be ready, after which
// its NodePools are. Its log goes to the directory of the cluster's logs. It ends
// with the cluster at the latest.
func Start(ctx context.Context, c *cluster.Cluster, o Options) (*Process, error) {
	binary, err := Binary()
	if err != nil {
		return nil, err
	}
	if err := install(ctx, c); err != nil {
		return nil, err
	}
	program, err := c.Adopt(binary)
	if err != nil {
		return nil, err
	}
	log, err := os.CreateTemp(c.Logs(), "karpenter-*.log")
	if err != nil {
		return nil, fmt.Errorf("create log of Karpenter: %w", err)
	}
	defer log.Close()
	p := &Process{Log: log.Name(), command: exec.Command(program), exited: make(chan struct{})}
	p.command.Env = append(os.Environ(), environment(c, o)...)
	p.command.Stdout, p.command.Stderr = log, log
	// Out of reach of a Ctrl-C that is meant for the caller.
	p.command.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := p.command.Start(); err != nil {
		return nil, fmt.Errorf("start Karpenter: %w", err)
	}
	go func() {
		defer close(p.exited)
		_ = p.command.Wait()
	}()
	return p, nil
}

// environment has Karpenter look at claims, which it does not by default, and
// listen on ports that are free.
func environment(c *cluster.Cluster, o Options) []string {
	return []string{
		"KUBECONFIG=" + c.Kubeconfig(),
		"IGNORE_DRA_REQUESTS=false",
		"INSTANCE_TYPES_FILE_PATH=" + o.InstanceTypes,
		"RESOURCE_POOL_TEMPLATES_FILE_PATHS=" + strings.Join(o.Templates, ","),
		"DISABLE_LEADER_ELECTION=true",
		"METRICS_PORT=0",
		"HEALTH_PROBE_PORT=0",
	}
}

// Exited is closed when the process has ended.
func (p *Process) Exited() <-chan struct{} {
	return p.exited
}

// Kill ends the process.
func (p *Process) Kill() error {
	if err := p.command.Process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("end Karpenter: %w", err)
	}
	<-p.exited
	return nil
}
