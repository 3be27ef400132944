package checkscheduler

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/kwok-dra/kwok-dra/internal/dractl/checkscheduler/story"
	"github.com/kwok-dra/kwok-dra/internal/dractl/cli"
	"github.com/kwok-dra/kwok-dra/internal/dractl/cluster"
	"github.com/kwok-dra/kwok-dra/internal/dractl/trial"
	"github.com/kwok-dra/kwok-dra/pkg/drajudge"
)

// command is what the user asks for.
type command struct {
	trial.Options

	scheduler string
	// without names the features that stories leave out.
	without []string
	// labels are on the Pods and claims of stories.
	labels map[string]string
}

// New makes the command.
func New(streams cli.Streams, reach *cluster.Flags) *cobra.Command {
	c := &command{Options: trial.Options{
		Streams: streams, Cluster: trial.Cluster{Streams: streams, Reach: reach, CommandSchedules: true}, Seeds: 20,
		Times: trial.Times{Settle: 30 * time.Second, Timeout: time.Minute, Shrink: 5 * time.Minute},
	}}
	made := &cobra.Command{
		Use:   "check-scheduler [flags] [-- COMMAND [ARG...]]",
		Short: "Test whether a scheduler keeps the rules of DRA.",
		Long: `Test whether a scheduler keeps the rules of dynamic resource allocation. The
command plays stories: it creates nodes, ResourceSlices, DeviceClasses, claims
and Pods, changes and deletes them, and stands in for kubelets and drivers. It
watches what the scheduler makes of them, and judges each allocation, each
binding, and what is left waiting. A seed decides what happens in a story. A
story that violates a statement is made as small as possible, and printed as a
script that shows the violation with kubectl alone.

The cluster is the one of the kubeconfig. With --control-plane, or where there
is no kubeconfig, the command starts one: etcd, kube-apiserver,
kube-controller-manager and kube-scheduler, all from one directory.

COMMAND starts the scheduler on trial, in place of kube-scheduler. {kubeconfig}
in COMMAND and its ARGs is replaced by a kubeconfig file, which is also in
$KUBECONFIG. Without COMMAND, the scheduler must run already.

Nodes of stories fit no other Pods, and all that is created is deleted at the
end.

The exit code is 1 if a statement was violated.`,
		Example: `  # The scheduler of the cluster of the kubeconfig
  kwok-dractl check-scheduler

  # Another scheduler there, 100 stories, for a CI system
  kwok-dractl check-scheduler --scheduler-name my-scheduler --seeds 100 -o junit > junit.xml

  # A scheduler of one's own, in a cluster of its own
  kwok-dractl check-scheduler --control-plane bin -- ./my-scheduler --kubeconfig {kubeconfig}

  # One story again
  kwok-dractl check-scheduler --seed 17 --seeds 1

  # What is checked
  kwok-dractl check-scheduler --statements`,
		Args: trial.CommandArguments,
		RunE: func(made *cobra.Command, arguments []string) error { return c.runCheck(made.Context(), arguments) },
	}
	c.AddTo(made, "how long a Pod must wait, or a claim be held, without reason: at least the longest backoff of the scheduler")
	made.Flags().StringVar(&c.scheduler, "scheduler-name", corev1.DefaultSchedulerName, "name of the scheduler, as in the Pods' spec.schedulerName")
	made.Flags().StringSliceVar(&c.without, "without", nil, "features that stories leave out, for a scheduler that does not have them: "+strings.Join(FeatureNames(), ", "))
	made.Flags().StringToStringVar(&c.labels, "labels", nil, "labels of all Pods and claims of stories, such as the queue that the scheduler wants, as KEY=VALUE")
	return made
}

func (c *command) runCheck(ctx context.Context, arguments []string) error {
	chosen, err := trial.ChooseStatements(drajudge.Statements(), c.Only)
	if err != nil {
		return err
	}
	if c.IsList {
		return trial.PrintStatements(c.Streams.Out, c.Output.Format, chosen)
	}
	if err := c.checkArguments(arguments); err != nil {
		return err
	}
	return c.Cluster.Use(ctx, arguments, func(kubeconfig string, problem func() error) (err error) {
		w, report, err := c.newWorld(ctx, kubeconfig, problem, chosen)
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, w.canary.deleteObjects(ctx)) }()
		if err := w.canary.createObjects(ctx); err != nil {
			return err
		}
		return c.Run(w.newShrinker()).ReportStories(ctx, &report.Report, func() error { return report.printReport(c.Streams.Out, c.Output.Format) })
	})
}

// checkArguments refuses what cannot be run, before anything is created.
func (c *command) checkArguments(arguments []string) error {
	switch {
	case c.Seeds <= 0:
		return fmt.Errorf("parse --seeds %d: must be positive", c.Seeds)
	case c.Timeout <= 0:
		return fmt.Errorf("parse --timeout %s: must be positive", c.Timeout)
	case c.Settle < 0 || c.Shrink < 0:
		return fmt.Errorf("parse --settle %s and --shrink %s: must not be negative", c.Settle, c.Shrink)
	}
	if err := leaveOutFeatures(&story.Features{}, c.without); err != nil {
		return err
	}
	return c.Cluster.Check(arguments)
}

// newWorld looks at the cluster.
func (c *command) newWorld(ctx context.Context, kubeconfig string, problem func() error, statements []drajudge.Statement) (*world, *Report, error) {
	config, client, version, err := trial.Connect(kubeconfig)
	if err != nil {
		return nil, nil, err
	}
	features, err := story.DetectFeatures(ctx, client)
	if err != nil {
		return nil, nil, err
	}
	features.Quotas = true // every cluster has the controller, or Pods of a namespace with a quota never start
	skipped := map[string]string{}
	addSkipped(skipped, &features, "the API server does not have the feature")
	if err := leaveOutFeatures(&features, c.without); err != nil {
		return nil, nil, err
	}
	addSkipped(skipped, &features, "left out by --without")
	player, err := story.NewPlayer(config)
	if err != nil {
		return nil, nil, err
	}
	return &world{
		client: client, player: player, statements: statements, problem: problem, Times: c.Times,
		canary: &canary{client: client, scheduler: c.scheduler, name: "check-scheduler-" + uuid.NewString()[:8], timeout: c.Timeout, labels: c.labels},
		newStory: func(id string, seed int64) *story.Story {
			s := story.New(id, seed, features)
			s.UseScheduler(c.scheduler)
			labelWorkloads(s, c.labels)
			return s
		},
	}, newReport(c.scheduler, version, c.First, skipped, statements), nil
}

// labelWorkloads adds labels to the Pods and claims of a story, and to those that controllers make from its templates.
func labelWorkloads(s *story.Story, added map[string]string) {
	for i := range s.Steps {
		for _, object := range s.Steps[i].Create {
			switch object := object.(type) {
			case *corev1.Pod, *resourcev1.ResourceClaim:
				object.SetLabels(labels.Merge(object.GetLabels(), added))
			case *resourcev1.ResourceClaimTemplate:
				object.Spec.Labels = labels.Merge(object.Spec.Labels, added)
			}
		}
	}
}
