package generate

import (
	"bytes"
	"fmt"
	"regexp"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kwok-dra/kwok-dra/internal/dractl/check"
	"github.com/kwok-dra/kwok-dra/internal/dractl/cli"
	"github.com/kwok-dra/kwok-dra/internal/dractl/cluster"
	"github.com/kwok-dra/kwok-dra/internal/dractl/documents"
	"github.com/kwok-dra/kwok-dra/internal/dractl/output"
	"github.com/kwok-dra/kwok-dra/internal/dractl/preview"
	"github.com/kwok-dra/kwok-dra/internal/dractl/target"
	"github.com/kwok-dra/kwok-dra/pkg/api/v1alpha1"
)

// published are the slices that templates yield on nodes.
func published(t *testing.T, version, text string, nodes []*corev1.Node) []*resourcev1.ResourceSlice {
	t.Helper()
	result := check.Documents(documents.Split("templates", []byte(text)))
	require.Empty(t, result.Problems)
	release, err := preview.EverythingOn(version)
	require.NoError(t, err)
	previewed, err := preview.New(t.Context(), release, preview.Cluster{Config: result.Set.Published(), Nodes: nodes})
	require.NoError(t, err)
	require.Empty(t, previewed.Problems)
	require.NotEmpty(t, previewed.Create)
	return previewed.Create
}

// copyOf runs the command on nodes and slices, and returns what it prints.
func copyOf(t *testing.T, nodes []*corev1.Node, made []*resourcev1.ResourceSlice) (printed, told string) {
	t.Helper()
	var in bytes.Buffer
	require.NoError(t, output.Objects(&in, output.JSON, made))
	printed, told, err := runCopy(t, nodes, in.String())
	require.NoError(t, err)
	return printed, told
}

// runCopy runs the command on nodes and a text of other objects.
func runCopy(t *testing.T, nodes []*corev1.Node, others string, arguments ...string) (printed, told string, err error) {
	t.Helper()
	var in, out, errOut bytes.Buffer
	if len(nodes) > 0 {
		require.NoError(t, output.Objects(&in, output.JSON, nodes))
	}
	in.WriteString("---\n" + others)
	command := New(cli.Streams{In: &in, Out: &out, ErrOut: &errOut}, &cluster.Flags{})
	command.SilenceErrors, command.SilenceUsage = true, true
	command.SetArgs(append([]string{"-f", "-"}, arguments...))
	err = command.ExecuteContext(t.Context())
	return out.String(), errOut.String(), err
}

// nodesIn are the nodes in a text, with the uids of others of their names.
func nodesIn(t *testing.T, text string, like []*corev1.Node) []*corev1.Node {
	t.Helper()
	objects, err := documents.Objects(documents.Split("copy", []byte(text)))
	require.NoError(t, err)
	uids := map[string]types.UID{}
	for _, node := range like {
		uids[node.Name] = node.UID
	}
	var nodes []*corev1.Node
	for _, object := range objects {
		if object.GetKind() == "Node" {
			node := &corev1.Node{}
			require.NoError(t, object.Into(node))
			node.UID = uids[node.Name]
			nodes = append(nodes, node)
		}
	}
	return nodes
}

// numbered gives nodes uids, as a cluster does.
func numbered(nodes []*corev1.Node) []*corev1.Node {
	for i, node := range nodes {
		node.UID = types.UID(fmt.Sprintf("00000000-0000-0000-0000-%012d", i))
	}
	return nodes
}

// encoded are the slices by name, as they are printed.
func encoded(t *testing.T, made []*resourcev1.ResourceSlice) map[string]string {
	t.Helper()
	texts := map[string]string{}
	for _, slice := range made {
		var text bytes.Buffer
		require.NoError(t, output.Objects(&text, output.YAML, []*resourcev1.ResourceSlice{slice}))
		texts[slice.Name] = text.String()
	}
	require.Len(t, texts, len(made))
	return texts
}

// progress is what a busy machine has a command say that takes longer than usual.
var progress = regexp.MustCompile(`(?m)^copying pools \.\.\. \d+ s\n`)

// standingProfiles are those whose devices are on their nodes without a driver's Pod.
func standingProfiles(t *testing.T) []*target.Target {
	t.Helper()
	names, err := target.ProfileNames()
	require.NoError(t, err)
	var profiles []*target.Target
	for _, name := range names {
		profile, err := target.Read(cli.Streams{}, []string{name}, &target.Known{})
		require.NoError(t, err)
		if len(profile.Pools) > 0 {
			profiles = append(profiles, profile)
		}
	}
	return profiles
}

// templatesOf prints the templates of a profile.
func templatesOf(t *testing.T, profile *target.Target) string {
	t.Helper()
	var text bytes.Buffer
	templates := slices.DeleteFunc(slices.Clone(profile.Objects), func(object *unstructured.Unstructured) bool {
		return object.GetKind() != v1alpha1.ResourcePoolTemplateKind
	})
	require.NoError(t, output.Objects(&text, output.YAML, templates))
	return text.String()
}

