// Command cluster builds and runs real Kubernetes clusters with fake nodes on
// this machine, for the demo and for work by hand.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/kwok-dra/kwok-dra/test/cluster"
	"github.com/kwok-dra/kwok-dra/test/cluster/build"
)

const usage = `Runs real Kubernetes clusters with kwok's fake nodes on this machine, without
root or containers. The programs are downloaded once, or compiled from Go modules,
which takes minutes.

Usage: cluster COMMAND [flags]

  build        download or compile what is missing and print where the programs are
  up           start a cluster, which keeps running until "down"
  down         stop a cluster and remove everything that belongs to it
  run          run one more program until "down": run [flags] PROGRAM [ARGUMENTS],
               with KUBECONFIG set; it is a component named like the program
  kubectl      run kubectl on a cluster: kubectl [flags] -- get nodes
  kubeconfig   print the path of a cluster's kubeconfig
  env          print the settings for a shell: eval "$(cluster env)"

Flags of all commands but build:

  --name NAME               name of the cluster (default "demo")

Flags of up:

  --config FILE             configuration or Stages for kwokctl, may be repeated;
                            Stages replace all default Stages of kwok. A relative
                            path starts from where the program runs, which is
                            DIRECTORY with "go -C DIRECTORY run"
  --feature-gates LIST      for example DRAPartitionableDevices=true,...
  --runtime-config LIST     for example resource.k8s.io/v1beta2=true,...
  --enable-crds LIST        kinds that kwok reads from the cluster, for example Stage
  --disable LIST            components not to start, for example kube-scheduler
  --audit                   log every request

Environment:

  KUBERNETES_VERSION   1.34, 1.35, 1.36 (default), 1.37 or a release such as 1.36.3
  KWOK_VERSION         release of kwok (default 0.8.0)
  RELEASE_BINARIES     0 compiles the programs, 1 downloads the official release
                       binaries, verified; without it they are downloaded where
                       their servers answer within three seconds, and compiled
                       where not. Other places to download from are named by
                       kwokctl's variables KWOK_KUBE_BINARY_PREFIX,
                       KWOK_ETCD_BINARY_PREFIX and KWOK_BINARY_PREFIX
  KWOK_DRA_CACHE       where programs and clusters are kept (default: kwok-dra in
                       the user's cache directory)
`

var errUsage = errors.New(`unknown command, see "cluster help"`)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := runCommand(ctx, os.Args[1:], os.Stdout)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "cluster:", err)
		os.Exit(1)
	}
}

func runCommand(ctx context.Context, args []string, out io.Writer) error {
	if len(args) == 0 {
		args = []string{"help"}
	}
	command, args := args[0], args[1:]
	o := cluster.Options{Output: os.Stderr}
	help, rest, err := parseFlags(command, args, &o)
	if err != nil {
		return err
	}
	switch {
	case help:
		_, err := io.WriteString(out, usage)
		return err
	case command == "build":
		return buildAll(ctx, out)
	case command == "up":
		return startCluster(ctx, o, out)
	case command == "down":
		return stopCluster(ctx, o.Name, out)
	case command == "run":
		return addProgram(ctx, o.Name, rest, out)
	case command == "kubectl":
		return runKubectl(ctx, o.Name, rest, out)
	case command == "kubeconfig":
		return printOfCluster(ctx, o.Name, out, func(c *cluster.Cluster) string { return c.Kubeconfig() })
	case command == "env":
		return printOfCluster(ctx, o.Name, out, (*cluster.Cluster).Environment)
	}
	return fmt.Errorf("run %q: %w", command, errUsage)
}

