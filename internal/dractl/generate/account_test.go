package generate

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kwok-dra/kwok-dra/internal/dractl/check"
	"github.com/kwok-dra/kwok-dra/internal/dractl/documents"
	"github.com/kwok-dra/kwok-dra/pkg/api/v1alpha1"
)

// objectsOf are nodes by name, and slices in short form.
func objectsOf(nodes []string, published ...string) string {
	var text strings.Builder
	for _, name := range nodes {
		fmt.Fprintf(&text, "---\n{apiVersion: v1, kind: Node, metadata: {name: %s, labels: {rack: a}}}\n", name)
	}
	for i, spec := range published {
		fmt.Fprintf(&text, "---\n{apiVersion: resource.k8s.io/v1, kind: ResourceSlice, metadata: {name: s%d}, spec: {%s}}\n", i, spec)
	}
	return text.String()
}

const (
	ofNode = "driver: %[1]s, nodeName: %[2]s, pool: {name: %[2]s, generation: 1, resourceSliceCount: 1}"
	oneGPU = ", devices: [{name: gpu-0}]"
)

// TestCopySaysWhatItLeavesOut: what cannot be copied does not stop the rest, and nothing
// goes without a word.
func TestCopySaysWhatItLeavesOut(t *testing.T) {
	t.Parallel()
	const shared = "driver: net.example.com, pool: {name: net, generation: 1, resourceSliceCount: 1}, "
	gpu := func(driver, node string) string { return fmt.Sprintf(ofNode, driver, node) + oneGPU }
	here := gpu("gpu.example.com", "here")
	for name, test := range map[string]struct {
		in        string
		arguments []string
		templates []string
		nodes     []string
		told      string
	}{
		"a slice without devices": {
			objectsOf([]string{"here", "without"}, here, fmt.Sprintf(ofNode, "gpu.example.com", "without")), nil,
			[]string{"gpu.example.com-0"},
			[]string{"here", "without"},
			"left out: 1 pool: it has no device: gpu.example.com/without\ncopied 2 of 2 nodes and 1 of 2 ResourceSlices\n",
		},
		"a slice without devices beside one with some": {
			objectsOf([]string{"here"}, strings.Replace(here, "Count: 1", "Count: 2", 1), strings.Replace(fmt.Sprintf(ofNode, "gpu.example.com", "here"), "Count: 1", "Count: 2", 1)), nil,
			[]string{"gpu.example.com-0"},
			[]string{"here"},
			"left out: 1 ResourceSlice: it has no device: s1\ncopied 1 of 1 nodes and 1 of 2 ResourceSlices\n",
		},
		"a Node that is gone": {
			objectsOf([]string{"here"}, here, gpu("gpu.example.com", "gone")), nil,
			[]string{"gpu.example.com-0"},
			[]string{"here"},
			"left out: 1 pool: its Node is not there: gpu.example.com/gone\ncopied 1 of 1 nodes and 1 of 2 ResourceSlices\n",
		},
		"nodes of shared pools": {
			objectsOf([]string{"here", "there", "elsewhere"}, here,
				shared+"perDeviceNodeSelection: true, devices: [{name: a, nodeName: there}, {name: b, nodeName: gone}]"), nil,
			[]string{"gpu.example.com-0", "net.example.com-shared-0"},
			[]string{"here", "there"},
			"left out: 1 Node: no ResourceSlice is for it: elsewhere\ncopied 2 of 3 nodes and 2 of 2 ResourceSlices\n",
		},
		"nodes of shared pools, by labels": {
			objectsOf([]string{"here", "there"}, shared+"devices: [{name: a}], nodeSelector: {nodeSelectorTerms: [{matchExpressions: [{key: rack, operator: Exists}]}]}"), nil,
			[]string{"net.example.com-shared-0"},
			[]string{"here", "there"},
			"",
		},
		"nodes of shared pools, all of them": {
			objectsOf([]string{"here", "there"}, shared+"devices: [{name: a}], allNodes: true"), nil,
			[]string{"net.example.com-shared-0"},
			[]string{"here", "there"},
			"",
		},
		"drivers that differ in case": {
			objectsOf([]string{"here"}, gpu("GPU.example.com", "here"), here), nil,
			[]string{"gpu.example.com-0", "gpu.example.com-0-v2"},
			[]string{"here"},
			"",
		},
		"a pool that several nodes have": {
			objectsOf([]string{"here", "there"}, here, strings.Replace(gpu("gpu.example.com", "here"), "nodeName: here", "nodeName: there", 1), gpu("nic.example.com", "here")), nil,
			[]string{"nic.example.com-0"},
			[]string{"here", "there"},
			"left out: 1 pool: several nodes have it: here, there: gpu.example.com/here\ncopied 2 of 2 nodes and 1 of 3 ResourceSlices\n",
		},
		"slices for different nodes": {
			objectsOf([]string{"here"}, here, shared+"devices: [{name: a}], allNodes: true", strings.Replace(shared, "net, gen", "two, gen", 1)+"devices: [{name: a}]"), nil,
			[]string{"gpu.example.com-0", "net.example.com-shared-0"},
			[]string{"here"},
			"left out: 1 pool: no template can have it: spec.sharedWith: ",
		},
		"what no template can have": {
			objectsOf([]string{"here", "there"}, here, gpu("gpu.example.com", "there"), fmt.Sprintf(ofNode, "nic.example.com", "here")+", devices: [{name: nic-0, attributes: {a: {string: "+strings.Repeat("x", 65)+"}}}]"), nil,
			[]string{"gpu.example.com-0"},
			[]string{"here", "there"},
			"left out: 1 pool: no template can have it: spec.devices[0].attributes[a]: ",
		},
		"fields of a newer version": {
			objectsOf([]string{"here"}, here+", flavour: sweet"), nil,
			[]string{"gpu.example.com-0"},
			[]string{"here"},
			"left out: 1 field: this version does not know it: spec.flavour of s0\ncopied 1 of 1 nodes and 1 of 1 ResourceSlices\n",
		},
		"a device in two slices": {
			objectsOf([]string{"here", "there"}, here, strings.Replace(gpu("gpu.example.com", "there"), "Count: 1", "Count: 2", 1), strings.Replace(gpu("gpu.example.com", "there"), "Count: 1", "Count: 2", 1)), nil,
			[]string{"gpu.example.com-0"},
			[]string{"here", "there"},
			"left out: 1 pool: no template can have it: spec.devices[1].name: Duplicate value: \"gpu-0\": ",
		},
		"a slice that cannot be read": {
			objectsOf([]string{"here"}, here, gpu("nic.example.com", "here")+", sharedCounters: x") + "---\n{apiVersion: resource.k8s.io/v1alpha3, kind: ResourceSlice, metadata: {name: old}}\n", nil,
			[]string{"gpu.example.com-0"},
			[]string{"here"},
			"left out: 1 ResourceSlice: spec.sharedCounters: must be of type []v1.CounterSet, not string: s1 in <stdin>:7\n" +
				"left out: 1 ResourceSlice: apiVersion: resource.k8s.io/v1alpha3 is not read: write it as resource.k8s.io/v1: old in <stdin>:9\n" +
				"copied 1 of 1 nodes and 1 of 3 ResourceSlices\n",
		},
		"a Node that cannot be read": {
			objectsOf([]string{"here"}, here, gpu("gpu.example.com", "odd")) + "---\n{apiVersion: v1, kind: Node, metadata: {name: odd}, spec: {taints: x}}\n", nil,
			[]string{"gpu.example.com-0"},
			[]string{"here"},
			"left out: 1 Node: spec.taints: must be of type []v1.Taint, not string: odd in <stdin>:9\n" +
				"left out: 1 pool: its Node is not there: gpu.example.com/odd\ncopied 1 of 2 nodes and 1 of 2 ResourceSlices\n",
		},
		"other objects, and one twice": {
			objectsOf([]string{"here", "here"}, here) + "---\n{apiVersion: v1, kind: Pod, metadata: {name: p}}\n", nil,
			[]string{"gpu.example.com-0"},
			[]string{"here"},
			"left out: 1 Node: one of this name was there before: here in <stdin>:5\nleft out: 1 Pod: only Nodes and ResourceSlices are copied: p\n",
		},
		"another driver": {
			objectsOf([]string{"here", "there"}, here, gpu("nic.example.com", "there")),
			[]string{"--driver", "gpu.example.com", "--driver", "gqu.example.com"},
			[]string{"gpu.example.com-0"},
			[]string{"here"},
			"left out: 1 ResourceSlice: --driver does not name driver nic.example.com: s1\nleft out: 1 driver: it has no ResourceSlice: gqu.example.com\nleft out: 1 Node: no ResourceSlice is for it: there\n",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			printed, told, err := runCopy(t, nil, test.in, test.arguments...)
			require.NoError(t, err)
			told = progress.ReplaceAllString(told, "")
			require.Contains(t, told, test.told)
			require.Equal(t, test.told == "", told == "", told)
			names := map[string][]string{}
			objects, err := documents.Objects(documents.Split("copy", []byte(printed)))
			require.NoError(t, err)
			for _, object := range objects {
				names[object.GetKind()] = append(names[object.GetKind()], object.GetName())
			}
			require.Equal(t, test.templates, names["ResourcePoolTemplate"])
			require.ElementsMatch(t, test.nodes, names["Node"])
			require.Equal(t, told != "", strings.HasPrefix(printed, "# left out: "))
			require.Empty(t, check.Documents(documents.Split("copy", []byte(printed))).Problems)
		})
	}
}

