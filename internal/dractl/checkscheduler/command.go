package checkscheduler

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/kwok-dra/kwok-dra/internal/dractl/checkscheduler/story"
	"github.com/kwok-dra/kwok-dra/internal/dractl/cli"
	"github.com/kwok-dra/kwok-dra/internal/dractl/cluster"
	"github.com/kwok-dra/kwok-dra/internal/dractl/controlplane"
	"github.com/kwok-dra/kwok-dra/internal/dractl/output"
	"github.com/kwok-dra/kwok-dra/internal/dractl/process"
	"github.com/kwok-dra/kwok-dra/pkg/drajudge"
)

const (
	// assets names the folder of setup-envtest.
	assets = "KUBEBUILDER_ASSETS"
	// kubeconfigPlaceholder is replaced in COMMAND.
	kubeconfigPlaceholder = "{kubeconfig}"
	// logFile has the output of COMMAND.
	logFile = "command.log"
	// grace is how long COMMAND has to end.
	grace = 10 * time.Second
)

// command is what the user asks for.
type command struct {
	streams    cli.Streams
	reach      *cluster.Flags
	output     output.Flag
	programs   string
	scheduler  string
	only       string
	first      int64
	seeds      int
	statements bool
	times      times
}

// New makes the command.
func New(streams cli.Streams, reach *cluster.Flags) *cobra.Command {
	c := &command{streams: streams, reach: reach}
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
		Args: func(made *cobra.Command, arguments []string) error {
			if made.ArgsLenAtDash() != 0 && len(arguments) > 0 {
				return fmt.Errorf("unexpected argument %q: write -- before COMMAND", arguments[0])
			}
			return nil
		},
		RunE: func(made *cobra.Command, arguments []string) error { return c.runCheck(made.Context(), arguments) },
	}
	c.output.AddTo(made, output.Table, output.JSON, junit)
	flags := made.Flags()
	flags.StringVar(&c.scheduler, "scheduler-name", corev1.DefaultSchedulerName, "name of the scheduler, as in the Pods' spec.schedulerName")
	flags.IntVar(&c.seeds, "seeds", 20, "how many stories to play")
	flags.Int64Var(&c.first, "seed", 1, "seed of the first story; each other one has the next number")
	flags.BoolVar(&c.statements, "statements", false, "list the statements, and play nothing")
	flags.StringVar(&c.only, "only", "", "regular expression for the ids of statements that count; default: all")
	flags.StringVar(&c.programs, "control-plane", "", "directory with etcd, kube-apiserver, kube-controller-manager and kube-scheduler, to start a cluster; default: $"+assets+" where there is no kubeconfig")
	flags.DurationVar(&c.times.settle, "settle", 30*time.Second, "how long a Pod must wait, or a claim be held, without reason: at least the longest backoff of the scheduler")
	flags.DurationVar(&c.times.timeout, "timeout", time.Minute, "time for the cluster to come to rest")
	flags.DurationVar(&c.times.shrink, "shrink", 5*time.Minute, "time to shrink a story for each violated statement; 0 leaves it as it is")
	return made
}

func (c *command) runCheck(ctx context.Context, arguments []string) (err error) {
	chosen, err := chooseStatements(c.only)
	if err != nil {
		return err
	}
	if c.statements {
		return printStatements(c.streams.Out, c.output.Format, chosen)
	}
	if err := c.checkArguments(arguments); err != nil {
		return err
	}
	folder, err := os.MkdirTemp("", "check-scheduler-")
	if err != nil {
		return fmt.Errorf("make a folder: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(folder)) }()
	kubeconfig, problem, end, err := c.findCluster(ctx, folder, len(arguments) > 0)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, end()) }()
	if len(arguments) > 0 {
		started, err := startCommand(ctx, arguments, kubeconfig, folder)
		if err != nil {
			return err
		}
		defer func() { _ = started.Stop(grace) }() // a scheduler on trial may do as it likes at the end
		controlPlane := problem
		problem = func() error { return errors.Join(controlPlane(), started.Err()) }
	}
	w, report, err := c.newWorld(ctx, kubeconfig, chosen, problem)
	if err != nil {
		return err
	}
	if err := w.canary.create(ctx); err != nil {
		return errors.Join(err, w.canary.remove(ctx))
	}
	defer func() { err = errors.Join(err, w.canary.remove(ctx)) }()
	return c.playStories(ctx, w, report)
}

