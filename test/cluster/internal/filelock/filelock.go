// Package filelock makes processes wait for each other by means of a file.
package filelock

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"time"
)

// ErrTaken says that somebody else has the lock.
var ErrTaken = errors.New("lock is taken")

// A Lock is held until Unlock, or until the process that took it ends: the
// kernel gives it back, however the process ends.
type Lock struct{ file *os.File }

// Try takes the lock file at path, or returns ErrTaken.
func Try(path string) (*Lock, error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return nil, fmt.Errorf("create directory for lock file: %w", err)
	}
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return nil, fmt.Errorf("open lock file: %w", err)
	}
	err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if err == nil {
		return &Lock{file: f}, nil
	}
	_ = f.Close()
	if errors.Is(err, syscall.EWOULDBLOCK) || errors.Is(err, syscall.EINTR) {
		return nil, fmt.Errorf("%s: %w", path, ErrTaken)
	}
	return nil, fmt.Errorf("lock %s: %w", path, err)
}

// Wait takes the lock file at path as soon as it is free. It calls waiting
// once if it is not.
func Wait(ctx context.Context, path string, waiting func()) (*Lock, error) {
	poll := time.NewTicker(100 * time.Millisecond)
	defer poll.Stop()
	for told := false; ; told = true {
		lock, err := Try(path)
		if err == nil || !errors.Is(err, ErrTaken) {
			return lock, err
		}
		if !told {
			waiting()
		}
		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("wait for lock %s: %w", path, context.Cause(ctx))
		case <-poll.C:
		}
	}
}

// Unlock gives the lock back. It does nothing on a nil lock. The file stays: to
// remove it would let two processes hold two files of the same name.
func (l *Lock) Unlock() {
	if l != nil {
		_ = l.file.Close()
	}
}
