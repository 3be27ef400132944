// Package generate is the command kwok-dractl generate.
package generate

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/kwok-dra/kwok-dra/pkg/dractl/cli"
	"github.com/kwok-dra/kwok-dra/pkg/dractl/cluster"
	"github.com/kwok-dra/kwok-dra/pkg/dractl/documents"
	"github.com/kwok-dra/kwok-dra/pkg/dractl/output"
)

type command struct {
	streams      cli.Streams
	reach        *cluster.Flags
	profile      string
	listProfiles bool
	nodes, first int
	prefix       string
	configMap    string
	fromCluster  bool
	files        documents.Files
	drivers      []string
	output       output.Flag
}

// New makes the command.
func New(streams cli.Streams, reach *cluster.Flags) *cobra.Command {
	c := &command{streams: streams, reach: reach}
	made := &cobra.Command{
		Use:   "generate (--profile NAME --nodes N | --from-cluster | -f FILE)",
		Short: "Print fake nodes and their templates: from a profile, or as a copy of real nodes.",
		Long: `Print fake nodes and their templates, for kubectl apply --server-side -f -.

With --profile they have the hardware of a profile in the catalogue. The
DeviceClasses of the hardware are printed too.

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
  kwok-dractl generate --profile nvidia-h100 --nodes 100 | kubectl apply --server-side -f -

  # The same, with the templates in the ConfigMap that kwok-dra watches
  kwok-dractl generate --profile nvidia-h100 --nodes 3 --config-map kube-system/kwok-dra | kubectl apply --server-side -f -

  # What is in the catalogue?
  kwok-dractl generate --list-profiles

  # Copy real nodes into a test
  kwok-dractl generate --from-cluster > fleet.yaml
  kubectl get nodes,resourceslices -o yaml | kwok-dractl generate -f - --driver gpu.nvidia.com`,
		Args: cli.NoArguments,
		RunE: func(command *cobra.Command, _ []string) error { return c.run(command.Context()) },
	}
	flags := made.Flags()
	flags.StringVar(&c.profile, "profile", "", "name of a profile of the catalogue; --list-profiles lists them")
	flags.BoolVar(&c.listProfiles, "list-profiles", false, "print the names of the profiles and nothing else")
	flags.IntVar(&c.nodes, "nodes", 0, "number of nodes with --profile; 0: only the template and the DeviceClasses")
	flags.IntVar(&c.first, "first", 0, "number of the first node")
	flags.StringVar(&c.prefix, "prefix", "", "nodes are named PREFIX-0, PREFIX-1, and so on; default: the name of the profile")
	flags.StringVar(&c.configMap, "config-map", "", "put the templates into a ConfigMap, as NAMESPACE/NAME")
	flags.BoolVar(&c.fromCluster, "from-cluster", false, "copy the nodes and slices of the cluster")
	c.files.AddTo(made, "Nodes and ResourceSlices to copy")
	flags.StringSliceVar(&c.drivers, "driver", nil, "copy the slices of these drivers only")
	c.output.AddTo(made, output.YAML, output.JSON, output.Name)
	cli.Exclusive(made, "profile", "list-profiles", "from-cluster", "filename")
	// It fails only for a flag that does not exist.
	_ = made.RegisterFlagCompletionFunc("profile", func(*cobra.Command, []string, string) ([]cobra.Completion, cobra.ShellCompDirective) {
		names, _ := profileNames()
		return names, cobra.ShellCompDirectiveNoFileComp
	})
	return made
}

func (c *command) run(ctx context.Context) error {
	switch {
	case c.listProfiles:
		names, err := profileNames()
		if err == nil {
			_, err = fmt.Fprintln(c.streams.Out, strings.Join(names, "\n"))
		}
		return err
	case c.profile != "":
		return c.fromProfile(ctx)
	}
	if !c.fromCluster && len(c.files.Paths) == 0 {
		return errors.New("nothing to generate: give --profile NAME, --from-cluster or -f FILE; --list-profiles lists the profiles")
	}
	return c.copy(ctx)
}

func (c *command) fromProfile(ctx context.Context) error {
	if err := c.checkProfile(); err != nil {
		return err
	}
	read, err := readProfile(c.profile)
	if err != nil {
		return err
	}
	objects, err := read.objects()
	if err != nil {
		return err
	}
	return c.print(ctx, objects, profileNodes(c.profile, cmp.Or(c.prefix, c.profile), c.first, c.nodes))
}

// checkProfile checks the flags that go with --profile.
func (c *command) checkProfile() error {
	for flag, value := range map[string]int{"nodes": c.nodes, "first": c.first} {
		if value < 0 {
			return fmt.Errorf("parse --%s %d: must not be negative", flag, value)
		}
	}
	if len(c.drivers) > 0 {
		return errors.New("--driver chooses what is copied: give it with --from-cluster or -f, not with --profile")
	}
	if c.prefix != "" && len(validation.IsDNS1123Subdomain(c.prefix)) > 0 {
		return fmt.Errorf("parse --prefix %q: must begin the names of nodes: lower-case letters, digits and inner \"-\" and \".\"", c.prefix)
	}
	return nil
}

// print prints what nodes need, and the nodes.
func (c *command) print(ctx context.Context, objects []*unstructured.Unstructured, nodes []*corev1.Node) error {
	if c.configMap != "" {
		var err error
		if objects, err = c.carried(ctx, objects); err != nil {
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
			prune(object, part)
		}
		objects = append(objects, &unstructured.Unstructured{Object: object})
	}
	return output.Objects(c.streams.Out, c.output.Format, objects)
}

// prune removes the zero values that encoding adds to a part of a node.
func prune(object map[string]any, part string) {
	inner, ok := object[part].(map[string]any)
	for name := range inner {
		prune(inner, name)
	}
	if value := object[part]; value == nil || value == "" || value == int64(0) || ok && len(inner) == 0 {
		delete(object, part)
	}
}
