package cli

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestExitCode(t *testing.T) {
	t.Parallel()
	require.Equal(t, 0, ExitCode(nil))
	require.Equal(t, 1, ExitCode(fmt.Errorf("two Pods: %w", ErrNegative)))
	require.Equal(t, 2, ExitCode(errors.New("no cluster")))
	unread := &fs.PathError{Op: "write", Path: "/dev/stdout", Err: syscall.EPIPE}
	require.Equal(t, 141, ExitCode(unread))
	require.Equal(t, 141, ExitCode(errors.Join(nil, unread)))
	require.Equal(t, 2, ExitCode(errors.Join(unread, errors.New("a node is left"))), "what else has failed is printed")
	require.Equal(t, 2, ExitCode(&net.OpError{Op: "write", Net: "tcp", Err: os.NewSyscallError("write", syscall.EPIPE)}))
}
