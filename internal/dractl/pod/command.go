package pod

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"

	"github.com/kwok-dra/kwok-dra/internal/dractl/cli"
	"github.com/kwok-dra/kwok-dra/internal/dractl/cluster"
	"github.com/kwok-dra/kwok-dra/internal/dractl/fleet"
	"github.com/kwok-dra/kwok-dra/internal/dractl/output"
	"github.com/kwok-dra/kwok-dra/internal/extensions/containerview"
	"github.com/kwok-dra/kwok-dra/internal/extensions/containerview/cdi"
	"github.com/kwok-dra/kwok-dra/internal/observe/facts"
	"github.com/kwok-dra/kwok-dra/internal/observe/lifecycle"
)

type command struct {
	streams               cli.Streams
	reach                 *cluster.Flags
	templates             fleet.Templates
	managed               lifecycle.ManagedNodes
	pluginsDir, cdiFolder string
	output                output.Flag
}

// New makes the command.
func New(streams cli.Streams, reach *cluster.Flags) *cobra.Command {
	c := &command{streams: streams, reach: reach}
	made := &cobra.Command{
		Use:   "pod NAME",
		Short: "Show what the containers of a Pod on a fake node would see of their devices.",
		Long: `Show what the containers of a Pod on a fake node would see of their devices: the
environment variables, mounts and device nodes that drivers have a container
runtime inject, files with device metadata, and the allocated devices that all
this stands for.

A container sees the claims and requests that it names, and the devices of its
extended resources. What drivers inject is said by containerEdits in their
templates. These are those of the cluster, the ConfigMap kube-system/kwok-dra and
custom resources, unless -f or --config-map names others. Of a real driver it is
said by its CDI specs: give --plugins-dir.

Variables of the Pod are there where they have a value. Those with valueFrom, and
what is in the image, are not.`,
		Example: `  # What is in the containers of a Pod?
  kwok-dractl pod training-0

  # For a test
  kwok-dractl pod training-0 -n default -o json

  # With templates that are in files
  kwok-dractl pod training-0 -f templates.yaml`,
		Args:              cli.OneArgument("NAME"),
		ValidArgsFunction: reach.CompletePods,

		RunE: func(made *cobra.Command, arguments []string) error { return c.runPod(made.Context(), arguments[0]) },
	}
	c.templates.AddTo(made, "")
	fleet.AddManaged(made, &c.managed)
	made.Flags().StringVar(&c.pluginsDir, "plugins-dir", "", "directory that kwok-dra has as --plugins-dir, for what real drivers have returned to the kubelet")
	made.Flags().StringVar(&c.cdiFolder, "cdi", "", "folder of CDI specs of real drivers; default: cdi, or run/cdi, in the folder of the node in --plugins-dir")
	c.output.AddTo(made, output.Table, output.Wide, output.JSON, output.YAML)
	return made
}

// view is what is printed.
type view struct {
	Namespace  string                    `json:"namespace"`
	Pod        string                    `json:"pod"`
	Node       string                    `json:"node"`
	Containers []containerview.Container `json:"containers"`
}

func (c *command) runPod(ctx context.Context, name string) error {
	if err := c.managed.Complete(); err != nil {
		return err
	}
	if c.cdiFolder != "" && c.pluginsDir == "" {
		return errors.New("--cdi is for what is in --plugins-dir: give it as well")
	}
	namespace, err := c.reach.DefaultNamespace()
	if err != nil {
		return err
	}
	client, err := c.reach.Client()
	if err != nil {
		return err
	}
	pod, node, err := c.findPreparedPod(ctx, client, namespace, name)
	if err != nil {
		return err
	}
	shown, err := c.viewContainers(ctx, client, pod, node)
	if err != nil {
		return fmt.Errorf("pod %s/%s: %w", namespace, name, err)
	}
	if c.output.Format.IsValue() {
		return output.Value(c.streams.Out, c.output.Format, shown)
	}
	return shown.printView(c.streams.Out, c.output.Format)
}

func (c *command) viewContainers(ctx context.Context, client kubernetes.Interface, pod *corev1.Pod, node *corev1.Node) (*view, error) {
	restConfig, err := c.reach.RESTConfig()
	if err != nil {
		return nil, err
	}
	objects, err := dynamic.NewForConfig(restConfig)
	if err != nil {
		return nil, fmt.Errorf("make a client: %w", err)
	}
	set, err := c.templates.SetInCluster(ctx, c.streams, client, objects)
	if err != nil {
		return nil, err
	}
	claims := map[string]*resourcev1.ResourceClaim{}
	for _, key := range facts.ClaimKeys(pod) {
		if claims[key.Name], err = client.ResourceV1().ResourceClaims(key.Namespace).Get(ctx, key.Name, metav1.GetOptions{}); err != nil {
			return nil, fmt.Errorf("get ResourceClaim %s: %w", key.Name, err)
		}
	}
	known, err := c.readDrivers(ctx, client, set, node)
	if err != nil {
		return nil, err
	}
	var all containerview.Drivers = known
	if known.returned != nil {
		all = &cdi.Drivers{
			Drivers:      known,
			Returned:     known.returned.CDIDevices,
			Specs:        sync.OnceValues(func() (cdi.Specs, error) { return cdi.Read("/", known.specs) }),
			ReadMetadata: known.readMetadata,
		}
	}
	containers, err := containerview.Of(pod, claims, all)
	if err != nil {
		return nil, err
	}
	if len(known.unknown) > 0 {
		c.streams.Tell("it is not known what these drivers inject, which have no template: %s; of real drivers --plugins-dir tells\n", strings.Join(sets.List(known.unknown), ", "))
	}
	return &view{Namespace: pod.Namespace, Pod: pod.Name, Node: node.Name, Containers: containers}, nil
}
