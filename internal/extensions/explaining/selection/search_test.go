package selection

import (
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kwok-dra/kwok-dra/internal/config"
)

const instanceType = "node.kubernetes.io/instance-type"

// documents are templates, each with the terms of its node selector, or none.
func documents(t *testing.T, terms map[string]string) *config.Documents {
	t.Helper()
	var text strings.Builder
	for _, name := range slices.Sorted(maps.Keys(terms)) {
		text.WriteString("---\napiVersion: dra.kwok.x-k8s.io/v1alpha1\nkind: ResourcePoolTemplate\nmetadata: {name: " + name + "}\n" +
			"spec:\n  driver: d.example.com\n  devices: [{name: gpu}]\n")
		if terms[name] != "" {
			text.WriteString("  nodeSelector: {nodeSelectorTerms: [" + terms[name] + "]}\n")
		}
	}
	read, err := config.Decode("test", []byte(text.String()))
	require.NoError(t, err)
	return read
}

func node(name string, labels ...string) *corev1.Node {
	made := &corev1.Node{ObjectMeta: metav1.ObjectMeta{
		Name: name, Labels: map[string]string{}, Annotations: map[string]string{"kwok.x-k8s.io/node": "fake"},
	}}
	for _, label := range labels {
		key, value, _ := strings.Cut(label, "=")
		made.Labels[key] = value
	}
	return made
}

const h100 = "{matchExpressions: [{key: " + instanceType + ", operator: In, values: [p5.48xlarge]}]}"

// TestExampleOfDocs has the nearest miss that docs/troubleshooting.md shows.
func TestExampleOfDocs(t *testing.T) {
	t.Parallel()
	set, err := config.NewSet(documents(t, map[string]string{"h100": h100}))
	require.NoError(t, err)
	fleet := []*corev1.Node{node("gpu-0", instanceType+"=p5.49xlarge"), node("gpu-1", instanceType+"=p5.49xlarge"), node("t4-0", instanceType+"=g4dn.xlarge")}
	unselected := Of(set.Templates, slices.Values(fleet))
	require.Len(t, unselected, 1)
	page, err := os.ReadFile("../../../../docs/troubleshooting.md")
	require.NoError(t, err)
	require.Contains(t, string(page), "`"+unselected[0].String()+"`")
}

func TestUnselected(t *testing.T) {
	t.Parallel()
	fleet := []*corev1.Node{
		node("t4-0", instanceType+"=g4dn.xlarge", "zone=a"), node("gpu-1", instanceType+"=p5.49xlarge", "zone=b"), node("gpu-0", instanceType+"=p5.49xlarge", "zone=b", "rank=3"),
	}
	for name, test := range map[string]struct {
		terms, want string
		nodes       []*corev1.Node
	}{
		"the value that is the most alike": {h100, "template t selects 0 of 3 nodes: node.kubernetes.io/instance-type is p5.49xlarge, must be p5.48xlarge (node gpu-0)", fleet},
		"selects one":                      {"{matchExpressions: [{key: zone, operator: Exists}]}", "", fleet},
		"selects all":                      {"", "", fleet},
		"no nodes":                         {h100, "template t selects 0 of 0 nodes", nil},
		"no nodes for all":                 {"", "template t selects 0 of 0 nodes", nil},
		"the fewest requirements": {
			"{matchExpressions: [{key: zone, operator: In, values: [a]}, {key: rank, operator: Gt, values: ['2']}, {key: " + instanceType + ", operator: Exists}]}",
			"template t selects 0 of 3 nodes: zone is b, must be a (node gpu-0)", fleet,
		},
		"two requirements": {
			"{matchExpressions: [{key: zone, operator: NotIn, values: [a, b]}, {key: rank, operator: Lt, values: ['3']}]}",
			"template t selects 0 of 1 nodes: zone is b, must be other than a or b, and rank is 3, must be less than 3 (node gpu-0)", fleet[2:],
		},
		"one of several terms": {
			h100 + ", {matchExpressions: [{key: none, operator: Exists}, {key: zone, operator: DoesNotExist}]}",
			"template t selects 0 of 1 nodes: node.kubernetes.io/instance-type is g4dn.xlarge, must be p5.48xlarge (node t4-0)", fleet[:1],
		},
		"a label that is missing": {
			"{matchExpressions: [{key: model, operator: In, values: [h100, h200]}]}", "template t selects 0 of 1 nodes: label model is missing, must be h100 or h200 (node t4-0)", fleet[:1],
		},
		"a label that is not to be there": {
			"{matchExpressions: [{key: zone, operator: DoesNotExist}]}", "template t selects 0 of 1 nodes: zone is a, must be missing (node t4-0)", fleet[:1],
		},
		"any value": {"{matchExpressions: [{key: model, operator: Exists}]}", "template t selects 0 of 1 nodes: label model is missing (node t4-0)", fleet[:1]},
		"an empty value": {
			"{matchExpressions: [{key: e, operator: In, values: [x]}]}", "template t selects 0 of 1 nodes: e is empty, must be x (node n)", []*corev1.Node{node("n", "e=")},
		},
		"the name": {"{matchFields: [{key: metadata.name, operator: In, values: [gpu-2]}]}", "template t selects 0 of 3 nodes: metadata.name is gpu-0, must be gpu-2 (node gpu-0)", fleet},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			read, err := config.NewSet(documents(t, map[string]string{"t": test.terms}))
			require.NoError(t, err)
			for range 2 {
				test.nodes = slices.Clone(test.nodes)
				slices.Reverse(test.nodes)
				found := Of(read.Templates, slices.Values(test.nodes))
				if test.want == "" {
					require.Empty(t, found)
					continue
				}
				require.Len(t, found, 1)
				require.Equal(t, test.want, found[0].String())
			}
		})
	}
}
