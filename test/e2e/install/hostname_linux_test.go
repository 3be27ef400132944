package install

import (
	"fmt"
	"os"
	"os/exec"
	"syscall"
	"testing"
)

// hostVariable has the tests' program not run the tests, but take the host's name
// from it and become the program that its arguments name. Only a process in a
// namespace of its own may name its host.
const hostVariable = "TEST_INSTALL_HOST"

func TestMain(m *testing.M) {
	if host := os.Getenv(hostVariable); host != "" {
		fmt.Fprintln(os.Stderr, become(host, os.Args[1:]))
		os.Exit(1)
	}
	os.Exit(m.Run())
}

// become returns only where it fails.
func become(host string, arguments []string) error {
	if err := syscall.Sethostname([]byte(host)); err != nil {
		return fmt.Errorf("name the host %s: %w", host, err)
	}
	if err := os.Unsetenv(hostVariable); err != nil {
		return err
	}
	return fmt.Errorf("start %s: %w", arguments[0], syscall.Exec(arguments[0], arguments, os.Environ()))
}

// onHost has a command that has not been started see another name of its host.
func onHost(command *exec.Cmd, host string) error {
	self, err := os.Executable()
	if err != nil {
		return fmt.Errorf("find the tests' program: %w", err)
	}
	command.Args = append([]string{self}, command.Args...)
	command.Path = self
	command.Env = append(command.Env, hostVariable+"="+host)
	command.SysProcAttr.Cloneflags = syscall.CLONE_NEWUSER | syscall.CLONE_NEWUTS
	command.SysProcAttr.UidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getuid(), Size: 1}}
	command.SysProcAttr.GidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getgid(), Size: 1}}
	return nil
}

// requireHostNames skips the test where the machine does not let processes have
// namespaces of their own.
func requireHostNames(t *testing.T) {
	t.Helper()
	try := exec.Command("/bin/true")
	try.SysProcAttr = &syscall.SysProcAttr{}
	if err := onHost(try, "a"); err != nil {
		t.Fatal(err)
	}
	if output, err := try.CombinedOutput(); err != nil {
		t.Skipf("this machine does not let processes have a host's name of their own: %v %s", err, output)
	}
}
