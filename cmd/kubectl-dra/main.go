// Command kubectl-dra is a plugin of kubectl: it says which Pod has which device, and why Pods wait for
// devices, on any cluster.
package main

import (
	"fmt"
	"os"

	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/kwok-dra/kwok-dra/internal/dractl/cli"
	"github.com/kwok-dra/kwok-dra/internal/kubectldra"
	"github.com/kwok-dra/kwok-dra/internal/kubectldra/reading"
)

func main() {
	reading.SetMemoryBudget()
	ctx, stop := cli.ContextOfSignals()
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
