// Command kwok-dractl checks, renders, generates, schedules and shows fake
// devices.
package main

import (
	"fmt"
	"os"

	"github.com/kwok-dra/kwok-dra/internal/dractl"
	"github.com/kwok-dra/kwok-dra/internal/dractl/cli"
)

func main() {
	ctx, stop := cli.ContextOfSignals()
	command := dractl.New(cli.Streams{In: os.Stdin, Out: os.Stdout, ErrOut: os.Stderr})
	err := command.ExecuteContext(ctx)
	stop()
	code := cli.ExitCode(err)
	if code == cli.ExitFailed {
		fmt.Fprintf(os.Stderr, "%s: %v\n", cli.Name, err)
	}
	os.Exit(code)
}
