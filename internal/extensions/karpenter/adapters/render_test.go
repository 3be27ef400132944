package adapters

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/kwok-dra/kwok-dra/internal/config"
	"github.com/kwok-dra/kwok-dra/internal/devices"
	"github.com/kwok-dra/kwok-dra/internal/observe/lifecycle"
	"github.com/kwok-dra/kwok-dra/pkg/api/v1alpha1"
	apivalidation "github.com/kwok-dra/kwok-dra/pkg/api/validation"
)

// longName is the longest that Karpenter gives a KWOK node.
const longName = "kwok-gpu-nodepool-of-some-length-8xk2p-blissful-haslettxxxxxx-7-0123456789-4294967295"

func newNode(name string, labels ...string) *corev1.Node {
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID("uid"), Labels: map[string]string{}}}
	for i := 0; i+1 < len(labels); i += 2 {
		node.Labels[labels[i]] = labels[i+1]
	}
	return node
}

// pools are what a node gets of the templates, by name, as it is published.
func pools(t testing.TB, node *corev1.Node, templates ...v1alpha1.ResourcePoolTemplate) (map[string]devices.Pool, error) {
	t.Helper()
	var compiled []*devices.Template
	for i := range templates {
		template, errs := devices.Compile(&templates[i])
		require.Empty(t, errs)
		compiled = append(compiled, template)
	}
	found := map[string]devices.Pool{}
	for _, chosen := range devices.SelectForNode(compiled, node).ByDriver {
		made, refusals, err := devices.PoolsForNode(chosen, lifecycle.NewObject(node), nil)
		if len(refusals) > 0 {
			err = refusals[0].Err
		}
		if err != nil {
			return nil, err
		}
		for _, pool := range made {
			found[pool.Name] = pool
		}
	}
	return found, nil
}

func slicesOf(t testing.TB, pool devices.Pool) [][]string {
	t.Helper()
	made, err := pool.Slices(devices.CountersApart)
	require.NoError(t, err)
	var names [][]string
	for _, slice := range made {
		var devices []string
		for _, device := range slice.Devices {
			devices = append(devices, device.Name)
		}
		names = append(names, devices)
	}
	return names
}

func adapted(t testing.TB, adapter, name string) *config.Adapted {
	t.Helper()
	made, err := adapters[adapter](t, inputs(t, adapter)[adapter+"-"+name])
	require.NoError(t, err)
	return made
}

// TestLongNodeName: names of 85 characters make valid pools of all three.
func TestLongNodeName(t *testing.T) {
	t.Parallel()
	require.Len(t, longName, 85)
	for adapter, test := range map[string]struct {
		document string
		labels   []string
		pool     string
		slices   [][]string
	}{
		"configmap": {
			"dotted",
			[]string{"node.kubernetes.io/instance-type", "f1.2xlarge"},
			longName + "-device-pool",
			[][]string{{"xilinx-u250-0"}},
		},
		"draconfig": {
			"pools",
			[]string{"node.kubernetes.io/instance-type", "g5.48xlarge", "karpenter.k8s.aws/instance-gpu-count", "8", "gpu", "h100"},
			"gpu.nvidia.com/" + longName,
			[][]string{{"h100-0"}, {"h100-1"}},
		},
		"nodeoverlay": {
			"spec",
			[]string{"node.kubernetes.io/instance-type", "g5.48xlarge", "karpenter.sh/nodepool", "default", "cpus", "9", "gpus", "8"},
			longName,
			[][]string{{"nvidia-h100-0", "nvidia-h100-1"}, {"nvidia-h100-2"}},
		},
	} {
		t.Run(adapter, func(t *testing.T) {
			t.Parallel()
			made, err := pools(t, newNode(longName, test.labels...), adapted(t, adapter, test.document).Templates...)
			require.NoError(t, err)
			require.Len(t, made, 1)
			pool, ok := made[test.pool]
			require.True(t, ok, "%v", made)
			require.Equal(t, test.slices, slicesOf(t, pool))
			require.Empty(t, apivalidation.ValidatePoolName(pool.Name, field.NewPath("pool")))
			for _, device := range pool.Devices {
				require.Empty(t, validation.IsDNS1123Label(device.Name))
				for attribute := range device.Attributes {
					require.Empty(t, validation.IsCIdentifier(string(attribute)[strings.LastIndex(string(attribute), "/")+1:]))
				}
			}
			without, err := pools(t, newNode(longName, "gpu", "other"), adapted(t, adapter, test.document).Templates...)
			require.NoError(t, err)
			require.Empty(t, without)
		})
	}
}

// TestBounds: Gte and Lte include the number.
func TestBounds(t *testing.T) {
	t.Parallel()
	templates := adapted(t, "nodeoverlay", "spec").Templates
	for gpus, want := range map[string]int{"3": 0, "4": 1, "8": 1, "9": 0, "many": 0, "": 0} {
		node := newNode("n", "node.kubernetes.io/instance-type", "g5.48xlarge", "karpenter.sh/nodepool", "default", "cpus", "9", "gpus", gpus)
		made, err := pools(t, node, templates...)
		require.NoError(t, err)
		require.Len(t, made, want, gpus)
	}
}

