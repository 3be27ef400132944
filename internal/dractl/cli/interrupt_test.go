package cli

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"os/exec"
	"os/signal"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
)

// runsCommand is in the environment of a process of TestSignals.
const runsCommand = "KWOK_DRACTL_RUNS_COMMAND"

func TestMain(m *testing.M) {
	if os.Getenv(runsCommand) == "" {
		os.Exit(m.Run())
	}
	ctx, stop := ContextOfSignals()
	var err error
	for err == nil && ctx.Err() == nil {
		_, err = fmt.Println("runs")
		select {
		case <-ctx.Done():
		case <-time.After(time.Millisecond):
		}
	}
	stop()
	fmt.Fprintln(os.Stderr, "cleans up")
	os.Exit(ExitCode(err))
}

// TestSignals stops a command in all ways, and each time it cleans up.
func TestSignals(t *testing.T) {
	t.Parallel()
	self, err := os.Executable()
	require.NoError(t, err)
	for name, c := range map[string]struct {
		arguments []string
		stop      func(command *exec.Cmd, out *bufio.Scanner, pipe io.Closer) error
		want      int
	}{
		"Ctrl-C":              {[]string{self}, signalWith(syscall.SIGINT), 0},
		"kill":                {[]string{self}, signalWith(syscall.SIGTERM), 0},
		"the terminal closes": {[]string{self}, signalWith(syscall.SIGHUP), 0},
		"the reader goes":     {[]string{self}, func(_ *exec.Cmd, _ *bufio.Scanner, pipe io.Closer) error { return pipe.Close() }, 141},
		"nohup, and Ctrl-C": {[]string{"/bin/sh", "-c", `trap "" HUP; exec "$0"`, self}, func(command *exec.Cmd, out *bufio.Scanner, _ io.Closer) error {
			if err := command.Process.Signal(syscall.SIGHUP); err != nil {
				return err
			}
			for range 100 {
				if !out.Scan() {
					return errors.New("SIGHUP has ended it")
				}
			}
			return command.Process.Signal(syscall.SIGINT)
		}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if name == "the terminal closes" && signal.Ignored(syscall.SIGHUP) {
				t.Skip("SIGHUP is ignored here, as by nohup")
			}
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			command := exec.CommandContext(ctx, c.arguments[0], c.arguments[1:]...)
			command.Env = append(os.Environ(), runsCommand+"=true")
			var errOut bytes.Buffer
			command.Stderr = &errOut
			pipe, err := command.StdoutPipe()
			require.NoError(t, err)
			require.NoError(t, command.Start())
			out := bufio.NewScanner(pipe)
			require.True(t, out.Scan())
			require.NoError(t, c.stop(command, out, pipe))
			_, _ = io.Copy(io.Discard, pipe) // until it ends
			_ = command.Wait()               // its exit code is next
			require.Equal(t, c.want, command.ProcessState.ExitCode(), errOut.String())
			require.Equal(t, "cleans up\n", errOut.String())
		})
	}
}

func signalWith(sig os.Signal) func(*exec.Cmd, *bufio.Scanner, io.Closer) error {
	return func(command *exec.Cmd, _ *bufio.Scanner, _ io.Closer) error { return command.Process.Signal(sig) }
}

func TestDropCanceled(t *testing.T) {
	t.Parallel()
	var handled []error
	handlers := dropCanceled([]utilruntime.ErrorHandler{func(_ context.Context, err error, _ string, _ ...any) {
		handled = append(handled, err)
	}})
	broken := errors.New("broken")
	for _, err := range []error{&url.Error{Op: "Get", URL: "/api/v1/nodes?watch=true", Err: context.Canceled}, broken, nil} {
		for _, handle := range handlers {
			handle(t.Context(), err, "Failed to watch")
		}
	}
	require.Equal(t, []error{broken, nil}, handled)
}
