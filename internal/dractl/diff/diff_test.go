package diff

import (
	"bytes"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kwok-dra/kwok-dra/internal/controller/installation"
	"github.com/kwok-dra/kwok-dra/internal/devices"
	"github.com/kwok-dra/kwok-dra/internal/dractl/cli"
	"github.com/kwok-dra/kwok-dra/internal/dractl/output"
	"github.com/kwok-dra/kwok-dra/internal/dractl/preview"
	"github.com/kwok-dra/kwok-dra/internal/observe/cached"
	"github.com/kwok-dra/kwok-dra/internal/observe/facts"
	"github.com/kwok-dra/kwok-dra/internal/resourceslice/plan"
	"github.com/kwok-dra/kwok-dra/pkg/api/defaults"
	"github.com/kwok-dra/kwok-dra/pkg/api/v1alpha1"
)

func slice(name, device string) *resourcev1.ResourceSlice {
	node := "node"
	return &resourcev1.ResourceSlice{
		ObjectMeta: metav1.ObjectMeta{Name: name, ResourceVersion: "7", ManagedFields: []metav1.ManagedFieldsEntry{{}}},
		Spec: resourcev1.ResourceSliceSpec{
			Driver: "d", NodeName: &node, Pool: resourcev1.ResourcePool{Name: "node", Generation: 1, ResourceSliceCount: 1},
			Devices: []resourcev1.Device{{Name: device}},
		},
	}
}

// TestChanges: what is deleted, updated and created, and taken over because it is
// there but is not the sidecar's.
func TestChanges(t *testing.T) {
	t.Parallel()
	live := []*resourcev1.ResourceSlice{slice("gone", "a"), slice("changed", "a"), slice("lost", "a")}
	changes := changesOf(live, &plan.Writes{
		Delete: []*facts.Slice{{Meta: cached.Meta{Name: "gone"}}},
		Update: []plan.Update{{Slice: slice("changed", "b")}},
		Create: []*resourcev1.ResourceSlice{slice("new", "b"), slice("lost", "b")},
	})
	var got []string
	for _, change := range changes {
		got = append(got, string(change.Action)+" "+change.Name)
	}
	require.Equal(t, []string{"delete gone", "update changed", "create new", "update lost"}, got)

	for format, want := range map[output.Format]string{
		text:         "--- live/changed\n+++ sidecar/changed\n@@ -1,6 +1,6 @@\n spec:\n   devices:\n-  - name: a\n+  - name: b\n   driver: d\n   nodeName: node\n   pool:\n",
		output.Name:  "resourceslice.resource.k8s.io/new\n",
		output.Table: "create   new       node   d        node\n",
		output.JSON:  `"action": "delete"`,
	} {
		var out, errOut bytes.Buffer
		c := &command{streams: cli.Streams{Out: &out, ErrOut: &errOut}}
		c.output.Format = format
		require.ErrorIs(t, c.reportChanges(changes, nil), cli.ErrNegative)
		require.Contains(t, out.String(), want)
		require.NotContains(t, out.String(), "managedFields")
		if format == text {
			require.Contains(t, out.String(), "--- live/gone\n+++ /dev/null\n")
			require.Contains(t, out.String(), "--- /dev/null\n+++ sidecar/new\n")
			require.Equal(t, "1 to create, 2 to update, 1 to delete\n", errOut.String())
		}
	}
	var out, errOut bytes.Buffer
	c := &command{streams: cli.Streams{Out: &out, ErrOut: &errOut}}
	c.output.Format = text
	require.NoError(t, c.reportChanges(nil, nil))
	require.Empty(t, out.String()+errOut.String())
	require.ErrorIs(t, c.reportChanges(nil, []error{errors.New("node n: a problem")}), cli.ErrNegative, "the sidecar would fail")
	require.Equal(t, "node n: a problem\n", errOut.String())
}

// recorded is a slice that kwok-dra has made, on the node unless the pool is shared.
func recorded(name string, to installation.ID, node string) *resourcev1.ResourceSlice {
	made := slice(name, "a")
	made.Labels = map[string]string{v1alpha1.ManagedByLabel: v1alpha1.ManagedByValue}
	to.Record(&made.ObjectMeta)
	if made.Spec.NodeName = &node; node == "" {
		made.Spec.NodeName = nil
	}
	return made
}

