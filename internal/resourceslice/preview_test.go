package resourceslice

import (
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kwok-dra/kwok-dra/internal/controller/installation"
	"github.com/kwok-dra/kwok-dra/internal/dractl/preview"
	"github.com/kwok-dra/kwok-dra/internal/observe/facts"
	"github.com/kwok-dra/kwok-dra/internal/testing/configtest"
)

// preview previews what a Publisher would write in the world, which has none at
// work.
func (w *world) preview(t *testing.T) *preview.Preview {
	t.Helper()
	return w.previewAs(t, installation.New(types.NamespacedName{Namespace: "kube-system", Name: "kwok-dra"}, true, w.managed.Identity()))
}

func (w *world) previewAs(t *testing.T, as installation.ID) *preview.Preview {
	t.Helper()
	var options metav1.ListOptions
	w.managed.Tweak(&options)
	list, err := w.server.CoreV1().Nodes().List(t.Context(), options)
	require.NoError(t, err)
	state := preview.Cluster{Config: w.store.Current(), Installation: as}
	for i := range list.Items {
		state.Nodes = append(state.Nodes, &list.Items[i])
	}
	state.Others = preview.OthersOf(&w.managed, state.Nodes)
	for _, slice := range w.list(t) {
		state.Slices = append(state.Slices, slice.DeepCopy())
	}
	previewed, err := preview.New(t.Context(), NewProber(w.server), state)
	require.NoError(t, err)
	w.takeWrites() // the questions
	return previewed
}

// namesIn are the slices of a preview, by verb.
func namesIn(p *preview.Preview) map[string][]string {
	names := map[string][]string{}
	for _, slice := range p.Delete {
		names["delete"] = append(names["delete"], slice.GetName())
	}
	for _, update := range p.Update {
		names["patch"] = append(names["patch"], update.Slice.Name)
	}
	for _, slice := range p.Create {
		names["create"] = append(names["create"], slice.Name)
	}
	return names
}

func countsIn(p *preview.Preview) map[string]int {
	counts := map[string]int{}
	for verb, names := range namesIn(p) {
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
		"nothing": {func(*testing.T, *world) {}, "map[]"},
		"another device": {func(t *testing.T, w *world) {
			configtest.Replace(t, w.store, before+template("c", "e", "{name: nic-b}"))
		}, "map[patch:2]"},
		"template gone":  {func(t *testing.T, w *world) { configtest.Replace(t, w.store, template("a", "d", divided)) }, "map[delete:3]"},
		"another node":   {func(_ *testing.T, w *world) { w.addNode(fakeNode("n3", true)) }, "map[create:3]"},
		"not ready node": {func(_ *testing.T, w *world) { w.addNode(fakeNode("n3", false)) }, "map[]"},
		"node gone":      {func(_ *testing.T, w *world) { w.deleteNode("n1") }, "map[delete:3]"},
		"no nodes":       {func(_ *testing.T, w *world) { w.deleteNode("n1"); w.deleteNode("n2") }, "map[delete:7]"},
		"edited": {func(t *testing.T, w *world) {
			w.edit(w.list(t)[0].Name, func(slice *resourcev1.ResourceSlice) { slice.Spec.SharedCounters = nil })
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
				require.Equal(t, test.want, fmt.Sprint(countsIn(preview)))

				want := map[string]facts.Content{}
				for _, slice := range slices.Concat(preview.Create, updated(preview)) {
					want[slice.Name] = w.content(t, slice)
				}
				w.start()
				written := w.takeWrites()
				delete(written, "dry-run")
				require.Equal(t, test.want, fmt.Sprint(written))
				for _, slice := range w.list(t) {
					if content, ok := want[slice.Name]; ok {
						require.Equal(t, content, w.content(t, &slice))
					}
				}
				w.stop()
				again := w.preview(t)
				require.True(t, again.IsEmpty(), namesIn(again))
			})
		})
	}
}

func updated(p *preview.Preview) []*resourcev1.ResourceSlice {
	var all []*resourcev1.ResourceSlice
	for _, update := range p.Update {
		all = append(all, update.Slice)
	}
	return all
}

func (w *world) content(t *testing.T, slice *resourcev1.ResourceSlice) facts.Content {
	t.Helper()
	return facts.ContentOf(&slice.Spec)
}

// TestPreviewTellsOfProblems: what is held stays as it is.
func TestPreviewTellsOfProblems(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		w := newWorld(t, template("a", "d", "{name: gpu}")+template("b", "e", "{name: nic, attributes: {zone: '{{ .Node.metadata.labels.zone }}'}}"), fakeNode("n", true))
		w.wrote("create 2")
		w.stop()
		w.setNode("n", func(node *corev1.Node) { node.Labels = nil })
		preview := w.preview(t)
		require.True(t, preview.IsEmpty())
		require.Len(t, preview.Problems, 1)
		require.ErrorContains(t, preview.Problems[0], "node n: driver e: ")
	})
}

// TestPreviewBesideAnotherInstallation: a pool that nodes share is that of the installation
// that it is recorded to, whether this one has a template for it or not.
func TestPreviewBesideAnotherInstallation(t *testing.T) {
	for name, test := range map[string]struct {
		as      func(w *world) installation.ID
		zone    string
		want    string
		problem string
	}{
		"no template of its own": {func(*world) installation.ID { return "b/kwok-dra" }, "", "map[create:1]", ""},
		"one for the same pool": {
			func(*world) installation.ID { return "b/kwok-dra" }, inZone2, "map[create:1]",
			`pool net of driver d belongs to installation "kube-system/kwok-dra (labels zone=z1)" of kwok-dra, and installation "b/kwok-dra" leaves it alone`,
		},
		"not known": {func(*world) installation.ID { return preview.AnyInstallation }, "", "map[create:1]", ""},
		"its own":   {func(w *world) installation.ID { return installation.Of(&w.list(w.t)[0]) }, "", "map[create:1 delete:1]", ""},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				w := zones(t, sharedTemplate("net", inZone, "{name: nic}"))
				w.wrote("create 1")
				w.stop()
				documents := template("b", "e", "{name: gpu}")
				if test.zone != "" {
					documents += sharedTemplate("net", test.zone, "{name: gpu}")
				}
				second := &world{server: w.server, t: t, store: storeOf(t, documents), managed: zone2}
				require.NoError(t, second.managed.Complete())
				preview := second.previewAs(t, test.as(w))
				require.Equal(t, test.want, fmt.Sprint(countsIn(preview)))
				if test.problem != "" {
					require.Len(t, preview.Problems, 1)
					require.ErrorContains(t, preview.Problems[0], test.problem)
				}
			})
		})
	}
}
