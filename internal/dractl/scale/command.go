package scale

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/kwok-dra/kwok-dra/internal/dractl/cli"
	"github.com/kwok-dra/kwok-dra/internal/dractl/cluster"
	"github.com/kwok-dra/kwok-dra/internal/dractl/screen"
	"github.com/kwok-dra/kwok-dra/internal/dractl/target"
	"github.com/kwok-dra/kwok-dra/internal/util/suggest"
)

type command struct {
	streams cli.Streams
	reach   *cluster.Flags
	nodes   int
	timeout time.Duration
	all     bool
}

// New makes the command scale.
func New(streams cli.Streams, reach *cluster.Flags) *cobra.Command {
	c := &command{streams: streams, reach: reach}
	made := &cobra.Command{
		Use:   "scale TARGET --nodes N",
		Short: "Make, grow and shrink a fleet of fake nodes in the cluster.",
		Long: `Make, grow and shrink a fleet of fake nodes in the cluster.

TARGET says what the nodes have. It is one of these, or several joined by commas,
of which each node has all:
  nvidia-h100     a profile; kwok-dractl generate --list-profiles lists them
  ./npu.yaml      a file with templates of your own, and DeviceClasses
  npu             a template in the cluster

scale makes the templates and DeviceClasses that are missing, then nodes until there
are N, and waits until all are Ready and have their devices. Stop it with Ctrl-C; the
same command goes on where it was.

All that it makes has the label dra.kwok.x-k8s.io/scale. Nothing else is changed or
deleted: numbers of nodes that others have made are left out, and templates and
DeviceClasses of others are used as they are. If a template of others differs from the
one of the same name that the target has, or if others have changed what scale has
made, it says so and makes no nodes.

Fewer nodes are deleted: first those without Pods, of these the highest numbers.
Kubernetes deletes the Pods of deleted nodes within about a minute, and their
controllers make new ones. With --nodes 0 the templates and DeviceClasses go as well,
if no claim, claim template, Pod, other fleet or other template uses them.`,
		Example: `  # A hundred nodes with eight H100 each
  kwok-dractl scale nvidia-h100 --nodes 100

  # Two nodes with GPUs and NICs
  kwok-dractl scale amd-mi300x,rdma-nic --nodes 2

  # Nodes with hardware of your own
  kwok-dractl scale ./gpus.yaml --nodes 3

  # All of it removed
  kwok-dractl scale nvidia-h100 --nodes 0`,
		Args:              requireOneTarget,
		ValidArgsFunction: target.Complete,
		RunE:              func(command *cobra.Command, arguments []string) error { return c.runScale(command, arguments[0]) },
	}
	made.Flags().IntVar(&c.nodes, "nodes", 0, "number of nodes; 0 removes all that was made for the target")
	made.Flags().DurationVar(&c.timeout, "timeout", 2*time.Minute, "fail if there is no progress for so long; 0: do not wait for nodes to be Ready")
	return made
}

// NewDelete makes the command delete.
func NewDelete(streams cli.Streams, reach *cluster.Flags) *cobra.Command {
	c := &command{streams: streams, reach: reach}
	made := &cobra.Command{
		Use:   "delete (TARGET | --all)",
		Short: "Delete a fleet that scale or generate made.",
		Long: `Delete the fake nodes that kwok-dractl scale or generate made for a target, then its
templates and DeviceClasses, if no claim, claim template, Pod, other fleet or other
template uses them. What others made is left alone.

Kubernetes deletes the Pods of deleted nodes within about a minute.`,
		Example: `  # One fleet
  kwok-dractl delete amd-mi300x,rdma-nic

  # All fleets
  kwok-dractl delete --all`,
		Args: func(command *cobra.Command, arguments []string) error {
			switch {
			case c.all && len(arguments) > 0:
				return fmt.Errorf("--all deletes all fleets: give it or %s", arguments[0])
			case c.all:
				return nil
			}
			return requireOneTarget(command, arguments)
		},
		ValidArgsFunction: target.Complete,
		RunE: func(command *cobra.Command, arguments []string) error {
			return c.runDelete(command.Context(), strings.Join(arguments, ""))
		},
	}
	made.Flags().BoolVar(&c.all, "all", false, "delete all that scale and generate made")
	return made
}

