package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"syscall"
	"time"

	"github.com/kwok-dra/kwok-dra/test/cluster"
)

// countArgument has the suite run a command and reap all processes that it leaves
// behind, such as those of a cluster: a system adds up the CPU time of reaped
// processes only. countTestsArgument has it note that time as the time of tests.
const (
	countArgument      = "count-cpu-of"
	countTestsArgument = "count-cpu-of-tests"
)

// testsTime begins the lines of tests in the file of cluster.TimesEnv.
const testsTime = "tests"

// countedCommand returns the command that runs another one for its CPU time.
func countedCommand(command []string) ([]string, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("find the program that counts CPU time: %w", err)
	}
	return append([]string{self, countArgument}, command...), nil
}

// runCounted runs a command as one of the arguments above says, and returns its exit
// status.
func runCounted(argument string, command []string) int {
	status, err := reapUntilEnd(command)
	if err == nil && argument == countTestsArgument {
		var used syscall.Rusage
		err = errors.Join(syscall.Getrusage(syscall.RUSAGE_CHILDREN, &used),
			cluster.AppendTime(testsTime, time.Duration(used.Utime.Nano()+used.Stime.Nano())))
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "suite:", err)
		return 1
	}
	return status
}

func reapUntilEnd(command []string) (int, error) {
	if err := reapOrphans(); err != nil {
		return 0, fmt.Errorf("become the reaper of %s: %w", command[0], err)
	}
	program, err := exec.LookPath(command[0])
	if err != nil {
		return 0, fmt.Errorf("find %s: %w", command[0], err)
	}
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, os.Interrupt, syscall.SIGQUIT) // by which go test ends tests that hang
	child, err := os.StartProcess(program, command, &os.ProcAttr{
		Files: []*os.File{os.Stdin, os.Stdout, os.Stderr},
		// A group of its own, for go test waits for tests that have not been interrupted.
		Sys: &syscall.SysProcAttr{Setpgid: true},
	})
	if err != nil {
		return 0, fmt.Errorf("start %s: %w", program, err)
	}
	go func() {
		for received := range signals {
			_ = syscall.Kill(-child.Pid, received.(syscall.Signal))
		}
	}()
	for {
		var status syscall.WaitStatus
		pid, err := syscall.Wait4(-1, &status, 0, nil)
		switch {
		case errors.Is(err, syscall.EINTR):
		case err != nil:
			return 0, fmt.Errorf("wait for %s: %w", program, err)
		case pid != child.Pid:
		case status.Signaled():
			return 0, fmt.Errorf("run %s: ended by signal %v", program, status.Signal())
		default:
			return status.ExitStatus(), nil
		}
	}
}
