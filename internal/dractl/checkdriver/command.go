package checkdriver

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/google/uuid"
	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kwok-dra/kwok-dra/internal/dractl/cli"
	"github.com/kwok-dra/kwok-dra/internal/dractl/cluster"
	"github.com/kwok-dra/kwok-dra/internal/dractl/controlplane"
	"github.com/kwok-dra/kwok-dra/internal/dractl/output"
	"github.com/kwok-dra/kwok-dra/internal/dractl/process"
)

const (
	// assets names the folder of setup-envtest.
	assets = "KUBEBUILDER_ASSETS"
	// shortFolder holds all files. The path of the node's folder must be no longer than /var/lib/kubelet, so
	// that sockets have as much room as on a kubelet; a path below $TMPDIR may be longer.
	shortFolder = "/tmp"

	// timeout is that of a statement. A driver has 30 s to publish slices again.
	timeout = time.Minute
)

// command is what the user asks for.
type command struct {
	streams  cli.Streams
	reach    *cluster.Flags
	output   output.Flag
	programs string
	driver   string
	only     string
	timeout  time.Duration
}

// New makes the command.
func New(streams cli.Streams, reach *cluster.Flags) *cobra.Command {
	c := &command{streams: streams, reach: reach}
	made := &cobra.Command{
		Use:   "check-driver [flags] -- COMMAND [ARG...]",
		Short: "Test whether a DRA driver does what a kubelet expects.",
		Long: `Test whether a DRA driver does what a kubelet expects. COMMAND starts the
driver. The command stands in for the kubelet of a fake node and for the
scheduler: it waits until the driver registers and publishes devices, allocates
them to claims, has them prepared and unprepared, and restarts the driver.

These placeholders in COMMAND and its ARGs are replaced:

  {node}        name of the fake node, also in $NODE_NAME
  {kubeconfig}  kubeconfig file, also in $KUBECONFIG
  {plugins}     folder of plugins, also in $PLUGINS_DIR
  {registry}    folder in which plugins register, also in $REGISTRY_DIR
  {cdi}         folder of CDI specs, also in $CDI_ROOT
  {driver}      value of --driver
  {instance}    stands for the UID of the driver's Pod, for rolling updates

The cluster is the one of the kubeconfig. Where there is none, or with
--control-plane, the command starts etcd and kube-apiserver from a directory.
A Node, a Pod, a DeviceClass, ResourceClaims and what the driver publishes for
the Node are created in the cluster, and deleted at the end.

The exit code is 1 if a statement failed.`,
		Example: `  # With programs that setup-envtest has downloaded
  kwok-dractl check-driver --control-plane bin -- ./my-driver --node {node} --plugins {plugins} --registry {registry} --cdi {cdi}

  # In the cluster of the kubeconfig, with rolling updates
  kwok-dractl check-driver -- ./my-driver --node {node} --plugins {plugins} --registry {registry} --cdi {cdi} --instance {instance}

  # Some statements only, for a CI system
  kwok-dractl check-driver --only 'prepare' -o junit -- ./my-driver > junit.xml`,
		Args: func(made *cobra.Command, arguments []string) error {
			if len(arguments) == 0 {
				return fmt.Errorf("COMMAND is missing: %s", made.UseLine())
			}
			return nil
		},
		RunE: func(made *cobra.Command, arguments []string) error { return c.runCheck(made.Context(), arguments) },
	}
	c.output.AddTo(made, output.Table, output.JSON, output.JUnit)
	flags := made.Flags()
	flags.StringVar(&c.programs, "control-plane", "", "directory with etcd and kube-apiserver, to start a cluster; default: $"+assets+" where there is no kubeconfig")
	flags.StringVar(&c.driver, "driver", "", "name that the driver must register; default: the first that registers")
	flags.StringVar(&c.only, "only", "", "regular expression for the ids of statements to try; default: all")
	flags.DurationVar(&c.timeout, "timeout", timeout, "time for each statement")
	return made
}

