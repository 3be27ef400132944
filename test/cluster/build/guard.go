package build

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"syscall"
	"time"
)

// A guard ends the go commands of this process, and the compilers that they
// run, when this process ends, be it by SIGKILL: a build that nobody waits for
// would keep all processors busy for minutes.
//
// It is the same program again, marked by an environment variable, and leads the
// process group of those commands, so that nobody else can get the group's
// number. It reads from a pipe whose other end only this process has.
type guard struct {
	cmd  *exec.Cmd
	pipe io.Closer
}

const guardEnv = "KWOK_DRA_BUILD_GUARD"

func init() {
	if os.Getenv(guardEnv) == "" {
		return
	}
	const patience = 5 * time.Second
	signal.Ignore(syscall.SIGINT)
	_, _ = io.Copy(io.Discard, os.Stdin)
	// To the whole group: the go command removes its temporary files on this signal,
	// but whoever runs in the background may have learned to ignore it.
	_ = syscall.Kill(0, syscall.SIGINT)
	<-time.After(patience)
	_ = syscall.Kill(0, syscall.SIGKILL)
}

func startGuard() (*guard, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("find the program for the guard of the build: %w", err)
	}
	cmd := exec.Command(self)
	cmd.Args = []string{"build-guard"}
	cmd.Env = append(os.Environ(), guardEnv+"=yes")
	cmd.Dir = "/"
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	pipe, err := cmd.StdinPipe()
	if err != nil {
		return nil, fmt.Errorf("open pipe to the guard of the build: %w", err)
	}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("start guard of the build: %w", err)
	}
	return &guard{cmd: cmd, pipe: pipe}, nil
}

// endWithParent makes cmd end with this process, and with its context.
func (g *guard) endWithParent(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pgid: g.cmd.Process.Pid}
	cmd.Cancel = g.pipe.Close
}

// endAll ends everything that still runs, and the guard.
func (g *guard) endAll() {
	_ = syscall.Kill(-g.cmd.Process.Pid, syscall.SIGKILL)
	_ = g.cmd.Wait() // it has ended by that signal
}
