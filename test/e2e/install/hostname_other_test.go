//go:build !linux

package install

import (
	"errors"
	"os/exec"
	"testing"
)

func onHost(*exec.Cmd, string) error {
	return errors.New("only Linux lets processes have a host's name of their own")
}

func requireHostNames(t *testing.T) {
	t.Helper()
	t.Skip("only Linux lets processes have a host's name of their own")
}
