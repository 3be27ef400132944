package status

import (
	"context"
	"fmt"
	"os"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/kwok-dra/kwok-dra/pkg/dractl/cli"
	"github.com/kwok-dra/kwok-dra/pkg/dractl/cluster"
	"github.com/kwok-dra/kwok-dra/pkg/dractl/output"
	"github.com/kwok-dra/kwok-dra/pkg/suggest"
)

// command is what the user asks for.
type command struct {
	streams cli.Streams
	reach   *cluster.Flags
	watch   bool
	filter  filter
	output  output.Flag
}

// New makes the command and those below it.
func New(streams cli.Streams, reach *cluster.Flags) *cobra.Command {
	c := &command{streams: streams, reach: reach}
	made := &cobra.Command{
		Use:   "status [--watch]",
		Short: "Show the pools of a cluster, and the Pods that wait for devices.",
		Long: `Show the totals of each driver, the pools with problems, the Pods that wait for
devices, to be bound, or for their claims to be prepared, and the other pools of a
cluster. Pods that have one owner and wait for the same are shown together;
kwok-dractl why says more of them.

Each device is counted in one state: the first that applies of tainted
(NoSchedule or NoExecute), failing, prepared, allocated, blocked and free. A device
is prepared if its driver says in the claim that it is ready, or if the claim's Pod
has passed its preparation: some drivers write nothing. It is failing if preparing
fails, or its driver says that it is not ready, and blocked if no claim has it, but
others have the counters that it needs, such as a GPU that is taken whole and its
partitions. Columns of states that no device has may be left out; -o wide has all.
The scheduler allocates nothing from an incomplete pool. On a terminal such a pool
is red.

Utilization counts whole devices: all that draws on one counter set is one, by its
counter memory, or else the counter of which the most is taken. Of a device that
claims share, the capacity counts of which the most is taken.

The command reads what every driver publishes, so it works with real drivers
too. It needs to list resourceslices, resourceclaims, pods and events, and to
watch them for --watch.`,
		Example: `  # What is there, and what is free?
  kwok-dractl status

  # What needs attention?
  kwok-dractl status --problems

  # The pools of a driver, and of a node
  kwok-dractl status --driver gpu.nvidia.com
  kwok-dractl status --node h100-0

  # Live
  kwok-dractl status --watch

  # For programs
  kwok-dractl status -o json`,
		Args: cli.Subcommand,
		RunE: func(made *cobra.Command, _ []string) error { return c.overview(made.Context()) },
	}
	c.output.AddTo(made, output.Table, output.Wide, output.JSON, output.YAML)
	made.Flags().BoolVarP(&c.watch, "watch", "w", false, "show the tables again whenever they change")
	c.filter.addTo(made, reach)
	made.AddCommand(newNode(streams, reach), newClaim(streams, reach))
	return made
}

func newNode(streams cli.Streams, reach *cluster.Flags) *cobra.Command {
	c := &command{streams: streams, reach: reach}
	made := &cobra.Command{
		Use:   "node NAME",
		Short: "Show the devices of a node, and the Pods that have them.",
		Long: `Show the devices of a node's own pools, and the Pods that have them. Parts of a
device, which draw on the same counter set, are below it.

Product, memory and UUID of a device are attributes and capacities that its driver
publishes under one of the names that drivers use for them.`,
		Example: `  # Which Pod has which device?
  kwok-dractl status node h100-0

  # With the driver, the pool, taints and what blocks a device
  kwok-dractl status node h100-0 -o wide`,
		Args:              cli.OneArgument("NAME"),
		ValidArgsFunction: reach.CompleteNodes,

		RunE: func(made *cobra.Command, args []string) error { return c.node(made.Context(), args[0]) },
	}
	c.output.AddTo(made, output.Table, output.Wide, output.JSON, output.YAML)
	return made
}