// TestCopyOfProfiles: a copy of nodes with the hardware of a profile publishes
// what they do, to the letter.
func TestCopyOfProfiles(t *testing.T) {
	t.Parallel()
	profiles := standingProfiles(t)
	require.Greater(t, len(profiles), 12)
	for _, profile := range profiles {
		for _, version := range []string{"1.34", "1.37"} {
			t.Run(profile.Name+" "+version, func(t *testing.T) {
				t.Parallel()
				nodes := numbered(profile.Nodes(profile.Name, 0, 3))
				made := published(t, version, templatesOf(t, profile), nodes)
				printed, told := copyOf(t, nodes, made)
				require.Empty(t, progress.ReplaceAllString(told, ""))
				again := published(t, version, printed, nodesIn(t, printed, nodes))
				require.Equal(t, encoded(t, made), encoded(t, again))
			})
		}
	}
}

// third is a pool of three slices.
const third = `
apiVersion: dra.kwok.x-k8s.io/v1alpha1
kind: ResourcePoolTemplate
metadata: {name: third}
spec:
  driver: third.example.com
  poolName: '{{ .Node.metadata.name }}-devices'
  devices: [{name: big, count: 300}]
`

// fleetTemplates are pools of all forms, as drivers may have them.
const fleetTemplates = third + `---
apiVersion: dra.kwok.x-k8s.io/v1alpha1
kind: ResourcePoolTemplate
metadata: {name: mixed}
spec:
  driver: mixed.example.com
  nodeSelector: {nodeSelectorTerms: [{matchExpressions: [{key: kind, operator: In, values: [a, b]}]}]}
  devices:
  - name: gpu
    count: 3
    attributes:
      product: '{{ if eq .Node.metadata.labels.kind "a" }}A100{{ else }}H100{{ end }}'
      serial: '{{ uuid .Node.metadata.uid .Index }}'
      machine: '{{ uuid .Node.metadata.uid }}'
      host: 'host {{ .Node.metadata.name }}/{{ .Index }}'
      rack: '{{ .Node.metadata.labels.rack }}'
      big: {int: '{{ add 9007199254740990 .Index }}'}
      huge: 9223372036854775807
      numbers: {ints: ['{{ .Index }}', 7]}
      braces: '{{ "{{ braces }}" }}'
      empty: ""
      odd: {bool: '{{ eq (mod .Index 2) 1 }}'}
      version: {version: '1.{{ .Index }}.0'}
    taints: [{key: k, value: v, effect: NoSchedule}]
  - name: shared
    allowMultipleAllocations: true
    capacity: {bandwidth: {value: 10G, requestPolicy: {default: 1G, validRange: {min: 1G, step: 1G}}}}
---
apiVersion: dra.kwok.x-k8s.io/v1alpha1
kind: ResourcePoolTemplate
metadata: {name: second}
spec:
  driver: mixed.example.com
  poolName: 'pool/{{ uuid .Node.metadata.uid }}'
  devices: [{name: solo}, {name: x, count: 3}]
  slices: [{devices: [solo]}, {devices: [x-0, x-1]}, {devices: [x-2]}]
---
apiVersion: dra.kwok.x-k8s.io/v1alpha1
kind: ResourcePoolTemplate
metadata: {name: fabric}
spec:
  driver: fabric.example.com
  sharedWith: {perDeviceNodeSelection: true}
  devices:
  - {name: port, count: 3, nodeName: 'node-{{ .Index }}'}
  - {name: switch, allNodes: true}
`

// TestCopyOfAllForms copies a fleet with pools of all forms.
func TestCopyOfAllForms(t *testing.T) {
	t.Parallel()
	nodes := numbered((&target.Target{Name: "any"}).Nodes("node", 0, 6))
	for i, node := range nodes {
		node.Labels["kind"] = []string{"a", "b", "none"}[i%3]
		node.Labels["rack"] = fmt.Sprintf("rack-%d", i)
	}
	made := published(t, "1.37", fleetTemplates, nodes)
	printed, told := copyOf(t, nodes, made)
	require.Empty(t, told)
	require.Equal(t, encoded(t, made), encoded(t, published(t, "1.37", printed, nodesIn(t, printed, nodes))))
	require.Equal(t, 2, bytes.Count([]byte(printed), []byte("\n      product: ")), "a template for each product")
	for _, want := range []string{
		"host: host {{ .Node.metadata.name }}/{{ .Index }}\n", "rack: '{{ index .Node.metadata.labels \"rack\" }}'\n",
		"poolName: '{{ .Node.metadata.name }}-devices'\n", "nodeName: node-{{ .Index }}\n", "sharedWith:\n    perDeviceNodeSelection: true\n",
	} {
		require.Contains(t, printed, want)
	}
}

// TestCopyLeavesOutWhatIsIncomplete: the scheduler would not use it either.
func TestCopyLeavesOutWhatIsIncomplete(t *testing.T) {
	t.Parallel()
	nodes := numbered((&target.Target{Name: "any"}).Nodes("node", 0, 1))
	made := published(t, "1.37", third, nodes)
	require.Len(t, made, 3)
	old := made[0].DeepCopy()
	old.Name, old.Spec.Pool.Generation = "old", 0
	printed, told := copyOf(t, nodes, append(made, old))
	require.Equal(t, "left out: 1 ResourceSlice: its pool has a newer generation: old\ncopied 1 of 1 nodes and 3 of 4 ResourceSlices\n", told)
	require.Contains(t, printed, "count: 300\n")

	var in bytes.Buffer
	require.NoError(t, output.Objects(&in, output.JSON, made[:2]))
	_, told, err := runCopy(t, nodes, in.String())
	require.ErrorContains(t, err, "no ResourceSlice can be copied")
	require.Contains(t, told, "left out: 1 pool: it has 2 of 3 slices: third.example.com/node-0-devices\n")
}
