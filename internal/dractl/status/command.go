package status

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	resourcev1 "k8s.io/api/resource/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/kubernetes"

	"github.com/kwok-dra/kwok-dra/internal/dractl/cli"
	"github.com/kwok-dra/kwok-dra/internal/dractl/cluster"
	"github.com/kwok-dra/kwok-dra/internal/dractl/follow"
	"github.com/kwok-dra/kwok-dra/internal/dractl/output"
)

// command is what the user asks for.
type command struct {
	streams cli.Streams
	reach   *cluster.Flags
	watch   bool
	filter  filter
	output  output.Flag
	// attributes are shown in columns of their own, and noHeaders leaves out all but rows.
	attributes []string
	noHeaders  bool
	// name is what the user types to run the program, and namespace that of the context.
	name, namespace string
	// toldUnseen says that the user knows what could not be read.
	toldUnseen bool
}

// New makes the command and those below it.
func New(streams cli.Streams, reach *cluster.Flags) *cobra.Command {
	c := &command{streams: streams, reach: reach}
	made := &cobra.Command{
		Use:   "status [--watch]",
		Short: "Show the pools of a cluster, and the Pods that wait for devices.",
		Long: `Show the devices of each product, the pools with problems, the Pods that wait for
devices, to be bound, or for their claims to be prepared, and the other pools of a
cluster. Pods that have one owner and wait for the same are shown together. The last
line names the command that says more.

Each device is counted in one state: the first that applies of tainted
(NoSchedule or NoExecute), failing, prepared, allocated, blocked and free. A device
is prepared if its driver says in the claim that it is ready, or if the claim's Pod
has passed its preparation: some drivers write nothing. It is failing if preparing
fails, or its driver says that it is not ready. It is blocked if no claim has it, but
its node is not Ready, or others have the counters that it needs, such as a GPU that
is taken whole and its partitions. Parts of a device are counted apart from whole ones. Taints are those
that the driver publishes, and those of DeviceTaintRules.
A device that a claim has and no slice publishes any more is gone: it is listed with
its claim and Pods, and no other column counts it. The scheduler allocates nothing
from an incomplete pool. On a terminal such a pool is red.

USED counts whole devices: all that draws on one counter set is one, by its counter
memory, or else the counter of which the most is taken. Of a device that claims
share, the capacity counts of which the most is taken.

` + tableHelp + `

With --watch, a terminal shows as much of this as it has room for, once a second at
most; ^C ends it. Elsewhere all of it is printed again whenever something is
different, and -o json and yaml print another document. A line says so if there have
been no updates for 10 seconds.

The command reads what every driver publishes, so it works with real drivers too. It
lists resourceslices, resourceclaims, pods, events and nodes, and watches them for
--watch. Where it may not list devicetaintrules it says so, and shows no taints of
them. Where it may not list nodes it says so, and shows all as Ready.`,
		Example: `  # What is there, and what is free?
  kwok-dractl status

  # What needs attention?
  kwok-dractl status --problems

  # The pools of a driver, and of nodes with a label
  kwok-dractl status --driver gpu.nvidia.com
  kwok-dractl status -l nvidia.com/gpu.present=true

  # Pools with failing or tainted devices, and the versions of their drivers
  kwok-dractl status --state failing,tainted -L driverVersion

  # For programs
  kwok-dractl status -o json`,
		Args: cli.Subcommand,
		RunE: func(made *cobra.Command, _ []string) error { return c.runOverview(c.rememberName(made)) },
	}
	c.output.AddTo(made, output.Table, output.Wide, output.JSON, output.YAML)
	c.addFlags(made)
	c.addDeviceFlags(made, "pools that have devices")
	c.filter.addFilterFlags(made, reach)
	made.AddCommand(newNode(streams, reach), newClaim(streams, reach))
	return made
}

// tableHelp says how wide tables are.
const tableHelp = `A table is as wide as COLUMNS says, or else as the terminal: columns that matter least
are left out, and text is wrapped, but no name is cut. -o wide has all columns. In a
pipe each row is one line.`

func (c *command) addFlags(made *cobra.Command) {
	made.Flags().BoolVarP(&c.watch, "watch", "w", false, "show it again whenever it changes, on a terminal in place")
	made.Flags().BoolVar(&c.noHeaders, "no-headers", false, "print rows only: no titles, headers or last line")
}

func (c *command) addDeviceFlags(made *cobra.Command, what string) {
	made.Flags().VarP(&c.filter.states, "state", "", "show only "+what+" in one of these states: "+strings.Join(stateNames(), ", "))
	made.Flags().StringSliceVarP(&c.attributes, "attribute-columns", "L", nil, "attributes of devices to show as columns, by their names with or without domain")
	// It fails only for a flag that does not exist.
	_ = made.RegisterFlagCompletionFunc("state", cobra.FixedCompletions(stateNames(), cobra.ShellCompDirectiveNoFileComp))
}

// rememberName remembers how the user calls the program, for the commands that are suggested.
func (c *command) rememberName(made *cobra.Command) context.Context {
	c.name = made.Root().CommandPath()
	return made.Context()
}