func requireOneTarget(command *cobra.Command, arguments []string) error {
	if len(arguments) > 1 {
		return fmt.Errorf("unexpected argument %q: join targets of one node by commas: %s", arguments[1], strings.Join(arguments, ","))
	}
	return cli.OneArgument("TARGET")(command, arguments)
}

func (c *command) runScale(command *cobra.Command, name string) error {
	switch {
	case !command.Flags().Changed("nodes"):
		return fmt.Errorf("--nodes is missing: %s", command.UseLine())
	case c.nodes < 0:
		return fmt.Errorf("parse --nodes %d: must not be negative", c.nodes)
	case c.timeout < 0:
		return fmt.Errorf("parse --timeout %s: must not be negative", c.timeout)
	}
	ctx := command.Context()
	w, err := newWorld(c.reach)
	if err != nil {
		return err
	}
	seen, known, err := w.observeCluster(ctx, c.streams)
	if err != nil {
		return err
	}
	of, err := target.Read(c.streams, []string{name}, known)
	if err != nil {
		return err
	}
	if err := w.observeUsers(ctx, seen); err != nil {
		return err
	}
	plan := target.New(of, c.nodes, seen)
	if c.nodes == 0 {
		plan = target.Delete(of, seen)
	}
	if err := w.checkCarrier(plan, name); err != nil {
		return err
	}
	if len(plan.Foreign) > 0 {
		c.streams.Tell("left alone: nodes of others with names of this fleet: %s\n", cli.FirstFew(plan.Foreign, maxListed))
	}
	if plan.Different != "" {
		return fmt.Errorf("ResourcePoolTemplate %s in the cluster is of others, and differs from that of %s: rename or delete one of them", plan.Different, name)
	}
	if len(plan.Unowned) > 0 {
		c.streams.Tell("used as they are in the cluster: %s\n", cli.FirstFew(plan.Unowned, maxListed))
	}
	a := &applier{world: w, streams: c.streams, terminal: screen.Of(c.streams.ErrOut), typed: name, plan: plan, seen: seen, timeout: c.timeout}
	if c.nodes == 0 {
		return a.removeTarget(ctx, of.Name)
	}
	return a.reachCount(ctx, of, c.nodes)
}

// checkCarrier reports a cluster without the kind of a template that the plan makes.
func (w *world) checkCarrier(plan *target.Plan, name string) error {
	if w.hasTemplates {
		return nil
	}
	for _, object := range plan.Make {
		if resourceOf(object) == templateResource {
			return fmt.Errorf("make template %s: the cluster has no ResourcePoolTemplates: install kustomize/crd and give kwok-dra --enable-crds, or put the templates into its ConfigMap first: "+
				"kwok-dractl generate %s --config-map kube-system/kwok-dra | kubectl apply --server-side -f -", object.GetName(), name)
		}
	}
	return nil
}

func (c *command) runDelete(ctx context.Context, name string) error {
	w, err := newWorld(c.reach)
	if err != nil {
		return err
	}
	seen, known, err := w.observeCluster(ctx, c.streams)
	if err != nil {
		return err
	}
	if err := w.observeUsers(ctx, seen); err != nil {
		return err
	}
	a := &applier{world: w, streams: c.streams, terminal: screen.Of(c.streams.ErrOut), seen: seen}
	of := &target.Target{Name: name}
	if !c.all && known.Uses[name] == nil {
		if of, err = target.Read(c.streams, []string{name}, known); err != nil {
			fleets := slices.Sorted(maps.Keys(known.Uses))
			switch nearest := suggest.Nearest(name, fleets); {
			case nearest != "":
				err = fmt.Errorf("%w\nthere is a fleet %s", err, nearest)
			case len(fleets) > 0:
				err = fmt.Errorf("%w\nthe fleets are %s", err, cli.FirstFew(fleets, maxListed))
			}
			return err
		}
	}
	a.plan = target.Delete(of, seen)
	return a.removeTarget(ctx, cmp.Or(of.Name, "any target"))
}

// maxListed is how many names a message has.
const maxListed = 5
