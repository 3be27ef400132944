package schedule

import (
	"context"
	"errors"
	"slices"

	"github.com/spf13/cobra"

	"github.com/kwok-dra/kwok-dra/internal/config"
	"github.com/kwok-dra/kwok-dra/internal/dractl/ambiguous"
	"github.com/kwok-dra/kwok-dra/internal/dractl/cli"
	"github.com/kwok-dra/kwok-dra/internal/dractl/cluster"
	"github.com/kwok-dra/kwok-dra/internal/dractl/documents"
	"github.com/kwok-dra/kwok-dra/internal/dractl/fleet"
	"github.com/kwok-dra/kwok-dra/internal/dractl/input"
	"github.com/kwok-dra/kwok-dra/internal/dractl/output"
	"github.com/kwok-dra/kwok-dra/internal/dractl/preview"
	"github.com/kwok-dra/kwok-dra/internal/extensions/explaining/simulator"
)

// command is what the user asks for.
type command struct {
	streams     cli.Streams
	reach       *cluster.Flags
	files       documents.Files
	slices      []string
	nodes       fleet.Counts
	server      fleet.Server
	fromCluster bool
	howMany     bool
	output      output.Flag
}

const long = `Show which Pods get which devices on which nodes, and why other Pods do not fit.

The files have Pods, ResourceClaims, ResourceClaimTemplates and DeviceClasses, each
object once. Those of resource.k8s.io/v1beta1 and v1beta2 are read as v1. The Pods of
Deployments, ReplicaSets, StatefulSets, Jobs and CronJobs are counted too: as many as
there are replicas, or as run at once. Pods of theirs that exist already are not
counted again.
The devices are from one of these:

  --slices FILE     ResourceSlices, and Nodes, as kubectl get -o yaml prints them.
                    Slices of a Node that is gone are not considered
  --from-cluster    a cluster and all that is allocated there. Nothing is written.
                    Objects in files replace those of the cluster. Without Pods
                    in files, the Pods that wait in the cluster are scheduled
  -f TEMPLATES      ResourcePoolTemplates, with Nodes in the files, or with
                    --nodes COUNT, which makes that many nodes for each template;
                    --server-version chooses the fields that the API server keeps.
                    Templates with driverPod also need the DaemonSet of the driver

The scheduler's own allocator, of Kubernetes 1.37, chooses the devices, with all
its features: on one node the result is the scheduler's. Pods are scheduled by
priority, and then in the order of the files. Of the nodes that fit, a Pod gets
the one with the first alternatives of its requests, then the one that it prefers
(preferred node affinity, PreferNoSchedule), then the one with the fewest Pods.
kube-scheduler considers more than that, and may choose another node.

One result differs from Kubernetes 1.36. There, an incomplete pool with counters
keeps Pods that ask for all devices away from all nodes, not only from its own.

Considered: nodeSelector, node affinity, taints and tolerations, cordons,
scheduling gates, claims that are shared or allocated, DeviceTaintRules, extended
resources of DeviceClasses, host ports, and the resources and the limit of Pods
that nodes have in status.allocatable, and the required affinity, anti-affinity and
topology spread of Pods, but for namespaces that a term selects by labels. Not
considered: volumes, preemption, and other schedulers. DeviceTaintRules are left out if
the user may not list them, and the command says so.

The exit code is 1 if a Pod does not fit.`

const example = `  # Do these Pods fit on four nodes of this template?
  kwok-dractl schedule -f templates.yaml --nodes 4 -f classes.yaml -f pods.yaml

  # How many such Pods fit in all, and what stops the next one?
  kwok-dractl schedule -f templates.yaml --nodes 4 -f classes.yaml -f pods.yaml --how-many

  # What would happen if they were created in the cluster now?
  kwok-dractl schedule --from-cluster -f pods.yaml

  # Why do Pods wait in the cluster?
  kwok-dractl schedule --from-cluster

  # Write the devices into claims and Pods
  kwok-dractl schedule -f templates.yaml -f nodes.yaml -f classes.yaml -f pods.yaml -o yaml

  # With the devices of a cluster, saved by kubectl get nodes,resourceslices -o yaml > slices.yaml
  kwok-dractl schedule --slices slices.yaml -f classes.yaml -f pods.yaml`

// New makes the command.
func New(streams cli.Streams, reach *cluster.Flags) *cobra.Command {
	c := &command{streams: streams, reach: reach}
	made := &cobra.Command{
		Use:     "schedule -f FILE... [--slices FILE... | --from-cluster | --nodes COUNT]",
		Short:   "Show which Pods get which devices on which nodes, and why other Pods do not fit.",
		Long:    long,
		Example: example,
		Args:    cli.NoArguments,
		RunE:    func(made *cobra.Command, _ []string) error { return c.runSchedule(made.Context()) },
	}
	c.files.AddTo(made, "Pods, claims, classes, templates, nodes and slices")
	c.output.AddTo(made, output.Table, output.Wide, output.JSON, output.YAML)
	flags := made.Flags()
	flags.StringArrayVar(&c.slices, "slices", nil, "file with ResourceSlices and Nodes; may be given several times")
	flags.BoolVar(&c.fromCluster, "from-cluster", false, "use nodes, slices, classes, claims and Pods of the cluster")
	c.nodes.AddTo(made)
	c.server.AddTo(made)
	flags.BoolVar(&c.howMany, "how-many", false, "count how many Pods like each of these fit in all, one kind at a time")
	cli.Exclusive(made, "slices", "from-cluster")
	cli.Exclusive(made, "slices", "nodes")
	// The flag is there.
	_ = made.MarkFlagFilename("slices", "yaml", "yml", "json")
	return made
}

