package why

import (
	"context"
	"errors"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"

	"github.com/kwok-dra/kwok-dra/internal/config"
	"github.com/kwok-dra/kwok-dra/internal/dractl/cli"
	"github.com/kwok-dra/kwok-dra/internal/dractl/cluster"
	"github.com/kwok-dra/kwok-dra/internal/dractl/fleet"
	"github.com/kwok-dra/kwok-dra/internal/dractl/output"
	"github.com/kwok-dra/kwok-dra/internal/extensions/explaining/sidecar"
	"github.com/kwok-dra/kwok-dra/internal/extensions/explaining/why"
	"github.com/kwok-dra/kwok-dra/internal/kubectldra/reading"
	"github.com/kwok-dra/kwok-dra/internal/observe/lifecycle"
)

// command is what the user asks for.
type command struct {
	streams   cli.Streams
	reach     *cluster.Flags
	templates fleet.Templates
	managed   lifecycle.ManagedNodes
	all       bool
	plugins   string
	output    output.Flag
}

const long = `Say why a Pod with devices does not run yet, and what it waits for: first the cause,
then the numbers, then what each node lacks. Without a Pod, each cause is said once
for all that wait in the namespace, with the Pods that wait for it.

  Unscheduled  no node: claims that are not created, classes that do not exist,
               too few devices and who has them, or a constraint, a selector or a
               driver that leaves none. The nearest node is the one that has such
               devices and lacks the fewest
  Binding      devices have binding conditions that are not True yet
  Preparing    on its node the claims are not prepared: a Stage is still to be
               played, preparing fails, or a driver or its Pod is not ready
  Starting     the claims are prepared, and no Stage has started the containers

Devices are searched as kwok-dractl schedule does, with the scheduler's own
allocator, and preparing is planned as kwok-dra does, with the configuration of
the cluster: the ConfigMap kube-system/kwok-dra and custom resources, unless -f or
--config-map names others. A Pod that runs, has ended or asks for no device gets one
line. The exit code is 0 whenever there is an answer.

The command reads nodes, slices, classes, claims, their templates, DeviceTaintRules,
Pods and events. With --plugins-dir it also asks the plugins of real drivers, by
their sockets there, which drivers they are of. Without the right to read the
configuration of kwok-dra it says less of Pods that have a node.`

const example = `  # Why does this Pod wait?
  kwok-dractl why training-0

  # All that wait in the namespace, and in all namespaces
  kwok-dractl why
  kwok-dractl why -A

  # For programs
  kwok-dractl why training-0 -n default -o json`

// New makes the command.
func New(streams cli.Streams, reach *cluster.Flags) *cobra.Command {
	c := &command{streams: streams, reach: reach}
	made := &cobra.Command{
		Use:     "why [POD]",
		Short:   "Say why Pods with devices do not run yet.",
		Long:    long,
		Example: example,
		Args: func(command *cobra.Command, arguments []string) error {
			if len(arguments) == 0 {
				return nil
			}
			return cli.OneArgument("POD")(command, arguments)
		},
		ValidArgsFunction: reach.CompletePods,

		RunE: func(made *cobra.Command, arguments []string) error {
			return c.runWhy(made.Context(), strings.TrimPrefix(strings.Join(arguments, ""), "pod/"))
		},
	}
	c.templates.AddTo(made, "")
	fleet.AddManaged(made, &c.managed)
	made.Flags().BoolVarP(&c.all, "all-namespaces", "A", false, "list the Pods that wait in all namespaces")
	made.Flags().StringVar(&c.plugins, "plugins-dir", "", "directory that kwok-dra has as --plugins-dir, to say which real drivers are registered")
	c.output.AddTo(made, output.Table, output.JSON, output.YAML)
	return made
}