// checkArguments refuses what cannot be run, before anything is created.
func (c *command) checkArguments(arguments []string) error {
	switch {
	case c.seeds <= 0:
		return fmt.Errorf("parse --seeds %d: must be positive", c.seeds)
	case c.times.timeout <= 0:
		return fmt.Errorf("parse --timeout %s: must be positive", c.times.timeout)
	case c.times.settle < 0 || c.times.shrink < 0:
		return fmt.Errorf("parse --settle %s and --shrink %s: must not be negative", c.times.settle, c.times.shrink)
	case c.programs != "" && c.reach.Kubeconfig+c.reach.Context != "":
		return errors.New("--control-plane and --kubeconfig or --context exclude each other: give one of them")
	case len(arguments) > 0:
		if _, err := exec.LookPath(arguments[0]); err != nil {
			return fmt.Errorf("find COMMAND: %w", err)
		}
	}
	return nil
}

// findCluster finds or starts the cluster. problem says how a program of it has ended, and end ends it.
func (c *command) findCluster(ctx context.Context, folder string, hasCommand bool) (kubeconfig string, problem, end func() error, err error) {
	none := func() error { return nil }
	if c.programs == "" && c.reach.Configured() {
		kubeconfig = filepath.Join(folder, "kubeconfig")
		return kubeconfig, none, none, c.reach.WriteKubeconfig(kubeconfig)
	}
	if c.programs == "" {
		c.programs = os.Getenv(assets)
	}
	if c.programs == "" {
		return "", nil, nil, errors.New("there is no cluster: give --kubeconfig FILE, or --control-plane DIR with etcd, kube-apiserver, kube-controller-manager and kube-scheduler")
	}
	defer c.streams.Progress("starting a control plane", 0).Done()
	started, err := controlplane.Start(ctx, c.programs, folder)
	if err != nil {
		return "", nil, nil, err
	}
	// No kubelet says that nodes are healthy.
	err = started.StartController(ctx, controlplane.ControllerManager, "--node-monitor-grace-period=24h", "--controllers=*,-bootstrap-signer-controller,-token-cleaner-controller")
	if err == nil && !hasCommand {
		err = startScheduler(ctx, started, folder)
	}
	if err != nil {
		return "", nil, nil, errors.Join(err, started.Stop())
	}
	return started.Kubeconfig, started.Err, started.Stop, nil
}

// startScheduler starts kube-scheduler with a short backoff, so that a Pod that does not fit any more is known soon.
func startScheduler(ctx context.Context, cluster *controlplane.ControlPlane, folder string) error {
	path := filepath.Join(folder, "kube-scheduler.yaml")
	text := fmt.Sprintf(`apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
clientConnection: {kubeconfig: %q}
leaderElection: {leaderElect: false}
podInitialBackoffSeconds: 1
podMaxBackoffSeconds: 1
`, cluster.Kubeconfig)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		return fmt.Errorf("write the configuration of kube-scheduler: %w", err)
	}
	return cluster.StartController(ctx, controlplane.Scheduler, "--config="+path)
}

// startCommand starts the scheduler on trial.
func startCommand(ctx context.Context, arguments []string, kubeconfig, folder string) (*process.Process, error) {
	replaced := make([]string, len(arguments))
	for i, argument := range arguments {
		replaced[i] = strings.ReplaceAll(argument, kubeconfigPlaceholder, kubeconfig)
	}
	return process.Start(ctx, process.Options{Arguments: replaced, Environment: []string{"KUBECONFIG=" + kubeconfig}, Log: filepath.Join(folder, logFile)})
}