// TestCopyNamesAll: standard error has the first few names, and the copy all.
func TestCopyNamesAll(t *testing.T) {
	t.Parallel()
	var names, slices []string
	for i := range 12 {
		names = append(names, fmt.Sprintf("node-%02d", i))
		slices = append(slices, fmt.Sprintf(ofNode, "gpu.example.com", names[i]))
	}
	slices[0] += oneGPU
	printed, told, err := runCopy(t, nil, objectsOf(names, slices...))
	require.NoError(t, err)
	require.Contains(t, told, "left out: 11 pools: it has no device: gpu.example.com/node-01, ")
	require.Contains(t, told, "gpu.example.com/node-10 and 1 more\n")
	require.Contains(t, printed, "gpu.example.com/node-11\n# copied 12 of 12 nodes and 1 of 12 ResourceSlices\n")
	_, told, err = runCopy(t, nil, objectsOf(names, slices...), "-o", "json")
	require.NoError(t, err)
	require.Contains(t, told, "gpu.example.com/node-11\n", "JSON has no comments")
	_, _, err = runCopy(t, nil, objectsOf(nil, slices...))
	require.EqualError(t, err, "there are ResourceSlices and no Nodes: give both, as kubectl get nodes,resourceslices -o yaml prints them")
}

// TestLimitOfAllTemplates: what goes beyond a limit on all templates together is left out, and does
// not stop the rest.
func TestLimitOfAllTemplates(t *testing.T) {
	t.Parallel()
	f := &fleet{}
	var pools []*pool
	for i := range 11 {
		template := &v1alpha1.ResourcePoolTemplate{TypeMeta: metav1.TypeMeta{APIVersion: v1alpha1.APIVersion, Kind: v1alpha1.ResourcePoolTemplateKind}}
		template.Name = fmt.Sprintf("gpu-%02d", i)
		template.Spec.Driver = "gpu.example.com"
		template.Spec.Devices = []v1alpha1.DeviceTemplate{{Name: "gpu", Count: new(int32(10_000))}}
		pools = append(pools, &pool{driver: template.Spec.Driver, name: template.Name})
		f.templates, f.sources = append(f.templates, template), append(f.sources, []*pool{pools[i]})
	}
	refused, notes, err := f.comparePools(t.Context(), pools)
	require.NoError(t, err)
	require.Empty(t, notes)
	require.Len(t, refused, 1)
	require.ErrorContains(t, refused[pools[10]], "all templates together may make at most 100000 devices")
}

