package status

import (
	"context"
	"fmt"
	"os"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/kwok-dra/kwok-dra/pkg/dractl/cli"
	"github.com/kwok-dra/kwok-dra/pkg/dractl/cluster"
	"github.com/kwok-dra/kwok-dra/pkg/dractl/output"
)

// command is what the user asks for.
type command struct {
	streams cli.Streams
	reach   *cluster.Flags
	watch   bool
	output  output.Flag
}

// New makes the command and those below it.
func New(streams cli.Streams, reach *cluster.Flags) *cobra.Command {
	c := &command{streams: streams, reach: reach}
	made := &cobra.Command{
		Use:   "status [--watch]",
		Short: "Show the pools of a cluster, and the Pods that wait for their claims to be prepared",
		Long: `Show the pools of a cluster, and the Pods that wait for their claims to be prepared.

Of each pool's devices it shows how many are in which state: the first that is
true of tainted (NoSchedule or NoExecute), prepared, allocated and free. A device
is prepared when its driver says in the claim that it is ready, or when the
claim's Pod is past its preparation: some drivers say nothing. From an
incomplete pool the scheduler allocates nothing; on a terminal it is red.

It reads what every driver publishes, so it works with real ones too. It needs
to list resourceslices, resourceclaims, pods and events, and to watch them for
--watch.`,
		Example: `  # What is there, and what is free?
  kwok-dractl status

  # The same, live
  kwok-dractl status --watch

  # For programs
  kwok-dractl status -o json`,
		Args: cobra.NoArgs,
		RunE: func(made *cobra.Command, _ []string) error { return c.overview(made.Context()) },
	}
	c.output.AddTo(made, output.Table, output.Wide, output.JSON, output.YAML)
	made.Flags().BoolVarP(&c.watch, "watch", "w", false, "show it again whenever it changes")
	made.AddCommand(newNode(streams, reach), newClaim(streams, reach))
	return made
}

func newNode(streams cli.Streams, reach *cluster.Flags) *cobra.Command {
	c := &command{streams: streams, reach: reach}
	made := &cobra.Command{
		Use:   "node NAME",
		Short: "Show the devices of a node, and the Pods that have them",
		Long: `Show the devices of a node's own pools, and the Pods that have them.

What a device is called, has for memory and for a unique number is what its driver
publishes under the names that drivers use for these.`,
		Example: `  # Which Pod has which device?
  kwok-dractl status node h100-0

  # With the driver, the pool and taints
  kwok-dractl status node h100-0 -o wide`,
		Args: cobra.ExactArgs(1),
		RunE: func(made *cobra.Command, args []string) error { return c.node(made.Context(), args[0]) },
	}
	c.output.AddTo(made, output.Table, output.Wide, output.JSON, output.YAML)
	return made
}

func newClaim(streams cli.Streams, reach *cluster.Flags) *cobra.Command {
	c := &command{streams: streams, reach: reach}
	made := &cobra.Command{
		Use:   "claim NAME",
		Short: "Show the way of a claim from its creation to its preparation, with the time of each step",
		Long: `Show the way of a claim from its creation to its preparation, with the time of
each step: from the claim, the conditions of its devices, the Pods that it is
reserved for, and events. When it was allocated is known from the claim, or else
from when the scheduler last wrote its status.`,
		Example: `  # Where is the time lost?
  kwok-dractl status claim training

  kwok-dractl status claim training -n default -o json`,
		Args: cobra.ExactArgs(1),
		RunE: func(made *cobra.Command, args []string) error { return c.claim(made.Context(), args[0]) },
	}
	c.output.AddTo(made, output.Table, output.JSON, output.YAML)
	return made
}

func (c *command) overview(ctx context.Context) error {
	client, err := c.reach.Client()
	if err != nil {
		return err
	}
	if c.watch {
		return c.follow(ctx, client)
	}
	w, err := read(ctx, client)
	if err != nil {
		return err
	}
	return c.show(w)
}

func (c *command) show(w *world) error {
	if c.asValue() {
		return output.Value(c.streams.Out, c.output.Format, w.overview())
	}
	return w.overview().print(c.streams.Out, c.output.Format, c.onTerminal() && os.Getenv("NO_COLOR") == "")
}

func (c *command) asValue() bool {
	return c.output.Format == output.JSON || c.output.Format == output.YAML
}

// onTerminal tells whether a person sees what is written.
func (c *command) onTerminal() bool {
	file, is := c.streams.Out.(*os.File)
	if !is {
		return false
	}
	info, err := file.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}

func (c *command) node(ctx context.Context, name string) error {
	client, err := c.reach.Client()
	if err != nil {
		return err
	}
	w, err := read(ctx, client)
	if err != nil {
		return err
	}
	devices := w.devices(name)
	if len(devices) == 0 {
		return c.noDevices(ctx, client, name)
	}
	if c.asValue() {
		return output.Value(c.streams.Out, c.output.Format, devices)
	}
	return printDevices(c.streams.Out, c.output.Format, devices)
}

// noDevices tells a node without devices from one that there is not.
func (c *command) noDevices(ctx context.Context, client kubernetes.Interface, name string) error {
	if _, err := client.CoreV1().Nodes().Get(ctx, name, metav1.GetOptions{}); err != nil {
		return fmt.Errorf("get node %s: %w", name, err)
	}
	if c.asValue() {
		return output.Value(c.streams.Out, c.output.Format, []Device{})
	}
	c.streams.Tell("node %s has no devices of its own\n", name)
	return nil
}

func (c *command) claim(ctx context.Context, name string) error {
	namespace, err := c.reach.DefaultNamespace()
	if err != nil {
		return err
	}
	client, err := c.reach.Client()
	if err != nil {
		return err
	}
	steps, err := path(ctx, client, namespace, name)
	if err != nil {
		return err
	}
	if c.asValue() {
		return output.Value(c.streams.Out, c.output.Format, steps)
	}
	return printSteps(c.streams.Out, c.output.Format, steps)
}
