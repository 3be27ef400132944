package generate

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/kwok-dra/kwok-dra/internal/dractl/cli"
	"github.com/kwok-dra/kwok-dra/internal/dractl/cluster"
	"github.com/kwok-dra/kwok-dra/internal/dractl/documents"
	"github.com/kwok-dra/kwok-dra/internal/dractl/output"
	"github.com/kwok-dra/kwok-dra/internal/dractl/target"
	"github.com/kwok-dra/kwok-dra/pkg/api/v1alpha1"
)

type command struct {
	targetOptions
	copyOptions

	streams      cli.Streams
	reach        *cluster.Flags
	listProfiles bool
	files        documents.Files
	configMap    string
	output       output.Flag
	// manager names the target, to tell field managers apart.
	manager string
}

// targetOptions say what is made for a target.
type targetOptions struct {
	profiles     []string
	nodes, first int
	prefix       string
}

// copyOptions say what is copied.
type copyOptions struct {
	fromCluster bool
	drivers     []string
}

// New makes the command.
func New(streams cli.Streams, reach *cluster.Flags) *cobra.Command {
	c := &command{streams: streams, reach: reach}
	made := &cobra.Command{
		Use:   "generate (TARGET --nodes N | --from-cluster | -f FILE)",
		Short: "Print fake nodes and their templates: for a target, or as a copy of real nodes.",
		Long: `Print fake nodes and their templates, for kubectl apply --server-side -f -.

With a TARGET they are what kwok-dractl scale would make for it: of a profile of the
catalogue, of a file of your own templates, of a template in the cluster, or of
several joined by commas. The DeviceClasses are printed too. Other fleets may use
these, so delete what is printed with kwok-dractl delete TARGET, and not with kubectl
delete.

With --from-cluster, or from a file of Nodes and ResourceSlices, they are a copy
of nodes with real drivers: fake nodes of the same names and labels, and templates
that yield the same ResourceSlices. Nodes whose devices are alike share a
template. Values that differ from device to device become Go templates of .Index.
Values that differ from node to node become Go templates of the node's name or
labels, or of an annotation that the copied node gets.

What cannot be copied does not stop the rest: standard error and a comment at the
head of the copy say how many nodes, pools and slices are left out, which, and why.
Nodes are copied if a ResourceSlice is for them. Files may have ResourceSlices of
resource.k8s.io/v1beta1 and v1beta2 too.

Templates are custom resources, which kwok-dra reads with --enable-crds. With
--config-map they are keys of a ConfigMap, one key for each profile. The keys that
the ConfigMap has in the cluster are printed too, so that kubectl apply keeps them.`,
		Example: `  # A hundred nodes with eight H100 each
  kwok-dractl generate nvidia-h100 --nodes 100 | kubectl apply --server-side -f -

  # The same, with the templates in the ConfigMap that kwok-dra watches
  kwok-dractl generate nvidia-h100 --nodes 3 --config-map kube-system/kwok-dra | kubectl apply --server-side -f -

  # Nodes with hardware of your own
  kwok-dractl generate -f gpus.yaml --nodes 3

  # What is in the catalogue?
  kwok-dractl generate --list-profiles

  # Copy real nodes into a test
  kwok-dractl generate --from-cluster > fleet.yaml
  kubectl get nodes,resourceslices -o yaml | kwok-dractl generate -f - --driver gpu.nvidia.com`,
		Args:              cobra.ArbitraryArgs,
		ValidArgsFunction: target.Complete,
		RunE:              c.runGenerate,
	}
	flags := made.Flags()
	flags.StringSliceVar(&c.profiles, "profile", nil, "name of a profile of the catalogue, as a TARGET; of several, each node has all")
	flags.BoolVar(&c.listProfiles, "list-profiles", false, "print the profiles and nothing else; -o wide is for the drivers on a narrow terminal")
	flags.IntVar(&c.nodes, "nodes", 0, "number of nodes; 0: only the templates and the DeviceClasses")
	flags.IntVar(&c.first, "first", 0, "number of the first node")
	flags.StringVar(&c.prefix, "prefix", "", "nodes are named PREFIX-0, PREFIX-1, and so on; default: the name of the target")
	flags.StringVar(&c.configMap, "config-map", "", "put the templates into a ConfigMap, as NAMESPACE/NAME")
	flags.BoolVar(&c.fromCluster, "from-cluster", false, "copy the nodes and slices of the cluster")
	c.files.AddTo(made, "Nodes and ResourceSlices to copy, or templates to make nodes for")
	flags.StringSliceVar(&c.drivers, "driver", nil, "copy the slices of these drivers only")
	c.output.AddTo(made, output.YAML, output.JSON, output.Name, output.Table, output.Wide)
	cli.Exclusive(made, "profile", "list-profiles", "from-cluster", "filename")
	_ = made.RegisterFlagCompletionFunc("profile", target.Complete) // it fails only for a flag that does not exist
	return made
}

