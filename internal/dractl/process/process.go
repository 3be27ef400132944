package process

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/kwok-dra/kwok-dra/internal/extensions/util/untrusted"
)

const (
	// look is how often Stop and Kill check whether the processes have ended.
	look = 20 * time.Millisecond
	// killed is how long the system has to end what is killed.
	killed = time.Minute
)

// Options say what is run.
type Options struct {
	// Arguments are the program and its arguments.
	Arguments []string
	// Environment is added to that of this process.
	Environment []string
	// Log is the file to which the output is added.
	Log string
}

// Process is a program that was started.
type Process struct {
	name  string
	log   string
	cmd   *exec.Cmd
	ended chan struct{}
	err   error
}

// Start starts a program. It outlives ctx: end it with Stop or Kill.
func Start(ctx context.Context, o Options) (*Process, error) {
	name := filepath.Base(o.Arguments[0])
	log, err := os.OpenFile(o.Log, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open the log of %s: %w", name, err)
	}
	defer func() { _ = log.Close() }() // the program has its own
	p := &Process{name: name, log: o.Log, ended: make(chan struct{})}
	p.cmd = exec.CommandContext(context.WithoutCancel(ctx), o.Arguments[0], o.Arguments[1:]...)
	p.cmd.Env = append(os.Environ(), o.Environment...)
	p.cmd.Stdout, p.cmd.Stderr = log, log
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := p.cmd.Start(); err != nil {
		return nil, fmt.Errorf("start %s: %w", name, err)
	}
	go func() {
		defer close(p.ended)
		p.err = p.cmd.Wait()
	}()
	return p, nil
}

// Err is nil as long as the program runs, and then says how it has ended.
func (p *Process) Err() error {
	select {
	case <-p.ended:
	default:
		return nil
	}
	how := "exit status 0"
	if p.err != nil {
		how = p.err.Error()
	}
	return fmt.Errorf("%s has ended: %s; its last lines:\n%s", p.name, how, strings.Join(Tail(p.log), "\n"))
}

// signalGroup signals all processes of the group. It reports whether there are any.
func (p *Process) signalGroup(sig syscall.Signal) bool {
	return !errors.Is(syscall.Kill(-p.cmd.Process.Pid, sig), syscall.ESRCH)
}

// Running reports whether any process of the group runs.
func (p *Process) Running() bool { return p.signalGroup(0) }

// Stop asks all processes of the group to end. It kills those that have not ended within grace, and returns
// an error then.
func (p *Process) Stop(grace time.Duration) error {
	p.signalGroup(syscall.SIGTERM)
	if p.awaitGone(grace) {
		return nil
	}
	return errors.Join(fmt.Errorf("%s has not ended %s after SIGTERM", p.name, grace), p.Kill())
}

// Kill ends all processes of the group at once.
func (p *Process) Kill() error {
	p.signalGroup(syscall.SIGKILL)
	if !p.awaitGone(killed) {
		return fmt.Errorf("kill %s: process group %d is still there", p.name, p.cmd.Process.Pid)
	}
	return nil
}

// awaitGone waits until no process of the group is left, and reports whether that is so.
func (p *Process) awaitGone(within time.Duration) bool {
	timeout := time.After(within)
	ticker := time.NewTicker(look)
	defer ticker.Stop()
	for p.Running() {
		select {
		case <-timeout:
			return false
		case <-ticker.C:
		}
	}
	<-p.ended
	return true
}

const (
	// lastLines is how many lines of a log tell why a program has failed.
	lastLines = 20
	// lastBytes is what they may have: a program may print a lot.
	lastBytes = 64 << 10
)

// Tail is the last lines of a log.
func Tail(log string) []string {
	content, err := untrusted.ReadTail(log, lastBytes)
	if err != nil {
		return []string{err.Error()}
	}
	lines := strings.Split(strings.TrimSpace(string(content)), "\n")
	return lines[max(0, len(lines)-lastLines):]
}
