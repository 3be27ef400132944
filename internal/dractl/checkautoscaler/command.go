package checkautoscaler

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/kwok-dra/kwok-dra/internal/dractl/checkscheduler/story"
	"github.com/kwok-dra/kwok-dra/internal/dractl/cli"
	"github.com/kwok-dra/kwok-dra/internal/dractl/cluster"
	"github.com/kwok-dra/kwok-dra/internal/dractl/documents"
	"github.com/kwok-dra/kwok-dra/internal/dractl/trial"
	"github.com/kwok-dra/kwok-dra/pkg/drajudge"
)

// command is what the user asks for.
type command struct {
	trial.Options

	files documents.Files
	quiet time.Duration
}

// New makes the command.
func New(streams cli.Streams, reach *cluster.Flags) *cobra.Command {
	c := &command{Options: trial.Options{
		Streams: streams, Cluster: trial.Cluster{Streams: streams, Reach: reach}, Seeds: 5,
		Times: trial.Times{Settle: 2 * time.Minute, Timeout: 10 * time.Minute, Shrink: 15 * time.Minute},
	}}
	made := &cobra.Command{
		Use:   "check-autoscaler -f FILE... [flags] [-- COMMAND [ARG...]]",
		Short: "Test whether an autoscaler makes and removes nodes as claims need them.",
		Long: `Test whether an autoscaler makes and removes nodes as claims need them. The files
say which groups of nodes there are, such as NodePools of Karpenter or node groups
of Cluster Autoscaler: a Node for each group, with the labels that all its nodes
have and only they, its taints and allocatable resources, and the devices of such
a node, as a ResourcePoolTemplate that selects it or as ResourceSlices that name
it. The command plays stories: Pods with claims come, of which some fit no group,
and go. It watches which nodes the autoscaler makes and removes, and judges that.
How many nodes were made, and how many were enough, is counted and not judged.

A seed decides what happens in a story. A story that violates a statement is made
as small as possible, and printed as a script that plays it with kubectl alone.

The cluster is the one of the kubeconfig. With --control-plane, or where there is
no kubeconfig, the command starts one: etcd, kube-apiserver,
kube-controller-manager and kube-scheduler, all from one directory. COMMAND starts
what else there must be: the autoscaler, and what makes its nodes Ready and
publishes their devices. {kubeconfig} in COMMAND and its ARGs is replaced by a
kubeconfig file, which is also in $KUBECONFIG.

The cluster must be idle: other Pods that wait make the autoscaler act. Each group
must be able to have five nodes more. The command deletes nodes that the
autoscaler leaves empty before it plays the next story.

The exit code is 1 if a statement was violated.`,
		Example: `  # The autoscaler of the cluster of the kubeconfig
  kwok-dractl check-autoscaler -f groups.yaml

  # One that removes empty nodes after ten minutes, ten stories, for a CI system
  kwok-dractl check-autoscaler -f groups.yaml --settle 12m --timeout 30m --seeds 10 -o junit > junit.xml

  # One story again
  kwok-dractl check-autoscaler -f groups.yaml --seed 17 --seeds 1

  # What is checked
  kwok-dractl check-autoscaler --statements`,
		Args: trial.CommandArguments,
		RunE: func(made *cobra.Command, arguments []string) error { return c.runCheck(made.Context(), arguments) },
	}
	c.AddTo(made, "how long a Pod must wait, or a node be empty, without reason: at least the time after which the autoscaler removes an empty node")
	c.files.AddTo(made, "groups of nodes: Nodes with ResourcePoolTemplates or ResourceSlices")
	made.Flags().DurationVar(&c.quiet, "quiet", 10*time.Second, "how long nothing may happen before the cluster counts as at rest: at least the time from a decision of the autoscaler to the node")
	return made
}

func (c *command) runCheck(ctx context.Context, arguments []string) error {
	chosen, err := trial.ChooseStatements(Statements(), c.Only)
	if err != nil {
		return err
	}
	if c.IsList {
		return trial.PrintStatements(c.Streams.Out, c.Output.Format, chosen)
	}
	if err := c.checkArguments(arguments); err != nil {
		return err
	}
	return c.Cluster.Use(ctx, arguments, func(kubeconfig string, problem func() error) error {
		w, report, err := c.newWorld(ctx, kubeconfig, problem, chosen)
		if err != nil {
			return err
		}
		isCounted := map[int64]bool{}
		run := c.Run(w.newShrinker())
		run.Play = func(ctx context.Context, seed int64, without []int) ([]drajudge.Violation, error) {
			violations, err := w.playStory(ctx, seed, without)
			if !isCounted[seed] { // what shrinks a story plays it again
				report.NodesMade, report.NodesEnough = report.NodesMade+w.counted.made, report.NodesEnough+w.counted.enough
				isCounted[seed] = true
			}
			return violations, err
		}
		return run.ReportStories(ctx, &report.Report, func() error { return report.printReport(c.Streams.Out, c.Output.Format) })
	})
}

// checkArguments refuses what cannot be run, before anything is created.
func (c *command) checkArguments(arguments []string) error {
	switch {
	case len(c.files.Paths) == 0:
		return errors.New("give the groups of nodes with -f FILE")
	case c.Seeds <= 0:
		return fmt.Errorf("parse --seeds %d: must be positive", c.Seeds)
	case c.Timeout <= 0 || c.quiet <= 0:
		return fmt.Errorf("parse --timeout %s and --quiet %s: must be positive", c.Timeout, c.quiet)
	case c.Timeout <= c.Settle:
		return fmt.Errorf("parse --timeout %s: must be longer than --settle %s", c.Timeout, c.Settle)
	case c.Settle < 0 || c.Shrink < 0:
		return fmt.Errorf("parse --settle %s and --shrink %s: must not be negative", c.Settle, c.Shrink)
	}
	return c.Cluster.Check(arguments)
}

// newWorld looks at the cluster, and reads the groups.
func (c *command) newWorld(ctx context.Context, kubeconfig string, problem func() error, chosen []drajudge.Statement) (*world, *Report, error) {
	config, client, version, err := trial.Connect(kubeconfig)
	if err != nil {
		return nil, nil, err
	}
	player, err := story.NewPlayer(config)
	if err != nil {
		return nil, nil, err
	}
	groups, err := readGroups(ctx, c.Streams, c.files, client)
	if err != nil {
		return nil, nil, err
	}
	w := &world{
		client: client, player: player, groups: groups, problem: problem, quiet: c.quiet, Times: c.Times, statements: chosen,
	}
	if w.nodesBefore, err = w.listNodes(ctx); err != nil {
		return nil, nil, err
	}
	return w, newReport(groups, version, c.First, chosen), nil
}