func (c *command) runSchedule(ctx context.Context) error {
	in, err := c.gatherInput(ctx)
	if err != nil {
		return err
	}
	scheduler := simulator.NewScheduler(&in.World)
	placements := make([]*simulator.Placement, 0, len(in.Waiting))
	progress := c.streams.Progress("placing Pods", len(in.Waiting))
	for _, pod := range simulator.InOrder(in.Waiting) {
		placements = append(placements, scheduler.Schedule(ctx, pod))
		progress.Step()
	}
	progress.Done()
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if len(placements) == 0 {
		c.streams.Tell("no Pod waits for a node\n")
		if !c.output.Format.IsValue() {
			return nil
		}
	}
	show := c.printPlacements
	if c.howMany {
		show = func(ctx context.Context, scheduler *simulator.Scheduler, placements []*simulator.Placement) error {
			return c.countFitting(ctx, scheduler, placements, in.MakerOf)
		}
	}
	if err := show(ctx, scheduler, placements); err != nil {
		return err
	}
	if slices.ContainsFunc(placements, func(p *simulator.Placement) bool { return p.Node == "" }) {
		return cli.ErrNegative
	}
	return nil
}

// gatherInput gathers the objects of files and of the cluster.
func (c *command) gatherInput(ctx context.Context) (*input.Input, error) {
	namespace, err := c.reach.DefaultNamespace()
	if err != nil {
		return nil, err
	}
	in := input.New(namespace)
	configured := &configuration{}
	configured.readFrom(in, namespace)
	files := c.files
	files.Paths = append(slices.Clone(c.files.Paths), c.slices...)
	read, err := files.Read(c.streams)
	if err != nil {
		return nil, err
	}
	if err := in.AddDocuments(read); err != nil {
		return nil, err
	}
	if err := c.renderTemplates(ctx, in, configured); err != nil {
		return nil, err
	}
	if c.fromCluster {
		client, err := c.reach.Client()
		if err != nil {
			return nil, err
		}
		progress := c.streams.Progress("reading the cluster", 0)
		live, err := input.ReadCluster(ctx, client)
		progress.Done()
		if err != nil {
			return nil, err
		}
		if live.Unseen != "" {
			c.streams.Tell("%s\n", live.Unseen)
		}
		in.AddCluster(live)
	}
	in.AddPodsOfWorkloads()
	in.NameNodes()
	if len(in.Skipped) > 0 {
		c.streams.Tell("not considered: %s\n", cli.Counted(in.Skipped))
	}
	for _, note := range in.Notes {
		c.streams.Tell("not considered: %s\n", note)
	}
	for _, warning := range ambiguous.InSlices(in.Slices) {
		c.streams.Tell("%s\n", warning)
	}
	switch {
	case c.fromCluster:
	case len(in.Waiting) == 0:
		return nil, errors.New("there are no Pods that wait for a node in the files: give some with -f, or what makes Pods, such as a Deployment")
	case len(in.Nodes) == 0:
		return nil, errors.New("there are no nodes: give --nodes, Nodes with -f, --slices or --from-cluster")
	}
	return in, nil
}

// renderTemplates makes the slices of the templates on the nodes of the files.
func (c *command) renderTemplates(ctx context.Context, in *input.Input, configured *configuration) error {
	set, err := config.NewSet(configured.documents...)
	if err != nil {
		return err
	}
	made, err := c.nodes.Nodes(set.Templates)
	if err != nil {
		return err
	}
	in.Nodes = append(in.Nodes, made...)
	for _, node := range in.Nodes {
		if node.UID == "" {
			node.UID = fleet.UID(node.Name)
		}
	}
	if len(configured.documents) == 0 {
		return nil
	}
	if len(c.nodes) == 0 {
		fleet.TellUnselected(c.streams, set.Templates, in.Nodes)
	}
	drivers := slices.Concat(configured.daemonSets, in.Pods)
	fleet.TellWithoutPods(c.streams, set, in.Nodes, drivers.On)
	defer c.streams.Progress("rendering templates", 0).Done()
	previewed, err := c.server.Preview(ctx, c.streams, nil, preview.Cluster{Config: set.Published(), Nodes: in.Nodes, Pods: drivers.On})
	if err != nil {
		return err
	}
	in.Slices = append(in.Slices, previewed.Create...)
	return errors.Join(previewed.Problems...)
}