func (c *command) runCheck(ctx context.Context, arguments []string) (err error) {
	chosen, err := chooseStatements(c.only)
	if err != nil {
		return err
	}
	if err := c.checkArguments(arguments); err != nil {
		return err
	}
	folder, err := makeFolder()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(folder)) }()
	g := given{arguments: arguments, folder: folder, expected: c.driver, timeout: c.timeout}
	end, err := c.findCluster(ctx, &g)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, end()) }()
	w, err := newWorld(ctx, g)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, w.deleteCreated(ctx)) }()
	return c.tryStatements(ctx, w, chosen)
}

// makeFolder makes the folder for all files. os.MkdirTemp gives folders longer names.
func makeFolder() (string, error) {
	for try := 1; ; try++ {
		folder := filepath.Join(shortFolder, "dra"+uuid.NewString()[:5])
		err := os.Mkdir(folder, 0o700)
		if err == nil || try == 10 || !errors.Is(err, fs.ErrExist) {
			return folder, err
		}
	}
}

// checkArguments refuses what cannot be run, before anything is created.
func (c *command) checkArguments(arguments []string) error {
	if c.timeout <= 0 {
		return fmt.Errorf("parse --timeout %s: must be positive", c.timeout)
	}
	if c.programs != "" && c.reach.AnyGiven() {
		return errors.New("--control-plane and flags that choose a cluster or a user, such as --context, exclude each other: give one of them")
	}
	if err := checkPlaceholders(arguments, c.driver); err != nil {
		return err
	}
	if _, err := exec.LookPath(arguments[0]); err != nil {
		return fmt.Errorf("find COMMAND: %w", err)
	}
	return nil
}

// findCluster finds or starts the cluster, and returns the function that ends it.
func (c *command) findCluster(ctx context.Context, g *given) (end func() error, err error) {
	if c.programs == "" && c.reach.Configured() {
		if g.namespace, err = c.reach.DefaultNamespace(); err != nil {
			return nil, err
		}
		g.kubeconfig = filepath.Join(g.folder, "kubeconfig")
		server, err := c.reach.WriteKubeconfig(g.kubeconfig)
		if err == nil {
			c.streams.Tell("cluster: %s\n", server)
		}
		return func() error { return nil }, err
	}
	if c.programs == "" {
		c.programs = os.Getenv(assets)
	}
	if c.programs == "" {
		return nil, errors.New("there is no cluster: give --kubeconfig FILE, or --control-plane DIR with etcd and kube-apiserver, such as setup-envtest makes")
	}
	defer c.streams.Progress("starting etcd and kube-apiserver", 0).Done()
	started, err := controlplane.Start(ctx, c.programs, g.folder)
	if err != nil {
		return nil, err
	}
	g.kubeconfig, g.namespace = started.Kubeconfig, metav1.NamespaceDefault // there is no other
	return started.Stop, nil
}

// tryStatements tries the statements, and shows the results.
func (c *command) tryStatements(ctx context.Context, w *world, chosen []statement) error {
	report := &Report{Results: make([]Result, 0, len(chosen))}
	for _, s := range chosen {
		started := time.Now()
		progress := c.streams.Progress("trying "+s.id, 0)
		err := w.tryStatement(ctx, s)
		progress.Done()
		if ctx.Err() != nil {
			return fmt.Errorf("try %s: %w", s.id, ctx.Err())
		}
		result := resultOf(s, err, time.Since(started))
		c.streams.Tell("%-7s %s (%.1f s)\n", result.Outcome, s.id, result.Seconds)
		report.Results = append(report.Results, result)
	}
	report.Driver = w.driver
	failed := report.countOutcome(output.OutcomeFailed)
	if failed > 0 {
		report.Output = process.Tail(filepath.Join(w.folder, logFile))
	}
	if err := report.printReport(c.streams.Out, c.output.Format); err != nil {
		return err
	}
	if failed == 0 {
		return nil
	}
	c.streams.Tell("\nthe last lines of the driver:\n")
	for _, line := range report.Output {
		c.streams.Tell("  %s\n", line)
	}
	return cli.ErrNegative
}
