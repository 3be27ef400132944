package kubectldra

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/kwok-dra/kwok-dra/internal/dractl/cli"
	"github.com/kwok-dra/kwok-dra/internal/kubectldra/check"
	"github.com/kwok-dra/kwok-dra/internal/kubectldra/claim"
	"github.com/kwok-dra/kwok-dra/internal/kubectldra/claims"
	"github.com/kwok-dra/kwok-dra/internal/kubectldra/devices"
	"github.com/kwok-dra/kwok-dra/internal/kubectldra/fit"
	"github.com/kwok-dra/kwok-dra/internal/kubectldra/nodes"
	"github.com/kwok-dra/kwok-dra/internal/kubectldra/overview"
	"github.com/kwok-dra/kwok-dra/internal/kubectldra/pods"
	"github.com/kwok-dra/kwok-dra/internal/kubectldra/reading"
	"github.com/kwok-dra/kwok-dra/internal/kubectldra/why"
	"github.com/kwok-dra/kwok-dra/internal/util/version"
)

// New makes the command with all below it.
func New(streams genericiooptions.IOStreams) *cobra.Command {
	command := &cobra.Command{
		Use:         "kubectl-dra",
		Annotations: map[string]string{cobra.CommandDisplayNameAnnotation: "kubectl dra"},
		Short:       "Show which Pod has which device, and why Pods wait for devices.",
		Long: `Show which Pod has which device, and why Pods wait for devices. The plugin reads
ResourceSlices, ResourceClaims, DeviceClasses, Pods, Nodes and events of any cluster
with dynamic resource allocation, whatever its drivers, and writes nothing.

Exit codes:
  0  success
  1  the answer is no: a Pod does not fit, or there are problems
  2  the command failed`,
		Version: version.Get(),
		Args:    refuseUnknownCommand,
		RunE:    func(command *cobra.Command, _ []string) error { return command.Help() },

		SilenceErrors: true,
		SilenceUsage:  true,
	}
	command.SetIn(streams.In)
	command.SetOut(streams.Out)
	command.SetErr(streams.ErrOut)
	command.SetFlagErrorFunc(cli.FlagError)
	command.CompletionOptions.SetDefaultShellCompDirective(cobra.ShellCompDirectiveNoFileComp)
	reach := reading.NewFlags()
	reach.AddTo(command)
	command.AddCommand(
		check.New(reach, streams),
		claim.New(reach, streams),
		claims.New(reach, streams),
		devices.New(reach, streams),
		fit.New(reach, streams),
		nodes.New(reach, streams),
		overview.New(reach, streams),
		pods.New(reach, streams),
		why.New(reach, streams),
	)
	return command
}

// ArgumentsOf returns the arguments of a process. kubectl completes the arguments of a plugin with a program
// named kubectl_complete-dra, which gets what the user has typed so far.
func ArgumentsOf(process []string) []string {
	if strings.TrimSuffix(filepath.Base(process[0]), ".exe") == "kubectl_complete-dra" {
		return slices.Concat([]string{cobra.ShellCompRequestCmd}, process[1:])
	}
	return process[1:]
}

// answeredBy names the commands that answer what users ask kwok-dractl.
var answeredBy = map[string]string{"status": "overview", "pod": "pods", "node": "nodes", "device": "devices", "schedule": "fit"}

// fleetCommands need a fleet of fake nodes, or describe one.
var fleetCommands = []string{"check-driver", "delete", "diff", "generate", "record", "render", "scale", "validate"}

func refuseUnknownCommand(command *cobra.Command, arguments []string) error {
	if len(arguments) == 0 {
		return nil
	}
	if known := answeredBy[arguments[0]]; known != "" {
		return fmt.Errorf("unknown command %q: use %s %s", arguments[0], command.CommandPath(), known)
	}
	if slices.Contains(fleetCommands, arguments[0]) {
		return fmt.Errorf("unknown command %q: it is a command for fake nodes: use %s %s", arguments[0], cli.Name, arguments[0])
	}
	return cli.Subcommand(command, arguments)
}