func (c *command) runWhy(ctx context.Context, name string) error {
	if c.all && name != "" {
		return errors.New("-A lists the Pods of all namespaces: give a POD, with its namespace as -n, or -A")
	}
	if err := c.managed.Complete(); err != nil {
		return err
	}
	namespace, err := c.reach.DefaultNamespace()
	if err != nil {
		return err
	}
	client, err := c.reach.Client()
	if err != nil {
		return err
	}
	if c.all {
		namespace = ""
	}
	var pod *corev1.Pod
	if name != "" {
		if pod, err = reading.GetPod(ctx, client, namespace, name); err != nil {
			return err
		}
	}
	known, pods, err := c.readCluster(ctx, client, namespace)
	if err != nil {
		return err
	}
	return c.explainPods(ctx, known, pod, pods)
}

// explainPods says why a Pod waits, or without one why each of pods does that waits.
func (c *command) explainPods(ctx context.Context, known *why.Cluster, pod *corev1.Pod, pods []*corev1.Pod) error {
	var answers []*why.Answer
	if pod != nil {
		answers = []*why.Answer{known.Answer(ctx, pod)}
	} else {
		answers = known.Waiting(ctx, pods)
	}
	switch {
	case ctx.Err() != nil: // answers of a search that was interrupted are wrong
		return ctx.Err()
	case pod != nil:
		return c.showAnswer(answers[0], known.Now)
	}
	return c.listGroups(why.Groups(answers), known.Now)
}

// readCluster reads the cluster, and the Pods of a namespace, or of all.
func (c *command) readCluster(ctx context.Context, client kubernetes.Interface, namespace string) (*why.Cluster, []*corev1.Pod, error) {
	defer c.streams.Progress("reading the cluster", 0).Done()
	set, err := c.readConfiguration(ctx, client)
	if err != nil {
		return nil, nil, err
	}
	known, pods, err := why.Read(ctx, client, namespace)
	if err != nil {
		return nil, nil, err
	}
	if known.Unseen != "" {
		c.streams.Tell("%s\n", known.Unseen)
	}
	known.Now = time.Now()
	if set == nil {
		return known, pods, nil
	}
	drivers, err := fleet.Live(ctx, client, set)
	if err != nil {
		return nil, nil, err
	}
	added := sidecar.AddTo(known, set, &c.managed, drivers)
	if c.plugins != "" {
		opened, err := openPlugins(c.plugins)
		if err != nil {
			return nil, nil, err
		}
		added.Registered = opened.isRegistered
	}
	return known, pods, nil
}

// readConfiguration returns the configuration of kwok-dra, or nil if the user may not read it.
func (c *command) readConfiguration(ctx context.Context, client kubernetes.Interface) (*config.Set, error) {
	restConfig, err := c.reach.RESTConfig()
	if err != nil {
		return nil, err
	}
	objects, err := dynamic.NewForConfig(restConfig)
	if err != nil {
		return nil, err
	}
	set, err := c.templates.SetInCluster(ctx, c.streams, client, objects)
	if apierrors.IsForbidden(err) {
		c.streams.Tell("the configuration of kwok-dra is not considered: %v\n", err)
		return nil, nil
	}
	return set, err
}

func (c *command) showAnswer(answer *why.Answer, now time.Time) error {
	if c.output.Format.IsValue() {
		return output.Value(c.streams.Out, c.output.Format, answer)
	}
	return c.printText(func(out io.Writer) error { return answer.Print(out, now) })
}

func (c *command) listGroups(groups []*why.Group, now time.Time) error {
	if c.output.Format.IsValue() {
		return output.Value(c.streams.Out, c.output.Format, groups)
	}
	if len(groups) == 0 {
		c.streams.Tell("no Pod waits for devices\n")
		return nil
	}
	return c.printText(func(out io.Writer) error { return why.PrintGroups(out, groups, now, cli.Name+" why") })
}

// printText prints text as wide as the terminal.
func (c *command) printText(show func(out io.Writer) error) error {
	var text strings.Builder
	if err := show(&text); err != nil {
		return err
	}
	return output.Text(c.streams.Out, text.String())
}
