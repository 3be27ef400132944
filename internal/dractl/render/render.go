package render

import (
	"context"
	"errors"
	"strconv"

	"github.com/spf13/cobra"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/kwok-dra/kwok-dra/internal/config"
	"github.com/kwok-dra/kwok-dra/internal/dractl/cli"
	"github.com/kwok-dra/kwok-dra/internal/dractl/cluster"
	"github.com/kwok-dra/kwok-dra/internal/dractl/documents"
	"github.com/kwok-dra/kwok-dra/internal/dractl/fleet"
	"github.com/kwok-dra/kwok-dra/internal/dractl/output"
	"github.com/kwok-dra/kwok-dra/internal/dractl/preview"
	"github.com/kwok-dra/kwok-dra/internal/observe/lifecycle"
)

type command struct {
	streams     cli.Streams
	reach       *cluster.Flags
	templates   fleet.Templates
	nodes       fleet.Counts
	fromCluster bool
	managed     lifecycle.ManagedNodes
	server      fleet.Server
	output      output.Flag
}

// New makes the command.
func New(streams cli.Streams, reach *cluster.Flags) *cobra.Command {
	c := &command{streams: streams, reach: reach}
	made := &cobra.Command{
		Use:   "render -f FILE... [--nodes COUNT | --from-cluster]",
		Short: "Print the ResourceSlices that kwok-dra would publish.",
		Long: `Print the ResourceSlices that kwok-dra would publish, at generation 1 of their
pools. The code of kwok-dra itself makes them. Nothing is written to the cluster.

The nodes are those of --nodes COUNT, which makes that many for each template, and
those in the files, or with --from-cluster those of the cluster. Nodes of the cluster
get their slices only if publishWhen matches, all others even if it does not. A node
without a uid gets one that is derived from its name. In a cluster the node has
another uid, so slices have other names there, and devices have other UUIDs.

A template with driverPod gets slices on the nodes that have such a Pod: in files,
each Pod beside the nodes counts as Ready, and a DaemonSet, or a Pod without
nodeName, stands for one on each node that it may run on.

Fields that the release of Kubernetes drops by default are left out; standard
error lists them. With --from-cluster, dry runs find out what the API server drops.
Templates that select no node are listed on standard error too.`,
		Example: `  # For one node of each kind
  kwok-dractl render -f templates.yaml --nodes 1

  # For nodes in a file
  kwok-dractl render -f templates.yaml -f nodes.yaml

  # As Kubernetes 1.35 keeps them, and with a feature gate turned on
  kwok-dractl render -f templates.yaml -f nodes.yaml --server-version 1.35
  kwok-dractl render -f templates.yaml -f nodes.yaml --server-version 1.35 --feature-gates DRAPartitionableDevices=true

  # With the DaemonSets of the cluster, for templates with driverPod
  kubectl get daemonsets --all-namespaces -o yaml | kwok-dractl render -f templates.yaml -f nodes.yaml -f -

  # For the fake nodes of the cluster, one line for each slice
  kwok-dractl render -f templates.yaml --from-cluster -o wide`,
		Args: cli.NoArguments,
		RunE: func(command *cobra.Command, _ []string) error { return c.runRender(command.Context()) },
	}
	c.templates.AddTo(made, ", nodes, and Pods and DaemonSets of drivers")
	c.nodes.AddTo(made)
	made.Flags().BoolVar(&c.fromCluster, "from-cluster", false, "use the nodes of the cluster")
	cli.Exclusive(made, "nodes", "from-cluster")
	c.server.AddTo(made)
	fleet.AddManaged(made, &c.managed)
	c.output.AddTo(made, output.YAML, output.JSON, output.Name, output.Table, output.Wide)
	return made
}

func (c *command) runRender(ctx context.Context) error {
	if err := c.managed.Complete(); err != nil {
		return err
	}
	var client kubernetes.Interface
	if c.fromCluster {
		var err error
		if client, err = c.reach.Client(); err != nil {
			return err
		}
	}
	all, err := c.templates.Files.Read(c.streams)
	if err != nil {
		return err
	}
	set, err := c.templates.SetOf(ctx, c.streams, client, all)
	if err != nil {
		return err
	}
	state, err := c.readState(ctx, client, set, all)
	if err != nil {
		return err
	}
	fleet.TellUnselected(c.streams, set.Templates, state.Nodes)
	fleet.TellWithoutPods(c.streams, set, state.Nodes, state.Pods)
	progress := c.streams.Progress("rendering templates", 0)
	previewed, err := c.server.Preview(ctx, c.streams, client, *state)
	progress.Done()
	if err != nil {
		return err
	}
	if err := c.printSlices(previewed.Create); err != nil {
		return err
	}
	for _, problem := range previewed.Problems {
		c.streams.Tell("%v\n", problem)
	}
	if len(previewed.Problems) > 0 {
		return cli.ErrNegative
	}
	return nil
}

// readState reads the nodes, and the driver Pods there, from the cluster or from documents.
func (c *command) readState(ctx context.Context, client kubernetes.Interface, set *config.Set, all []documents.Document) (*preview.Cluster, error) {
	if !c.fromCluster {
		nodes, pods, err := fleet.FromDocuments(all)
		if err == nil {
			nodes, err = fleet.Fake(nodes, &c.managed)
		}
		if err != nil {
			return nil, err
		}
		made, err := c.nodes.Nodes(set.Templates)
		if err == nil && len(nodes)+len(made) == 0 {
			err = errors.New("there are no nodes: give --nodes COUNT, Nodes with -f, or --from-cluster")
		}
		return &preview.Cluster{Config: set.Published(), Nodes: append(nodes, made...), Pods: pods.On}, err
	}
	nodes, err := fleet.List(ctx, client, &c.managed)
	if err == nil {
		nodes, err = fleet.Fake(nodes, &c.managed)
	}
	if err != nil {
		return nil, err
	}
	pods, err := fleet.Live(ctx, client, set)
	return &preview.Cluster{Config: set, Nodes: nodes, Pods: pods}, err
}

func (c *command) printSlices(made []*resourcev1.ResourceSlice) error {
	if c.output.Format != output.Table && c.output.Format != output.Wide {
		return output.Objects(c.streams.Out, c.output.Format, made)
	}
	rows := output.Rows{Columns: []output.Column{
		{Name: "name"}, {Name: "node"}, {Name: "driver"}, {Name: "pool"}, {Name: "slices", Wide: true}, {Name: "devices"}, {Name: "counters", Wide: true},
	}}
	for _, slice := range made {
		node := ""
		if slice.Spec.NodeName != nil {
			node = *slice.Spec.NodeName
		}
		rows.Add(slice.Name, node, slice.Spec.Driver, slice.Spec.Pool.Name, strconv.FormatInt(slice.Spec.Pool.ResourceSliceCount, 10),
			strconv.Itoa(len(slice.Spec.Devices)), strconv.Itoa(len(slice.Spec.SharedCounters)))
	}
	return rows.Print(c.streams.Out, c.output.Format)
}