// newWorld looks at the cluster.
func (c *command) newWorld(ctx context.Context, kubeconfig string, chosen []drajudge.Statement, problem func() error) (*world, *Report, error) {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return nil, nil, fmt.Errorf("read kubeconfig: %w", err)
	}
	config.QPS = -1
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, nil, err
	}
	version, err := client.Discovery().ServerVersion()
	if err != nil {
		return nil, nil, fmt.Errorf("read the version of the API server: %w", err)
	}
	features, err := story.DetectFeatures(ctx, client)
	if err != nil {
		return nil, nil, err
	}
	features.Quotas = true // every cluster has the controller, or Pods of a namespace with a quota never start
	player, err := story.NewPlayer(config)
	if err != nil {
		return nil, nil, err
	}
	only := func(id string) bool {
		return slices.ContainsFunc(chosen, func(s drajudge.Statement) bool { return s.ID == id })
	}
	return &world{
		client: client, player: player, only: only, problem: problem, times: c.times,
		canary: &canary{client: client, scheduler: c.scheduler, name: "check-scheduler-" + uuid.NewString()[:8], timeout: c.times.timeout},
		newStory: func(id string, seed int64) *story.Story {
			s := story.New(id, seed, features)
			s.UseScheduler(c.scheduler)
			return s
		},
	}, newReport(c.scheduler, version.GitVersion, c.first, features, chosen), nil
}

// playStories plays the stories, and shows the results.
func (c *command) playStories(ctx context.Context, w *world, report *Report) error {
	for seed := c.first; seed < c.first+int64(c.seeds); seed++ {
		started := time.Now()
		progress := c.streams.Progress(fmt.Sprintf("playing story %d", seed), 0)
		violations, err := w.play(ctx, seed, nil)
		progress.Done()
		if ctx.Err() != nil {
			return fmt.Errorf("play story %d: %w", seed, ctx.Err())
		}
		if err != nil {
			report.Problems = append(report.Problems, fmt.Sprintf("story %d: %v", seed, err))
			c.streams.Tell("story %d could not be played to the end: %v\n", seed, err)
		}
		c.streams.Tell("story %d: %s (%.1f s)\n", seed, describeViolations(violations), time.Since(started).Seconds())
		for _, result := range report.addStory(seed, violations, time.Since(started)) {
			if err := c.shrinkStory(ctx, w, result); err != nil {
				return err
			}
		}
	}
	if err := report.printReport(c.streams.Out, c.output.Format); err != nil {
		return err
	}
	if len(report.Problems) > 0 {
		return fmt.Errorf("%d of %d stories could not be played to the end: %s", len(report.Problems), c.seeds, report.Problems[0])
	}
	if report.countOutcome(outcomeFailed) > 0 {
		return cli.ErrNegative
	}
	return nil
}

// describeViolations names the statements that a story violates.
func describeViolations(violations []drajudge.Violation) string {
	if len(violations) == 0 {
		return "ok"
	}
	var ids []string
	for _, v := range violations {
		ids = append(ids, v.Statement.ID)
	}
	return "violates " + cli.FirstFew(distinct(ids), 3)
}

// shrinkStory finds the smallest story that violates a statement.
func (c *command) shrinkStory(ctx context.Context, w *world, result *Result) error {
	progress := c.streams.Progress(fmt.Sprintf("shrinking story %d, which violates %s", result.Seeds[0], result.ID), 0)
	evidence, err := w.shrink(ctx, result.Seeds[0], result.ID, result.Seen)
	progress.Done()
	if err != nil {
		return fmt.Errorf("shrink story %d: %w", result.Seeds[0], err)
	}
	result.Evidence = evidence
	c.streams.Tell("  %s: %s\n", result.ID, evidence.describe())
	return nil
}
