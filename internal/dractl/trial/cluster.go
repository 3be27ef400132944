package trial

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/kwok-dra/kwok-dra/internal/dractl/cli"
	"github.com/kwok-dra/kwok-dra/internal/dractl/cluster"
	"github.com/kwok-dra/kwok-dra/internal/dractl/controlplane"
	"github.com/kwok-dra/kwok-dra/internal/dractl/process"
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

// Cluster is where stories are played: the user's cluster, or one that is started.
type Cluster struct {
	Streams cli.Streams
	Reach   *cluster.Flags
	// Programs is the directory of those of a control plane.
	Programs string
	// CommandSchedules says that COMMAND is a scheduler, so that no other one is started.
	CommandSchedules bool
}

// AddTo adds the flag for a cluster that is started.
func (c *Cluster) AddTo(command *cobra.Command) {
	command.Flags().StringVar(&c.Programs, "control-plane", "", "directory with etcd, kube-apiserver, kube-controller-manager and kube-scheduler, to start a cluster; default: $"+assets+" where there is no kubeconfig")
}

// CommandArguments permits arguments only as COMMAND.
func CommandArguments(command *cobra.Command, arguments []string) error {
	if command.ArgsLenAtDash() != 0 && len(arguments) > 0 {
		return fmt.Errorf("unexpected argument %q: write -- before COMMAND", arguments[0])
	}
	return nil
}

// Check refuses what cannot be run, before anything is created.
func (c *Cluster) Check(command []string) error {
	if c.Programs != "" && c.Reach.AnyGiven() {
		return errors.New("--control-plane and flags that choose a cluster or a user, such as --context, exclude each other: give one of them")
	}
	if len(command) > 0 {
		if _, err := exec.LookPath(command[0]); err != nil {
			return fmt.Errorf("find COMMAND: %w", err)
		}
	}
	return nil
}

// Use calls use with the kubeconfig of the cluster, in which COMMAND runs. problem says how a program has ended that should
// run.
func (c *Cluster) Use(ctx context.Context, command []string, use func(kubeconfig string, problem func() error) error) (err error) {
	folder, err := os.MkdirTemp("", "kwok-dractl-check-")
	if err != nil {
		return fmt.Errorf("make a folder: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(folder)) }()
	kubeconfig, problem, end, err := c.find(ctx, folder, len(command) > 0)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, end()) }()
	if len(command) > 0 {
		started, err := startCommand(ctx, command, kubeconfig, folder)
		if err != nil {
			return err
		}
		defer func() { _ = started.Stop(grace) }() // a program on trial may do as it likes at the end
		controlPlane := problem
		problem = func() error { return errors.Join(controlPlane(), started.Err()) }
	}
	return use(kubeconfig, problem)
}

// find finds or starts the cluster. problem says how a program of it has ended, and end ends it.
func (c *Cluster) find(ctx context.Context, folder string, hasCommand bool) (kubeconfig string, problem, end func() error, err error) {
	none := func() error { return nil }
	if c.Programs == "" && c.Reach.Configured() {
		kubeconfig = filepath.Join(folder, "kubeconfig")
		server, err := c.Reach.WriteKubeconfig(kubeconfig)
		if err == nil {
			c.Streams.Tell("cluster: %s\n", server)
		}
		return kubeconfig, none, none, err
	}
	if c.Programs == "" {
		c.Programs = os.Getenv(assets)
	}
	if c.Programs == "" {
		return "", nil, nil, errors.New("there is no cluster: give --kubeconfig FILE, or --control-plane DIR with etcd, kube-apiserver, kube-controller-manager and kube-scheduler")
	}
	defer c.Streams.Progress("starting a control plane", 0).Done()
	started, err := controlplane.Start(ctx, c.Programs, folder)
	if err != nil {
		return "", nil, nil, err
	}
	// No kubelet says that nodes are healthy.
	err = started.StartController(ctx, controlplane.ControllerManager, "--node-monitor-grace-period=24h", "--controllers=*,-bootstrap-signer-controller,-token-cleaner-controller")
	if err == nil && (!hasCommand || !c.CommandSchedules) {
		err = startScheduler(ctx, started, folder)
	}
	if err != nil {
		return "", nil, nil, errors.Join(err, started.Stop())
	}
	return started.Kubeconfig, started.Err, started.Stop, nil
}

// Connect makes a client without a limit on requests, and returns the version of the API server with it.
func Connect(kubeconfig string) (config *rest.Config, client kubernetes.Interface, version string, err error) {
	config, err = clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return nil, nil, "", fmt.Errorf("read kubeconfig: %w", err)
	}
	config.QPS = -1
	client, err = kubernetes.NewForConfig(config)
	if err != nil {
		return nil, nil, "", fmt.Errorf("make a client: %w", err)
	}
	served, err := client.Discovery().ServerVersion()
	if err != nil {
		return nil, nil, "", fmt.Errorf("read the version of the API server: %w", err)
	}
	return config, client, served.GitVersion, nil
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

// startCommand starts the program on trial.
func startCommand(ctx context.Context, arguments []string, kubeconfig, folder string) (*process.Process, error) {
	replaced := make([]string, len(arguments))
	for i, argument := range arguments {
		replaced[i] = strings.ReplaceAll(argument, kubeconfigPlaceholder, kubeconfig)
	}
	return process.Start(ctx, process.Options{Arguments: replaced, Environment: []string{"KUBECONFIG=" + kubeconfig}, Log: filepath.Join(folder, logFile)})
}
