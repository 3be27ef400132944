// Command kubectl-dra is a plugin of kubectl: it says which Pod has which device, and why Pods wait for
// devices, on any cluster.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"runtime/debug"
	"syscall"

	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/kwok-dra/kwok-dra/internal/dractl/cli"
	"github.com/kwok-dra/kwok-dra/internal/kubectldra"
)

// The heap of a short-lived process grows up to its budget before much of it is collected.
const (
	memoryBudget = 200 << 20
	growth       = 300
)

func main() {
	debug.SetMemoryLimit(memoryBudget)
	debug.SetGCPercent(growth)
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	command := kubectldra.New(genericiooptions.IOStreams{In: os.Stdin, Out: os.Stdout, ErrOut: os.Stderr})
	command.SetArgs(kubectldra.ArgumentsOf(os.Args))
	err := command.ExecuteContext(ctx)
	stop()
	code := cli.ExitCode(err)
	if code == cli.ExitFailed {
		fmt.Fprintf(os.Stderr, "error: %v\n", err)
	}
	os.Exit(code)
}
