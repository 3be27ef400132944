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
	// Program is the path by which it was started.
	Program string
}

// In returns the processes of dir. One that has ended and was not yet waited
// for by its parent does not count.
func In(dir string) ([]Process, error) {
	all, err := list()
	if err != nil {
		return nil, fmt.Errorf("list processes: %w", err)
	}
	var in []Process
	for _, p := range all {
		if below(dir, p.Program) {
			in = append(in, p)
		}
	}
	return in, nil
}

func below(dir, program string) bool {
	return strings.HasPrefix(program, filepath.Clean(dir)+string(filepath.Separator))
}

// Signal sends sig to the process pid if it is one of dir, and says whether it was.
func Signal(dir string, pid int, sig syscall.Signal) (bool, error) {
	// Where the system can do so, FindProcess takes hold of the process, so that
	// the look at its program and the signal are about the same one.
	p, err := os.FindProcess(pid)
	if err != nil {
		return false, nil // it has ended
	}
	defer func() { _ = p.Release() }()
	name, err := program(pid)
	if err != nil {
		return false, fmt.Errorf("look at process %d: %w", pid, err)
	}
	if !below(dir, name) {
		return false, nil
	}
	if err := p.Signal(sig); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return false, fmt.Errorf("send %s to process %d (%s): %w", sig, pid, name, err)
	}
	return true, nil
}

// KillAll ends all processes of dir and returns when there are none left. It
// looks again until then, because one of them may be starting others.
func KillAll(ctx context.Context, dir string) error {
	return Until(ctx, "end the processes of "+dir, func() (bool, error) {
		rest, err := In(dir)
		if err != nil || len(rest) == 0 {
			return err == nil, err
		}
		for _, p := range rest {
			if _, err := Signal(dir, p.PID, syscall.SIGKILL); err != nil {
				return false, err
			}
		}
		return false, nil
	})
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
