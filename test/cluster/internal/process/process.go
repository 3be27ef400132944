// Package process finds and ends the processes of a directory: those whose
// program was started by a path below it. Nothing else is ever touched, neither
// a process that merely works with files of the directory nor one that was given
// the number of a process that has ended.
package process

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// A Process is one entry of the process table.
type Process struct {
	// PID is its number.
	PID int
	// Program is the path by which it was started. It is empty for a moment while a
	// process turns from one program into another, and when it is about to end.
	Program string
	// started tells it from a later process with the same number.
	started string
	// ended says that only its result is left, for a parent that did not ask for it.
	ended bool
	// turning says that it has no program yet and may soon be one of any directory.
	turning bool
}

// In returns the running processes of dir.
func In(dir string) ([]Process, error) {
	in, _, err := findProcesses(dir)
	return in, err
}

// findProcesses returns the running processes of dir, and whether it may have overlooked one.
func findProcesses(dir string) (in []Process, unsure bool, err error) {
	all, err := listProcesses()
	if err != nil {
		return nil, false, fmt.Errorf("list processes: %w", err)
	}
	for _, p := range all {
		if p.runsIn(dir) {
			in = append(in, p)
		}
		unsure = unsure || p.turning
	}
	return in, unsure, nil
}

// Find returns the process with the number pid if it is a running one of dir.
func Find(dir string, pid int) (p Process, found bool, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	err = Until(ctx, fmt.Sprintf("look at process %d", pid), func() (bool, error) {
		p, found, err = inspectProcess(pid)
		return !found || p.ended || p.Program != "", err
	})
	if errors.Is(err, context.DeadlineExceeded) {
		return p, false, nil // a thread of the kernel never has a program
	}
	return p, found && p.runsIn(dir), err
}

func (p Process) runsIn(dir string) bool {
	return !p.ended && strings.HasPrefix(p.Program, filepath.Clean(dir)+string(filepath.Separator))
}

// Running says whether the process still has anything: memory, files, ports.
func (p Process) Running() (bool, error) {
	now, found, err := inspectProcess(p.PID)
	if err != nil {
		return false, fmt.Errorf("look at process %d: %w", p.PID, err)
	}
	return found && !now.ended && now.started == p.started, nil
}

// Signal sends sig to the process, if it still runs.
func (p Process) Signal(sig syscall.Signal) error {
	// Where the system can do so, FindProcess takes hold of the process, so that
	// the second look and the signal are about the same one.
	handle, err := os.FindProcess(p.PID)
	if err != nil {
		return nil // it has ended
	}
	defer func() { _ = handle.Release() }()
	running, err := p.Running()
	if err != nil || !running {
		return err
	}
	if err := handle.Signal(sig); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("send %s to process %d (%s): %w", sig, p.PID, p.Program, err)
	}
	return nil
}

// KillAll ends all processes of dir and returns when there are none left. It
// looks again until then, because one of them may be starting others.
func KillAll(ctx context.Context, dir string) error {
	// A process without a program for longer than this will not get one.
	const patience = 50
	var seen []Process
	unsureLooks := 0
	return Until(ctx, "end the processes of "+dir, func() (bool, error) {
		found, unsure, err := findProcesses(dir)
		if err != nil {
			return false, err
		}
		for _, p := range found {
			if err := p.Signal(syscall.SIGKILL); err != nil {
				return false, err
			}
		}
		// One that is about to end has no program any more, but still its ports.
		seen, err = stillRunning(append(seen, found...))
		if err != nil || len(found)+len(seen) > 0 {
			unsureLooks = 0
			return false, err
		}
		unsureLooks++
		return !unsure || unsureLooks > patience, nil
	})
}

func stillRunning(processes []Process) (rest []Process, err error) {
	for _, p := range processes {
		running, err := p.Running()
		if err != nil {
			return nil, err
		}
		if running {
			rest = append(rest, p)
		}
	}
	return rest, nil
}

// Until calls done until it says so or fails. An error of the context is
// returned with what was waited for.
func Until(ctx context.Context, what string, done func() (bool, error)) error {
	poll := time.NewTicker(20 * time.Millisecond)
	defer poll.Stop()
	for {
		if ok, err := done(); err != nil {
			return fmt.Errorf("%s: %w", what, err)
		} else if ok {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%s: %w", what, context.Cause(ctx))
		case <-poll.C:
		}
	}
}
