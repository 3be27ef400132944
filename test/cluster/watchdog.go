package cluster

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"syscall"
	"time"

	"github.com/kwok-dra/kwok-dra/test/cluster/internal/process"
)

// A watchdog is a process that removes a cluster when the process that started
// it ends without having done so, be it by a panic, Ctrl-C or SIGKILL. It reads
// from a pipe whose other end only that process has: the end of the input means
// the end of the process.
//
// It is the same program again, marked by an environment variable, and turns into
// a watchdog before main or any test runs. So it works in every program that
// imports this package and needs no program of its own.
type watchdog struct {
	cmd  *exec.Cmd
	pipe io.WriteCloser
}

const (
	watchdogEnv = "KWOK_DRA_CLUSTER_WATCHDOG"
	// dismissed is what the process writes when there is nothing left to do.
	dismissed = "dismissed"
	// stopTimeout is generous: processes end within milliseconds of SIGKILL unless
	// the machine is about to break down.
	stopTimeout = time.Minute
)

func init() {
	if home := os.Getenv(watchdogEnv); home != "" {
		os.Exit(runWatchdog(home, os.Stdin))
	}
}

// runWatchdog is all that a watchdog does.
func runWatchdog(home string, in io.Reader) int {
	said, _ := io.ReadAll(in)
	if string(said) == dismissed {
		return 0
	}
	ctx, cancel := context.WithTimeout(context.Background(), stopTimeout)
	defer cancel()
	if err := removeHome(ctx, home); err != nil {
		return 1 // nobody is left to tell
	}
	return 0
}

// removeHome ends the processes of home and removes it.
func removeHome(ctx context.Context, home string) error {
	if err := process.KillAll(ctx, home); err != nil {
		return err
	}
	if err := os.RemoveAll(home); err != nil {
		return fmt.Errorf("remove directory of cluster: %w", err)
	}
	return nil
}

func startWatchdog(home string) (*watchdog, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("find the program for the watchdog: %w", err)
	}
	cmd := exec.Command(self)
	cmd.Args = []string{"cluster-watchdog", home}
	cmd.Env = append(os.Environ(), watchdogEnv+"="+home)
	cmd.Dir = "/"
	// Out of reach of Ctrl-C. Its output is discarded: with ours in its hands,
	// whoever reads that would wait for it too.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	pipe, err := cmd.StdinPipe()
	if err != nil {
		return nil, fmt.Errorf("open pipe to the watchdog: %w", err)
	}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("start watchdog: %w", err)
	}
	return &watchdog{cmd: cmd, pipe: pipe}, nil
}

// endWithoutCleanup ends the watchdog and leaves the cluster as it is.
func (w *watchdog) endWithoutCleanup() error {
	if _, err := io.WriteString(w.pipe, dismissed); err != nil {
		return fmt.Errorf("dismiss watchdog: %w", err)
	}
	return w.cleanUpAndWait()
}

// cleanUpAndWait lets the watchdog do its work, and waits for it.
func (w *watchdog) cleanUpAndWait() error {
	_ = w.pipe.Close()
	if err := w.cmd.Wait(); err != nil {
		return fmt.Errorf("wait for watchdog: %w", err)
	}
	return nil
}
