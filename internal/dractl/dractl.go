package dractl

import (
	"github.com/spf13/cobra"

	"github.com/kwok-dra/kwok-dra/internal/dractl/checkautoscaler"
	"github.com/kwok-dra/kwok-dra/internal/dractl/checkdriver"
	"github.com/kwok-dra/kwok-dra/internal/dractl/checkscheduler"
	"github.com/kwok-dra/kwok-dra/internal/dractl/cli"
	"github.com/kwok-dra/kwok-dra/internal/dractl/cluster"
	"github.com/kwok-dra/kwok-dra/internal/dractl/diff"
	"github.com/kwok-dra/kwok-dra/internal/dractl/generate"
	"github.com/kwok-dra/kwok-dra/internal/dractl/pod"
	"github.com/kwok-dra/kwok-dra/internal/dractl/record"
	"github.com/kwok-dra/kwok-dra/internal/dractl/render"
	"github.com/kwok-dra/kwok-dra/internal/dractl/scale"
	"github.com/kwok-dra/kwok-dra/internal/dractl/schedule"
	"github.com/kwok-dra/kwok-dra/internal/dractl/status"
	"github.com/kwok-dra/kwok-dra/internal/dractl/validate"
	versioncommand "github.com/kwok-dra/kwok-dra/internal/dractl/version"
	"github.com/kwok-dra/kwok-dra/internal/dractl/why"
	_ "github.com/kwok-dra/kwok-dra/internal/extensions/parameters"     // it checks opaque parameters
	_ "github.com/kwok-dra/kwok-dra/internal/extensions/templatefields" // it checks what Go templates read
	"github.com/kwok-dra/kwok-dra/internal/util/version"
)

// New makes the command.
func New(streams cli.Streams) *cobra.Command {
	command := &cobra.Command{
		Use:   cli.Name,
		Short: "Scale, check, render, generate, record, schedule and show fake devices.",
		Long: `Scale, check, render, generate, record, schedule and show the fake devices of kwok-dra.

Exit codes:
  0  success
  1  the answer is no: something is invalid, there are differences, a Pod does not fit,
     a driver, a scheduler or an autoscaler fails a statement
  2  the command failed`,
		Example: `  # List the commands
  kwok-dractl --help

  # Complete commands, flags and names in bash; zsh, fish and powershell work too
  kwok-dractl completion bash > kwok-dractl.bash`,
		Version:       version.Get(),
		Args:          cli.Subcommand,
		RunE:          func(command *cobra.Command, _ []string) error { return command.Help() },
		SilenceErrors: true,
		SilenceUsage:  true,
	}
	command.SetIn(streams.In)
	command.SetOut(streams.Out)
	command.SetErr(streams.ErrOut)
	command.SetFlagErrorFunc(cli.FlagError)
	command.CompletionOptions.SetDefaultShellCompDirective(cobra.ShellCompDirectiveDefault)
	reach := &cluster.Flags{}
	reach.AddTo(command)
	command.AddCommand(
		scale.New(streams, reach),
		scale.NewDelete(streams, reach),
		schedule.New(streams, reach),
		status.New(streams, reach),
		why.New(streams, reach),
		pod.New(streams, reach),
		validate.New(streams, reach),
		render.New(streams, reach),
		diff.New(streams, reach),
		generate.New(streams, reach),
		checkdriver.New(streams, reach),
		checkscheduler.New(streams, reach),
		checkautoscaler.New(streams, reach),
		record.New(streams, reach),
		versioncommand.New(streams, reach),
	)
	return command
}
