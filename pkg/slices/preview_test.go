package slices

import (
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// preview previews what a Publisher would write in the world, which has none at
// work.
func (w *world) preview(t *testing.T) *Preview {
	t.Helper()
	var options metav1.ListOptions
	w.managed.Tweak(&options)
	list, err := w.server.CoreV1().Nodes().List(t.Context(), options)
	require.NoError(t, err)
	state := State{Config: w.store.Current()}
	for i := range list.Items {
		state.Nodes = append(state.Nodes, &list.Items[i])
	}
	state.Others = w.managed.Others(state.Nodes)
	for _, slice := range w.list(t) {
		state.Slices = append(state.Slices, slice.DeepCopy())
	}
	renderer := NewRenderer(w.server, func(string, string) {})
	preview, err := renderer.Preview(t.Context(), state)
	require.NoError(t, err)
	w.takeWrites() // the questions
	return preview
}

// namesIn are the slices of a preview, by verb.
func (p *Preview) namesIn() map[string][]string {
	names := map[string][]string{}
	for _, slice := range p.Delete {
		names["delete"] = append(names["delete"], slice.Name)
	}
	for _, update := range p.Update {
		names["patch"] = append(names["patch"], update.Slice.Name)
	}
	for _, slice := range p.Create {
		names["create"] = append(names["create"], slice.Name)
	}
	return names
}

func (p *Preview) counts() map[string]int {
	counts := map[string]int{}
	for verb, names := range p.namesIn() {
		counts[verb] = len(names)
	}
	return counts
}

// TestPreview: what it tells of is what a Publisher then writes, and nothing is
// left to tell of.
func TestPreview(t *testing.T) {
	before := template("a", "d", divided) + template("b", "e", "{name: nic}") + sharedTemplate("net", inZone, "{name: port}")
	for name, test := range map[string]struct {
		then func(t *testing.T, w *world)
		want string
	}{
		"nothing":        {func(*testing.T, *world) {}, "map[]"},
		"another device": {func(t *testing.T, w *world) { replace(t, w.store, before+template("c", "e", "{name: nic-b}")) }, "map[patch:2]"},
		"template gone":  {func(t *testing.T, w *world) { replace(t, w.store, template("a", "d", divided)) }, "map[delete:3]"},
		"another node":   {func(_ *testing.T, w *world) { w.addNode(fakeNode("n3", true)) }, "map[create:3]"},
		"not ready node": {func(_ *testing.T, w *world) { w.addNode(fakeNode("n3", false)) }, "map[]"},
		"node gone":      {func(_ *testing.T, w *world) { w.deleteNode("n1") }, "map[delete:3]"},
		"no nodes":       {func(_ *testing.T, w *world) { w.deleteNode("n1"); w.deleteNode("n2") }, "map[delete:7]"},
		"edited": {func(t *testing.T, w *world) {
			w.edit(t, w.list(t)[0].Name, func(slice *resourcev1.ResourceSlice) { slice.Spec.SharedCounters = nil })
		}, "map[patch:1]"},
		"tainted": {func(_ *testing.T, w *world) {
			w.setNode("n1", func(node *corev1.Node) {
				node.Annotations["dra.kwok.x-k8s.io/device-taints"] = "nic:k:NoSchedule"
			})
		}, "map[patch:1]"},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				w := newWorld(t, before, fakeNode("n1", true), fakeNode("n2", true))
				w.wrote("dry-run 1, create 7")
				w.stop()
				test.then(t, w)
				w.takeWrites()
				preview := w.preview(t)
				require.Empty(t, preview.Problems)
				require.Equal(t, test.want, fmt.Sprint(preview.counts()))

				want := map[string]Content{}
				for _, slice := range slices.Concat(preview.Create, updated(preview)) {
					want[slice.Name] = w.content(t, slice)
				}
				w.start()
				written := w.takeWrites()
				delete(written, "dry-run")
				require.Equal(t, test.want, fmt.Sprint(written))
				for _, slice := range w.list(t) {
					if content, is := want[slice.Name]; is {
						require.Equal(t, content, w.content(t, &slice))
					}
				}
				w.stop()
				again := w.preview(t)
				require.True(t, again.Empty(), again.namesIn())
			})
		})
	}
}

func updated(p *Preview) []*resourcev1.ResourceSlice {
	var all []*resourcev1.ResourceSlice
	for _, update := range p.Update {
		all = append(all, update.Slice)
	}
	return all
}

func (w *world) content(t *testing.T, slice *resourcev1.ResourceSlice) Content {
	t.Helper()
	content, err := ContentOf(&slice.Spec)
	require.NoError(t, err)
	return content
}

// TestPreviewTellsOfProblems: what is held stays as it is.
func TestPreviewTellsOfProblems(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		w := newWorld(t, template("a", "d", "{name: gpu}")+template("b", "e", "{name: nic, attributes: {zone: '{{ .Node.metadata.labels.zone }}'}}"), fakeNode("n", true))
		w.wrote("create 2")
		w.stop()
		w.setNode("n", func(node *corev1.Node) { node.Labels = nil })
		preview := w.preview(t)
		require.True(t, preview.Empty())
		require.Len(t, preview.Problems, 1)
		require.ErrorContains(t, preview.Problems[0], "node n: driver e: ")
	})
}

// TestRelease: which fields a release keeps without being asked.
func TestRelease(t *testing.T) {
	t.Parallel()
	node := fakeNode("n", true)
	store := storeOf(t, template("a", "d", divided)+template("b", "e", tainted))
	for name, test := range map[string]struct {
		version string
		gates   map[string]bool
		slices  int
		dropped []string
	}{
		"1.37":            {"1.37", nil, 3, nil},
		"1.36":            {"v1.36.3", nil, 3, nil},
		"1.36 with a off": {"1.36", map[string]bool{"DRADeviceTaints": false}, 3, []string{"b taints"}},
		"1.35":            {"1.35", nil, 1, []string{"a consumesCounters", "b taints"}},
		"1.35 with on":    {"1.35", map[string]bool{"DRAPartitionableDevices": true}, 3, []string{"b taints"}},
		"1.34 with on":    {"1.34", map[string]bool{"DRAPartitionableDevices": true, "DRADeviceTaints": true}, 2, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			release, err := NewRelease(test.version, test.gates)
			require.NoError(t, err)
			var dropped []string
			renderer := NewRendererFor(release, func(template, field string) { dropped = append(dropped, template+" "+field) })
			preview, err := renderer.Preview(t.Context(), State{Config: store.Current(), Nodes: []*corev1.Node{node}})
			require.NoError(t, err)
			require.Len(t, preview.Create, test.slices)
			require.Equal(t, test.dropped, dropped)
		})
	}
	for _, bad := range []string{"", "1", "1.33", "1.38", "2.0", "latest"} {
		_, err := NewRelease(bad, nil)
		require.ErrorContains(t, err, "must be 1.34 to 1.37", bad)
	}
	_, err := NewRelease("1.36", map[string]bool{"DRAOptionalNodeOperations": true})
	require.ErrorContains(t, err, "1.37 does")
	_, err = NewRelease("1.36", map[string]bool{"Gate": true})
	require.ErrorContains(t, err, "must be one that devices depend on")
}

// TestEveryGateHasItsReleases: a gate that is forgotten would count as off.
func TestEveryGateHasItsReleases(t *testing.T) {
	t.Parallel()
	used := map[string]bool{}
	for _, field := range gatedFields {
		require.Contains(t, gateReleases, field.gate)
		used[field.gate] = true
	}
	require.Len(t, gateReleases, len(used))
}