func newNode(streams cli.Streams, reach *cluster.Flags) *cobra.Command {
	c := &command{streams: streams, reach: reach}
	made := &cobra.Command{
		Use:   "node NAME",
		Short: "Show the devices of a node, and the Pods that have them.",
		Long: `Show the devices of a node's own pools, and the Pods that have them. Parts of a
device, which draw on the same counter set, are below it. REASON says why a device
cannot be used: its taints, why preparing fails, that the node is not Ready, or which
devices have taken the counters that it needs.

Product, memory and UUID of a device are attributes and capacities that its driver
publishes under one of the names that drivers use for them. The UUID, or serial number
or MAC address, is one that no other device in the cluster has. -o wide and -o json
have all attributes.

` + tableHelp,
		Example: `  # Which Pod has which device?
  kwok-dractl status node h100-0

  # With the driver, the pool and all attributes
  kwok-dractl status node h100-0 -o wide

  # The free devices, and on which NUMA node they are
  kwok-dractl status node h100-0 --state free -L numaNode

  # Live
  kwok-dractl status node h100-0 --watch`,
		Args:              cli.OneArgument("NAME"),
		ValidArgsFunction: reach.CompleteNodes,

		RunE: func(made *cobra.Command, args []string) error { return c.runNode(c.rememberName(made), args[0]) },
	}
	c.output.AddTo(made, output.Table, output.Wide, output.JSON, output.YAML)
	c.addFlags(made)
	c.addDeviceFlags(made, "devices")
	return made
}

func newClaim(streams cli.Streams, reach *cluster.Flags) *cobra.Command {
	c := &command{streams: streams, reach: reach}
	made := &cobra.Command{
		Use:   "claim NAME",
		Short: "Show the steps of a claim from its creation until its Pods run, with their times.",
		Long: `Show the steps of a claim from its creation until its Pods run, with their times.

The steps are from the claim, the conditions of its devices, the Pods that it is
reserved for and their containers, and events, in the order in which they happened.
Most times in the API are whole seconds, and so is AFTER, the time since the first
step. TIME has fractions of a second where the API has them, as in the scheduler's
events. The time of the allocation is in the claim, or else it is the time at which
the scheduler last wrote its status. The claim is prepared for a Pod since its
condition PodReadyToStartContainers is True. What the API does not keep is <unknown>:
of several Pods, when the claim was reserved for each.`,
		Example: `  # Where is the time lost?
  kwok-dractl status claim training

  kwok-dractl status claim training -n default -o json

  # Live
  kwok-dractl status claim training --watch`,
		Args:              cli.OneArgument("NAME"),
		ValidArgsFunction: reach.CompleteClaims,

		RunE: func(made *cobra.Command, args []string) error { return c.runClaim(c.rememberName(made), args[0]) },
	}
	c.output.AddTo(made, output.Table, output.JSON, output.YAML)
	c.addFlags(made)
	return made
}

func (c *command) runOverview(ctx context.Context) error {
	if _, err := labels.Parse(c.filter.selector); err != nil {
		return fmt.Errorf("parse -l %q: %w: write it as kubectl get nodes -l does, such as key=value", c.filter.selector, err)
	}
	client, err := c.reach.Client()
	if err != nil {
		return err
	}
	if c.namespace, err = c.reach.DefaultNamespace(); err != nil {
		return err
	}
	if !c.filter.all {
		c.filter.namespace = c.reach.Namespace
	}
	if c.watch {
		l := follow.NewCluster(client, c.filter.selector)
		return c.followChanges(ctx, l, func(ctx context.Context) *view { return c.viewOverview(ctx, liveWorld(l, c.filter.selector != "")) })
	}
	w, err := c.readWorld(ctx, client, c.filter.selector)
	if err != nil {
		return err
	}
	if err := c.checkNodes(ctx, client, w); err != nil {
		return err
	}
	return c.showView(c.viewOverview(ctx, w))
}

// reading is what takes long with a large cluster.
const reading = "reading the cluster"

func (c *command) readWorld(ctx context.Context, client kubernetes.Interface, selector string) (*world, error) {
	defer c.streams.Progress(reading, 0).Done()
	return readCluster(ctx, client, selector)
}

// checkNodes refuses --node with a node that does not exist.
func (c *command) checkNodes(ctx context.Context, client kubernetes.Interface, w *world) error {
	for _, name := range c.filter.nodes {
		publishes := func(s *resourcev1.ResourceSlice) bool { return s.Spec.NodeName != nil && *s.Spec.NodeName == name }
		if slices.ContainsFunc(w.Slices, publishes) {
			continue
		}
		if err := checkNodeExists(ctx, client, name); err != nil {
			return err
		}
	}
	return nil
}

func (c *command) runNode(ctx context.Context, name string) error {
	client, err := c.reach.Client()
	if err != nil {
		return err
	}
	if c.watch {
		if err := checkNodeExists(ctx, client, name); err != nil {
			return err
		}
		l := follow.NewNode(client, name)
		return c.followChanges(ctx, l, func(context.Context) *view { return c.viewNode(liveWorld(l, false), name) })
	}
	w, err := c.readWorld(ctx, client, "")
	if err != nil {
		return err
	}
	shown := c.viewNode(w, name)
	if shown.nothing != "" {
		if err := checkNodeExists(ctx, client, name); err != nil {
			return err
		}
	}
	return c.showView(shown)
}

// checkNodeExists fails for a node that does not exist, and names the node that may be meant.
func checkNodeExists(ctx context.Context, client kubernetes.Interface, name string) error {
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
	return cli.NotFound(fmt.Sprintf("there is no node %q", name), name, names, "list them with kubectl get nodes")
}

func (c *command) runClaim(ctx context.Context, name string) error {
	namespace, err := c.reach.DefaultNamespace()
	if err != nil {
		return err
	}
	client, err := c.reach.Client()
	if err != nil {
		return err
	}
	if c.watch {
		if _, err := getClaim(ctx, client, namespace, name); err != nil {
			return err
		}
		l := follow.NewClaim(client, namespace, name)
		return c.followChanges(ctx, l, func(context.Context) *view { return viewClaim(l, namespace, name) })
	}
	progress := c.streams.Progress(reading, 0)
	s, err := readStory(ctx, client, namespace, name)
	progress.Done()
	if err != nil {
		return err
	}
	return c.showView(viewSteps(s.ListSteps()))
}