// parseFlags reads the flags of a command; each command takes its own only.
func parseFlags(command string, args []string, o *cluster.Options) (help bool, rest []string, err error) {
	flags := flag.NewFlagSet(command, flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	if command != "build" {
		flags.StringVar(&o.Name, "name", "demo", "")
	}
	if command == "up" {
		flags.Func("config", "", func(file string) error { o.Config = append(o.Config, file); return nil })
		flags.Func("feature-gates", "", setSwitches(&o.FeatureGates))
		flags.Func("runtime-config", "", setSwitches(&o.RuntimeConfig))
		flags.Func("enable-crds", "", appendTo(&o.EnableCRDs))
		flags.Func("disable", "", appendTo(&o.Disable))
		flags.BoolVar(&o.Audit, "audit", false, "")
	}
	err = flags.Parse(args)
	switch {
	case errors.Is(err, flag.ErrHelp), command == "help", command == "--help", command == "-h":
		return true, nil, nil
	case err != nil:
		return false, nil, fmt.Errorf("read flags of %s: %w", command, err)
	case flags.NArg() > 0 && command != "run" && command != "kubectl":
		return false, nil, fmt.Errorf("read flags of %s: unexpected %q", command, flags.Arg(0))
	}
	return false, flags.Args(), nil
}

func appendTo(values *[]string) func(string) error {
	return func(text string) error {
		*values = append(*values, strings.Split(text, ",")...)
		return nil
	}
}

func setSwitches(values *map[string]bool) func(string) error {
	return func(text string) error {
		if *values == nil {
			*values = map[string]bool{}
		}
		for pair := range strings.SplitSeq(text, ",") {
			name, value, _ := strings.Cut(pair, "=")
			if value != "true" && value != "false" {
				return fmt.Errorf("%q is not NAME=true or NAME=false", pair)
			}
			(*values)[name] = value == "true"
		}
		return nil
	}
}

func buildAll(ctx context.Context, out io.Writer) error {
	programs, err := build.Ensure(ctx, build.Options{Output: os.Stderr})
	if err != nil {
		return err
	}
	for _, name := range programs.Names() {
		fmt.Fprintln(out, programs.Path(name))
	}
	return nil
}

func startCluster(ctx context.Context, o cluster.Options, out io.Writer) error {
	c, created, err := cluster.Up(ctx, o)
	if err != nil {
		return err
	}
	if !created {
		fmt.Fprintf(out, "Cluster %s is already running, as it was started (Kubernetes %s, kwok %s).\n", c.Name(), c.Versions().Kubernetes, c.Versions().Kwok)
	}
	fmt.Fprintf(out, "Use it with:  export KUBECONFIG=%s\n", c.Kubeconfig())
	return nil
}

func stopCluster(ctx context.Context, name string, out io.Writer) error {
	found, err := cluster.Down(ctx, name)
	if err != nil {
		return err
	}
	if !found {
		fmt.Fprintf(out, "There is no cluster %s.\n", name)
		return nil
	}
	fmt.Fprintf(out, "Cluster %s is stopped and removed.\n", name)
	return nil
}

func addProgram(ctx context.Context, name string, command []string, out io.Writer) error {
	if len(command) == 0 {
		return errors.New("run a program: which one?")
	}
	c, err := cluster.Find(ctx, name)
	if err != nil {
		return err
	}
	component := filepath.Base(command[0])
	if err := c.AddComponent(component, command[0], command[1:]...); err != nil {
		return err
	}
	fmt.Fprintf(out, "%s runs until cluster %s is stopped, its log is %s\n", component, name, filepath.Join(c.Logs(), component+".log"))
	return nil
}

func runKubectl(ctx context.Context, name string, args []string, out io.Writer) error {
	c, err := cluster.Find(ctx, name)
	if err != nil {
		return err
	}
	cmd := c.KubectlCommand(ctx, args...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, out, os.Stderr
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("run kubectl %s: %w", strings.Join(args, " "), err)
	}
	return nil
}

func printOfCluster(ctx context.Context, name string, out io.Writer, what func(*cluster.Cluster) string) error {
	c, err := cluster.Find(ctx, name)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintln(out, what(c))
	return err
}