func newClaim(streams cli.Streams, reach *cluster.Flags) *cobra.Command {
	c := &command{streams: streams, reach: reach}
	made := &cobra.Command{
		Use:   "claim NAME",
		Short: "Show the steps of a claim from its creation to its preparation, with their times.",
		Long: `Show the steps of a claim from its creation to its preparation, with their times.

The steps are from the claim, the conditions of its devices, the Pods that it is
reserved for, and events, in the order in which they happened. Most times in
the API are whole seconds. Fractions of a second are shown where the API has them,
as in the scheduler's events. The time of the allocation is in the claim, or else it is
the time at which the scheduler last wrote its status. The claim is prepared for a
Pod since its condition PodReadyToStartContainers is True. What the API does not keep
is <unknown>: of several Pods, when the claim was reserved for each.`,
		Example: `  # Where is the time lost?
  kwok-dractl status claim training

  kwok-dractl status claim training -n default -o json`,
		Args:              cli.OneArgument("NAME"),
		ValidArgsFunction: reach.CompleteClaims,

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
	w, err := c.read(ctx, client)
	if err != nil {
		return err
	}
	if err := c.checkNodes(ctx, client, w); err != nil {
		return err
	}
	if err := c.show(ctx, w); err != nil {
		return err
	}
	c.tellNothing(ctx, w)
	return nil
}

// reading is what takes long with a large cluster.
const reading = "reading the cluster"

func (c *command) read(ctx context.Context, client kubernetes.Interface) (*world, error) {
	defer c.streams.Progress(reading, 0).Done()
	return read(ctx, client)
}

// checkNodes refuses --node with a node that does not exist.
func (c *command) checkNodes(ctx context.Context, client kubernetes.Interface, w *world) error {
	for _, name := range c.filter.nodes {
		if !w.publishes(name) {
			if err := exists(ctx, client, name); err != nil {
				return err
			}
		}
	}
	return nil
}

// tellNothing tells the user why nothing is shown.
func (c *command) tellNothing(ctx context.Context, w *world) {
	shown := w.overview(ctx, &c.filter)
	switch {
	case len(w.slices) == 0:
		c.streams.Tell("no driver has published a ResourceSlice\n")
	case len(shown.Totals) == 0:
		c.streams.Tell("no pool matches %s\n", c.filter.unmatched(w))
	case c.filter.problems && len(shown.Pools)+len(shown.Waiting) == 0:
		c.streams.Tell("no problems\n")
	}
}

func (c *command) show(ctx context.Context, w *world) error {
	if c.asValue() {
		return output.Value(c.streams.Out, c.output.Format, w.overview(ctx, &c.filter))
	}
	return w.overview(ctx, &c.filter).print(c.streams.Out, c.output.Format, c.onTerminal() && os.Getenv("NO_COLOR") == "")
}

func (c *command) asValue() bool {
	return c.output.Format == output.JSON || c.output.Format == output.YAML
}

// onTerminal reports whether a person sees what is written.
func (c *command) onTerminal() bool {
	file, ok := c.streams.Out.(*os.File)
	if !ok {
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
	w, err := c.read(ctx, client)
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

// noDevices tells a node without devices from one that does not exist.
func (c *command) noDevices(ctx context.Context, client kubernetes.Interface, name string) error {
	if err := exists(ctx, client, name); err != nil {
		return err
	}
	if c.asValue() {
		return output.Value(c.streams.Out, c.output.Format, []Device{})
	}
	c.streams.Tell("node %s has no devices of its own\n", name)
	return nil
}

// exists is an error for a node that does not exist, with what may be meant.
func exists(ctx context.Context, client kubernetes.Interface, name string) error {
	_, err := client.CoreV1().Nodes().Get(ctx, name, metav1.GetOptions{})
	if err == nil {
		return nil
	}
	if !apierrors.IsNotFound(err) {
		return fmt.Errorf("get node %s: %w", name, err)
	}
	list, listErr := client.CoreV1().Nodes().List(ctx, metav1.ListOptions{ResourceVersion: "0"})
	if listErr != nil {
		return fmt.Errorf("get node %s: %w", name, err)
	}
	names := make([]string, len(list.Items))
	for i := range list.Items {
		names[i] = list.Items[i].Name
	}
	if nearest := suggest.Nearest(name, names); nearest != "" {
		return fmt.Errorf("there is no node %q: did you mean %s?", name, nearest)
	}
	return fmt.Errorf("there is no node %q: list them with kubectl get nodes", name)
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
	progress := c.streams.Progress(reading, 0)
	steps, err := path(ctx, client, namespace, name)
	progress.Done()
	if err != nil {
		return err
	}
	if c.asValue() {
		return output.Value(c.streams.Out, c.output.Format, steps)
	}
	return printSteps(c.streams.Out, c.output.Format, steps)
}