// TestCopyTellsFewReasons: standard error has the first few reasons, and the copy all.
func TestCopyTellsFewReasons(t *testing.T) {
	t.Parallel()
	names, slices := []string{"here"}, []string{fmt.Sprintf(ofNode, "gpu.example.com", "here") + oneGPU}
	for i := range 12 {
		names = append(names, fmt.Sprintf("node-%02d", i))
		slices = append(slices, strings.Replace(fmt.Sprintf(ofNode, "gpu.example.com", names[i+1])+oneGPU, "name: node", "name: NODE", 1))
	}
	printed, told, err := runCopy(t, nil, objectsOf(names, slices...))
	require.NoError(t, err)
	require.NotContains(t, told, "gpu.example.com/NODE-10\n")
	require.Contains(t, told, "gpu.example.com/NODE-09\nleft out: more for 2 other reasons, which the comment at the head of the copy has\ncopied 13 of 13 nodes and 1 of 13 ResourceSlices\n")
	require.Contains(t, printed, "gpu.example.com/NODE-11\n# copied 13 of 13 nodes")
	_, told, err = runCopy(t, nil, objectsOf(names[1:], slices[1:]...))
	require.EqualError(t, err, "no ResourceSlice can be copied: the lines above say why")
	require.Contains(t, told, "gpu.example.com/NODE-11\ncopied 0 of 12 nodes and 0 of 12 ResourceSlices\n")
}

// TestCopyWarnsOfTwoNames: which of the two values a selector sees is chance.
func TestCopyWarnsOfTwoNames(t *testing.T) {
	t.Parallel()
	devices := ", devices: [{name: gpu-0, attributes: {model: {string: a}, gpu.example.com/model: {string: b}, nic.example.com/model: {string: c}}}]"
	printed, told, err := runCopy(t, nil, objectsOf([]string{"here"}, fmt.Sprintf(ofNode, "gpu.example.com", "here")+devices))
	require.NoError(t, err)
	require.Equal(t, "model of 1 device of driver gpu.example.com: also there as gpu.example.com/model, and CEL takes both for one: which value it sees is chance; leave one out\n", told)
	require.Contains(t, printed, "gpu.example.com/model: b\n")
	require.Contains(t, printed, "model: a\n")
}
