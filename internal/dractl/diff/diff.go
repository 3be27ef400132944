package diff

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kwok-dra/kwok-dra/internal/dractl/cli"
	"github.com/kwok-dra/kwok-dra/internal/dractl/cluster"
	"github.com/kwok-dra/kwok-dra/internal/dractl/fleet"
	"github.com/kwok-dra/kwok-dra/internal/dractl/output"
	"github.com/kwok-dra/kwok-dra/internal/dractl/preview"
	"github.com/kwok-dra/kwok-dra/internal/observe/lifecycle"
	"github.com/kwok-dra/kwok-dra/internal/resourceslice/plan"
	"github.com/kwok-dra/kwok-dra/pkg/api/v1alpha1"
)

// text is the format of kubectl diff.
const text output.Format = "diff"

type command struct {
	streams   cli.Streams
	reach     *cluster.Flags
	templates fleet.Templates
	managed   lifecycle.ManagedNodes
	// installation is the one that the sidecar would be of, if it is given.
	installation string
	// prune shows what is deleted, too, where no template makes it.
	prune  bool
	output output.Flag
}

// New makes the command.
func New(streams cli.Streams, reach *cluster.Flags) *cobra.Command {
	c := &command{streams: streams, reach: reach}
	made := &cobra.Command{
		Use:   "diff -f TEMPLATES",
		Short: "Show what would change in the cluster if kwok-dra ran with these templates.",
		Long: `Show what would change in the cluster if you gave kwok-dra these templates:
the ResourceSlices that it would create, update and delete. Nothing is written.
Dry runs find out which fields the API server drops.

With -f the changes are those of the drivers and nodes that the templates are
about. With --prune, and with --config-map, they are all that kwok-dra would make
if it started now with these templates and no others.

As with kubectl diff, the exit code is 0 if nothing would change. It is 1 if
something would, or if a mistake keeps a pool from being updated.`,
		Example: `  # What would these templates change?
  kwok-dractl diff -f templates.yaml

  # List the slices that would change
  kwok-dractl diff -f templates.yaml -o table

  # What would go if these templates were all that there is?
  kwok-dractl diff -f templates.yaml --prune -o table

  # Does the cluster match the ConfigMap?
  kwok-dractl diff --config-map kube-system/kwok-dra`,
		Args: cli.NoArguments,
		RunE: func(command *cobra.Command, _ []string) error { return c.runDiff(command.Context()) },
	}
	c.templates.AddTo(made, "")
	fleet.AddManaged(made, &c.managed)
	made.Flags().StringVar(&c.installation, "installation", "",
		"name of the installation of kwok-dra, as its log and the annotation "+v1alpha1.InstallationAnnotation+" have it; pools and slices of others are left alone; default: the one that has made the slices of these nodes, or whose name says that it selects them")
	made.Flags().BoolVar(&c.prune, "prune", false, "show what kwok-dra would delete if it had no other templates, too")
	c.output.AddTo(made, text, output.Table, output.JSON, output.YAML, output.Name)
	return made
}

func (c *command) runDiff(ctx context.Context) error {
	if err := c.managed.Complete(); err != nil {
		return err
	}
	client, err := c.reach.Client()
	if err != nil {
		return err
	}
	set, err := c.templates.Set(ctx, c.streams, client)
	if err != nil {
		return err
	}
	listed, err := fleet.List(ctx, client, &c.managed)
	if err != nil {
		return err
	}
	nodes, err := fleet.Fake(listed, &c.managed)
	if err != nil {
		return err
	}
	fleet.TellUnselected(c.streams, set.Templates, nodes)
	about, err := c.readScope(ctx, client, set.Templates, nodes)
	if err != nil {
		return err
	}
	listing, err := client.ResourceV1().ResourceSlices().List(ctx, metav1.ListOptions{})
	if err != nil {
		return fmt.Errorf("list slices: %w", err)
	}
	existing := cluster.Pointers(listing.Items)
	pods, err := fleet.Live(ctx, client, set)
	if err != nil {
		return err
	}
	fleet.TellWithoutPods(c.streams, set, nodes, pods)
	as := c.installationOf(existing, nodes)
	progress := c.streams.Progress("comparing with the cluster", 0)
	state := preview.Cluster{Config: set, Installation: as, Nodes: nodes, Pods: pods, Others: preview.OthersOf(&c.managed, listed), Slices: existing}
	previewed, err := (&fleet.Server{}).Preview(ctx, c.streams, client, state)
	progress.Done()
	if err != nil {
		return err
	}
	for _, hidden := range previewed.Hidden {
		c.streams.Tell("%v\n", hidden)
	}
	return c.reportChanges(c.limitToScope(about, changesOf(existing, &previewed.Writes)), previewed.Problems)
}

func (c *command) reportChanges(changes []change, problems []error) error {
	if err := c.printChanges(changes); err != nil {
		return err
	}
	for _, problem := range problems {
		c.streams.Tell("%v\n", problem)
	}
	if len(changes)+len(problems) > 0 {
		return cli.ErrNegative
	}
	return nil
}

func (c *command) printChanges(changes []change) error {
	switch c.output.Format {
	case text:
		counts := map[action]int{}
		var differences strings.Builder
		for i := range changes {
			counts[changes[i].Action]++
			difference, err := changes[i].unifiedDiff()
			if err != nil {
				return err
			}
			differences.WriteString(difference)
		}
		_, err := io.WriteString(c.streams.Out, differences.String())
		if len(changes) > 0 {
			c.streams.Tell("%d to create, %d to update, %d to delete\n", counts[create], counts[update], counts[remove])
		}
		return err
	case output.JSON, output.YAML:
		return output.Value(c.streams.Out, c.output.Format, append([]change{}, changes...))
	case output.Name:
		for i := range changes {
			if _, err := fmt.Fprintf(c.streams.Out, "resourceslice.%s/%s\n", resourcev1.GroupName, changes[i].Name); err != nil {
				return err
			}
		}
		return nil
	}
	rows := output.Rows{Columns: []output.Column{{Name: "action"}, {Name: "name"}, {Name: "node"}, {Name: "driver"}, {Name: "pool"}}}
	for i := range changes {
		rows.Add(string(changes[i].Action), changes[i].Name, changes[i].Node, changes[i].Driver, changes[i].Pool)
	}
	return rows.Print(c.streams.Out, c.output.Format)
}

// changesOf returns what the writes change, in the order in which the sidecar makes them. The sidecar takes
// over a slice that has lost its label, and does not create it.
func changesOf(existing []*resourcev1.ResourceSlice, writes *plan.Writes) []change {
	live := map[string]*resourcev1.ResourceSlice{}
	for _, slice := range existing {
		live[slice.Name] = slice
	}
	var changes []change
	for _, gone := range writes.Delete {
		changes = append(changes, newChange(remove, live[gone.GetName()], nil))
	}
	for _, updated := range writes.Update {
		changes = append(changes, newChange(update, live[updated.Slice.Name], updated.Slice))
	}
	for _, made := range writes.Create {
		does := create
		if live[made.Name] != nil {
			does = update
		}
		changes = append(changes, newChange(does, live[made.Name], made))
	}
	return changes
}
