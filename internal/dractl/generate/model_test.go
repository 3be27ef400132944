package generate

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/kwok-dra/kwok-dra/pkg/api/v1alpha1"
)

// TestModel makes a template of the slices of one node, for others like it.
func TestModel(t *testing.T) {
	t.Parallel()
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "real", UID: "b1f3ad0f-0a38-4f25-9f4e-6f4f3ba2a5d4", Labels: map[string]string{"rack": "real-7"}}}
	for name, test := range map[string]struct {
		pool, devices string
		want          string
		notes         []string
	}{
		"numbers": {
			"real", `[{name: file-0, attributes: {index: {int: 0}, name: {string: file-0}}}, {name: file-1, attributes: {index: {int: 1}, name: {string: file-1}}}]`,
			`{devices: [{name: file, count: 2, attributes: {index: {int: "{{ .Index }}"}, name: "file-{{ .Index }}"}}]}`, nil,
		},
		"the node's name, and parts of words": {
			"real", `[{name: a, attributes: {host: {string: real-7.example.com}, kind: {string: surreal}}}]`,
			`{devices: [{name: a, attributes: {host: "{{ .Node.metadata.name }}-7.example.com", kind: surreal}}]}`, nil,
		},
		"UUIDs, and the same once more": {
			"real", `[{name: gpu-0, attributes: {uuid: {string: GPU-00000000-0000-0000-0000-00000000000a}}},
				{name: gpu-1, attributes: {uuid: {string: GPU-00000000-0000-0000-0000-00000000000b}}},
				{name: part, attributes: {parentUUID: {string: GPU-00000000-0000-0000-0000-00000000000b}}}]`,
			`{devices: [{name: gpu, count: 2, attributes: {uuid: "GPU-{{ uuid .Node.metadata.uid .Index }}"}},
				{name: part, attributes: {parentUUID: "GPU-{{ uuid .Node.metadata.uid 1 }}"}}]}`,
			[]string{"UUIDs in attributes become UUIDs of each node; write them out where nodes share them"},
		},
		"serial numbers": {
			"real", `[{name: a, attributes: {serial: {string: AN01}}}, {name: b, attributes: {mac: {string: real-1}}}]`,
			`{devices: [{name: a, attributes: {serial: AN01}}, {name: b, attributes: {mac: "{{ .Node.metadata.name }}-1"}}]}`,
			[]string{`the serial numbers or addresses ["AN01"] are those of node real on all nodes: give each node its own, as in {{ uuid .Node.metadata.uid .Index | trunc 8 }}`},
		},
		"a pool of another name": {
			"numa0", `[{name: a}]`, `{poolName: "{{ .Node.metadata.name }}-numa0", devices: [{name: a}]}`,
			[]string{"pool numa0 is called NODE-numa0, or nodes would share it"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			slice := &resourcev1.ResourceSlice{ObjectMeta: metav1.ObjectMeta{Name: "slice"}}
			require.NoError(t, yaml.UnmarshalStrict([]byte(test.devices), &slice.Spec.Devices))
			slice.Spec.Driver, slice.Spec.NodeName = "x.example.com", &node.Name
			slice.Spec.Pool = resourcev1.ResourcePool{Name: test.pool, Generation: 3, ResourceSliceCount: 1}
			made, notes, err := Model(t.Context(), node, []*resourcev1.ResourceSlice{slice})
			require.NoError(t, err)
			require.Equal(t, test.notes, notes)
			require.Len(t, made, 1)
			require.Equal(t, test.pool, made[0].Pool)
			spec := made[0].Object.Object["spec"].(map[string]any)
			require.Equal(t, "x.example.com", spec["driver"])
			require.NotEmpty(t, spec["nodeSelector"])
			delete(spec, "driver")
			delete(spec, "nodeSelector")
			encoded, err := json.Marshal(spec)
			require.NoError(t, err)
			want, err := yaml.YAMLToJSON([]byte(test.want))
			require.NoError(t, err)
			require.JSONEq(t, string(want), string(encoded))
		})
	}
}

// TestModelOfProfiles: what a node with the hardware of a profile has, other nodes have from its
// model too, with UUIDs of their own.
func TestModelOfProfiles(t *testing.T) {
	t.Parallel()
	for _, profile := range standingProfiles(t) {
		t.Run(profile.Name, func(t *testing.T) {
			t.Parallel()
			nodes := numbered(profile.Nodes("node", 0, 2))
			all := published(t, "1.37", templatesOf(t, profile), nodes)
			own, want := ownOf(t, nodes[0], all)
			if len(own) == 0 {
				t.Skip("all of its pools are shared")
			}
			made, _, err := Model(t.Context(), nodes[0], own)
			require.NoError(t, err)
			var templates []*v1alpha1.ResourcePoolTemplate
			for _, m := range made {
				m.Spec.NodeSelector = nil
				templates = append(templates, m.ResourcePoolTemplate)
			}
			pools, _ := groupPools(own, nil)
			rendered, problems, err := renderSlices(t.Context(), templates, nodes[1:], pools)
			require.NoError(t, err)
			require.Empty(t, problems)
			_, got := ownOf(t, nodes[1], rendered)
			require.ElementsMatch(t, want, got)
		})
	}
}

// ownOf are the slices of a node, and the devices in them without its name and without UUIDs.
func ownOf(t *testing.T, node *corev1.Node, all []*resourcev1.ResourceSlice) (own []*resourcev1.ResourceSlice, shapes []string) {
	t.Helper()
	for _, slice := range all {
		if slice.Spec.NodeName == nil || *slice.Spec.NodeName != node.Name {
			continue
		}
		own = append(own, slice)
		for _, device := range slice.Spec.Devices {
			encoded, err := json.Marshal(device)
			require.NoError(t, err)
			text := strings.ReplaceAll(string(encoded), node.Name, "NODE")
			shapes = append(shapes, uuidPattern.ReplaceAllString(text, "UUID"))
		}
	}
	return own, shapes
}

// TestModelWithoutDevices: a driver that publishes an empty slice does not keep the
// pools of others from being recorded.
func TestModelWithoutDevices(t *testing.T) {
	t.Parallel()
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "real"}}
	slice := func(driver string, devices ...resourcev1.Device) *resourcev1.ResourceSlice {
		made := &resourcev1.ResourceSlice{ObjectMeta: metav1.ObjectMeta{Name: driver}}
		made.Spec = resourcev1.ResourceSliceSpec{Driver: driver, NodeName: &node.Name, Devices: devices, Pool: resourcev1.ResourcePool{Name: "real", ResourceSliceCount: 1}}
		return made
	}
	made, notes, err := Model(t.Context(), node, []*resourcev1.ResourceSlice{slice("a.example.com"), slice("b.example.com", resourcev1.Device{Name: "b"})})
	require.NoError(t, err)
	require.Len(t, made, 1)
	require.Equal(t, "b.example.com", made[0].Spec.Driver)
	require.Equal(t, []string{"pool a.example.com/real is left out: it has no device"}, notes)

	made, notes, err = Model(t.Context(), node, []*resourcev1.ResourceSlice{slice("a.example.com")})
	require.NoError(t, err)
	require.Empty(t, made)
	require.Len(t, notes, 1)
}