func TestInstallationOf(t *testing.T) {
	t.Parallel()
	nodes := []*corev1.Node{{ObjectMeta: metav1.ObjectMeta{Name: "node"}}}
	for name, test := range map[string]struct {
		given  string
		slices []*resourcev1.ResourceSlice
		want   installation.ID
		told   string
	}{
		"nothing is recorded": {"", []*resourcev1.ResourceSlice{slice("a", "a"), recorded("b", "", "node")}, "", ""},
		"given":               {"mine", []*resourcev1.ResourceSlice{recorded("a", "yours", "node")}, "mine", ""},
		"by the slices of its nodes": {
			"", []*resourcev1.ResourceSlice{recorded("a", "mine", "node"), recorded("b", "yours", "other"), recorded("c", "ns/kwok-dra", "")}, "mine", "",
		},
		"by its selection": {
			"", []*resourcev1.ResourceSlice{recorded("a", "", "node"), recorded("b", "ns/kwok-dra (labels zone=z1)", ""), recorded("c", "ns/kwok-dra", "")}, "ns/kwok-dra", "",
		},
		"unknown": {
			"",
			[]*resourcev1.ResourceSlice{recorded("a", "mine", "node"), recorded("b", "yours", "node")},
			preview.AnyInstallation,
			`give --installation to say which one is meant, of "mine", "yours"`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var errOut bytes.Buffer
			c := &command{streams: cli.Streams{ErrOut: &errOut}, installation: test.given}
			require.NoError(t, c.managed.Complete())
			require.Equal(t, test.want, c.installationOf(test.slices, nodes))
			require.Contains(t, errOut.String(), test.told)
			require.Equal(t, test.told == "", errOut.Len() == 0)
		})
	}
}

// TestChangeShowsTheRecord: a record that alone changes is seen, and one that stays is no change.
func TestChangeShowsTheRecord(t *testing.T) {
	t.Parallel()
	taken := newChange(update, recorded("a", "yours", "node"), recorded("a", "mine", "node"))
	text, err := taken.unifiedDiff()
	require.NoError(t, err)
	require.Contains(t, text, "-  dra.kwok.x-k8s.io/installation: yours\n+  dra.kwok.x-k8s.io/installation: mine\n")
	kept := newChange(update, recorded("a", "yours", "node"), recorded("a", "", "node"))
	text, err = kept.unifiedDiff()
	require.NoError(t, err)
	require.Empty(t, text)
}

// TestScope: a diff of a file is about its drivers, on the nodes that its templates select.
func TestScope(t *testing.T) {
	t.Parallel()
	compile := func(source *v1alpha1.ResourcePoolTemplate) *devices.Template {
		source.Spec.Devices = []v1alpha1.DeviceTemplate{{Name: "a"}}
		defaults.SetResourcePoolTemplate(source)
		compiled, errs := devices.Compile(source)
		require.Empty(t, errs)
		return compiled
	}
	here := compile(&v1alpha1.ResourcePoolTemplate{ObjectMeta: metav1.ObjectMeta{Name: "here"}, Spec: v1alpha1.ResourcePoolTemplateSpec{
		Driver: "gpu.example.com", NodeSelector: selectorOf("kind", "h100"),
	}})
	node := func(name, kind string) *corev1.Node {
		return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"kind": kind}}}
	}
	s := &scope{templates: []*devices.Template{here}, nodes: map[string]*corev1.Node{"h100-0": node("h100-0", "h100"), "t4-0": node("t4-0", "t4")}}
	changes := []change{
		{Name: "mine", Node: "h100-0", Driver: "gpu.example.com"},
		{Name: "same driver, another node", Node: "t4-0", Driver: "gpu.example.com"},
		{Name: "another driver, same node", Node: "h100-0", Driver: "nic.example.com"},
		{Name: "shared by nodes", Pool: "fabric", Driver: "gpu.example.com"},
		{Name: "of a node that is gone", Node: "h100-9", Driver: "gpu.example.com"},
	}
	var errOut bytes.Buffer
	c := &command{streams: cli.Streams{ErrOut: &errOut}}
	require.Equal(t, changes[:1], c.limitToScope(s, changes))
	require.Equal(t, "4 slices that these templates are not about are left out; --prune shows those that kwok-dra would delete if it had no others\n", errOut.String())
	require.Equal(t, changes, c.limitToScope(nil, changes), "with --prune")
}

func selectorOf(key, value string) *corev1.NodeSelector {
	return &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchExpressions: []corev1.NodeSelectorRequirement{
		{Key: key, Operator: corev1.NodeSelectorOpIn, Values: []string{value}},
	}}}}
}