// TestPoolsOfOneDriver: all of a DRAConfig's pools that match a node are one
// pool of it, and a name that two of them have is told of there.
func TestPoolsOfOneDriver(t *testing.T) {
	t.Parallel()
	source := func(second string) *config.Adapted {
		made, err := DRAConfig(object(t, `{kind: DRAConfig, metadata: {name: c}, spec: {driver: D.example.com, pools: [
			{name: one, nodeSelectorTerms: [{matchExpressions: [{key: a, operator: Exists}]}], resourceSlices: [{devices: [{name: gpu-0}]}, {devices: [{name: gpu-1}]}]},
			{name: two, nodeSelectorTerms: [{matchExpressions: [{key: b, operator: Exists}]}], resourceSlices: [{devices: [{name: `+second+`}]}]}]}}`))
		require.NoError(t, err)
		return made
	}
	made, err := pools(t, newNode("n", "a", "", "b", ""), source("nic").Templates...)
	require.NoError(t, err)
	require.Len(t, made, 1)
	require.Equal(t, [][]string{{"gpu-0"}, {"gpu-1"}, {"nic"}}, slicesOf(t, made["d.example.com/n"]))

	twice := source("gpu-1").Templates
	_, err = pools(t, newNode("n", "a", "", "b", ""), twice...)
	require.ErrorContains(t, err, "draconfig-c.two both have the device gpu-1")
	for _, label := range []string{"a", "b"} {
		_, err = pools(t, newNode("n", label, ""), twice...)
		require.NoError(t, err)
	}
}

// TestPrecedence: on a node a driver's devices are from the overlay of the highest
// weight, then from DRAConfigs, and then from the ConfigMap.
func TestPrecedence(t *testing.T) {
	t.Parallel()
	overlay := func(name, weight string) v1alpha1.ResourcePoolTemplate {
		made, err := NodeOverlay(object(t, `{kind: NodeOverlay, metadata: {name: `+name+`}, spec: {weight: `+weight+`, requirements: [], resourceSlices: [{spec: {driver: d.example.com, devices: [{name: `+name+`}]}}]}}`))
		require.NoError(t, err)
		return made.Templates[0]
	}
	config, err := DRAConfig(object(t, `{kind: DRAConfig, metadata: {name: c}, spec: {driver: d.example.com, pools: [{name: p, nodeSelectorTerms: [{matchExpressions: [{key: a, operator: DoesNotExist}]}], resourceSlices: [{devices: [{name: c}]}]}]}}`))
	require.NoError(t, err)
	configMap, err := ConfigMap(`{driver: d.example.com, mappings: [{name: m, nodeSelector: {matchLabels: {kwok.x-k8s.io/node: fake}}, resourceSlice: {devices: [{name: m}]}}]}`)
	require.NoError(t, err)
	ranked := []v1alpha1.ResourcePoolTemplate{configMap.Templates[0], config.Templates[0], overlay("none", "null"), overlay("one", "1"), overlay("most", "10000")}
	for i, want := range []string{"m", "c", "none", "one", "most"} {
		made, err := pools(t, newNode("n"), ranked[:i+1]...)
		require.NoError(t, err)
		require.Len(t, made, 1)
		for _, pool := range made {
			require.Equal(t, [][]string{{want}}, slicesOf(t, pool))
		}
	}
}

// TestLiterals: texts that look like Go templates are published as they are.
func TestLiterals(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"{{ .Node.metadata.name }}", "{{", "}}", "a {{{b}}} c", "{{`", `{{"`, "{{{{", "{{- x -}}", `\{{`, "{{/*", "{{end}}"} {
		made, err := pools(t, newNode("n"), attributed(t, text))
		require.NoError(t, err, text)
		require.Equal(t, resourcev1.DeviceAttribute{StringValue: new(text)}, made["n-device-pool"].Devices[0].Attributes["a"], text)
	}
}

// attributed is a template with an attribute a.
func attributed(t testing.TB, text string) v1alpha1.ResourcePoolTemplate {
	t.Helper()
	made, err := ConfigMap("driver: d.example.com\nmappings:\n- name: m\n  nodeSelector: {matchLabels: {kwok.x-k8s.io/node: fake}}\n  resourceSlice: {devices: [{name: x, attributes: {a: '" + text + "'}}]}\n")
	require.NoError(t, err)
	return made.Templates[0]
}

// TestTemplateName: no two parts of two objects have one name.
func TestTemplateName(t *testing.T) {
	t.Parallel()
	names := map[string]string{}
	for _, parts := range [][2]string{
		{"o-a", "b-c"},
		{"o-a-b", "c"},
		{"o-a.b", "c"},
		{"o-a", "b.c"},
		{"o-a", "B.c"},
		{"o-a", "b c"},
		{"o-a", "b/c"},
		{"o-a", "ü"},
		{"o-a", ""},
		{"o-" + strings.Repeat("a", 253), "b"},
		{"o-" + strings.Repeat("a", 253), "c"},
		{"o-" + strings.Repeat("a.", 120), "c"},
	} {
		name := templateName(parts[0], parts[1])
		require.Empty(t, validation.IsDNS1123Subdomain(name), name)
		require.Empty(t, names[name], "%v", parts)
		names[name] = parts[0] + " " + parts[1]
	}
	require.Contains(t, names, "o-a.b-c")
	require.Contains(t, names, "o-a-b.c")
}