func (c *command) runGenerate(command *cobra.Command, arguments []string) error {
	ctx, targets := command.Context(), slices.Concat(c.profiles, arguments)
	switch {
	case c.listProfiles:
		return c.printProfiles(command.Flags().Changed("output"))
	case c.output.Format == output.Table, c.output.Format == output.Wide:
		return fmt.Errorf("-o %s is for --list-profiles: nodes and templates are printed as yaml, json or name", c.output.Format)
	}
	if len(targets) > 0 {
		if c.fromCluster || len(c.files.Paths) > 0 {
			return fmt.Errorf("a target (%s) excludes --from-cluster and -f: join targets by commas, such as %s,./my.yaml", strings.Join(targets, ","), targets[0])
		}
		of, err := target.Read(c.streams, targets, target.KnownFor(ctx, c.streams, c.reach, targets))
		if err != nil {
			return err
		}
		return c.printTarget(command, of)
	}
	if !c.fromCluster && len(c.files.Paths) == 0 {
		return errors.New("nothing to generate: give a TARGET, --from-cluster or -f FILE; --list-profiles lists the profiles")
	}
	all, err := c.files.Read(c.streams)
	if err != nil {
		return err
	}
	objects, _ := documents.Objects(all)
	has := func(kind string) bool {
		return slices.ContainsFunc(objects, func(object documents.Object) bool { return object.GetKind() == kind })
	}
	if has(v1alpha1.ResourcePoolTemplateKind) && !has("ResourceSlice") { // nothing to copy
		of, err := target.FromDocuments(c.streams, strings.Join(c.files.Paths, ", "), all)
		if err != nil {
			return err
		}
		return c.printTarget(command, of)
	}
	ofTarget := []string{"nodes", "first", "prefix"}
	if i := slices.IndexFunc(ofTarget, command.Flags().Changed); i >= 0 {
		return fmt.Errorf("--%s is for a TARGET, or a file of templates: a copy has the nodes that are copied", ofTarget[i])
	}
	return c.copyNodes(ctx, all)
}

// printTarget prints what scale would make where there is nothing.
func (c *command) printTarget(command *cobra.Command, of *target.Target) error {
	for flag, value := range map[string]int{"nodes": c.nodes, "first": c.first} {
		if value < 0 {
			return fmt.Errorf("parse --%s %d: must not be negative", flag, value)
		}
	}
	if len(c.drivers) > 0 {
		return errors.New("--driver chooses what is copied: give it with --from-cluster or -f, not with a target")
	}
	if c.prefix != "" && len(validation.IsDNS1123Subdomain(c.prefix)) > 0 {
		return fmt.Errorf("parse --prefix %q: must begin the names of nodes: lower-case letters, digits and inner \"-\" and \".\"", c.prefix)
	}
	c.manager = of.Prefix()
	return c.printObjects(command.Context(), of.Objects, of.Nodes(cmp.Or(c.prefix, of.Prefix()), c.first, c.nodes))
}

// printObjects prints what nodes need, and the nodes.
func (c *command) printObjects(ctx context.Context, objects []*unstructured.Unstructured, nodes []*corev1.Node) error {
	if c.configMap != "" {
		var err error
		if objects, err = c.addToConfigMap(ctx, objects); err != nil {
			return err
		}
	}
	for _, node := range nodes {
		object, err := runtime.DefaultUnstructuredConverter.ToUnstructured(node)
		if err != nil {
			return fmt.Errorf("encode node %s: %w", node.Name, err)
		}
		unstructured.RemoveNestedField(object, "metadata", "uid")
		for _, part := range []string{"spec", "status"} {
			pruneZeroValues(object, part)
		}
		objects = append(objects, &unstructured.Unstructured{Object: object})
	}
	return output.Objects(c.streams.Out, c.output.Format, objects)
}

// pruneZeroValues removes the zero values that encoding adds to a part of a node.
func pruneZeroValues(object map[string]any, part string) {
	inner, ok := object[part].(map[string]any)
	for name := range inner {
		pruneZeroValues(inner, name)
	}
	if value := object[part]; value == nil || value == "" || value == int64(0) || ok && len(inner) == 0 {
		delete(object, part)
	}
}
