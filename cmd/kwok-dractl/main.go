// Command kwok-dractl checks, renders, generates, schedules and shows fake
// devices. Under the name kubectl-dra it is a plugin of kubectl.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/kwok-dra/kwok-dra/internal/dractl"
	"github.com/kwok-dra/kwok-dra/internal/dractl/cli"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	name, arguments := cli.Called(os.Args)
	command := dractl.New(name, cli.Streams{In: os.Stdin, Out: os.Stdout, ErrOut: os.Stderr})
	command.SetArgs(arguments)
	err := command.ExecuteContext(ctx)
	stop()
	code := cli.ExitCode(err)
	if code == cli.ExitFailed {
		fmt.Fprintf(os.Stderr, "%s: %v\n", name, err)
	}
	os.Exit(code)
}
