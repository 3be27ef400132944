package resourceslice

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kwok-dra/kwok-dra/internal/observe/lifecycle"
)

// partitioned is a cluster with slices of nodes in zones z1 and z2 that a previous version
// has made, and a Publisher that acts for z1 only.
func partitioned(t *testing.T, managed lifecycle.ManagedNodes) *world {
	t.Helper()
	other := fakeNode("other", true)
	other.Labels["zone"] = "z2"
	w := &world{server: newServer(fakeNode("ours", true), fakeNode("gone", true), other), t: t, store: storeOf(t, template("a", "d", "{name: gpu}")), owner: previousVersion()}
	w.start()
	w.wrote("create 3")
	w.stop()
	w.managed, w.owner = managed, nil
	return w
}

// sliceNodes are the nodes of the slices.
func (w *world) sliceNodes(t *testing.T) []string {
	t.Helper()
	var nodes []string
	for _, slice := range w.list(t) {
		nodes = append(nodes, *slice.Spec.NodeName)
	}
	return nodes
}

func leave(node *corev1.Node) { node.Labels["zone"] = "z2" }

// TestNarrowSelection: slices of nodes that were never listed are someone else's,
// and those of a node that leaves the selection go.
func TestNarrowSelection(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		w := partitioned(t, lifecycle.ManagedNodes{Labels: "zone=z1"})
		w.start()
		w.wrote("")
		w.deleteNode("gone")
		w.wrote("delete 1")
		w.setNode("ours", leave)
		w.wrote("delete 1")
		require.Equal(t, []string{"other"}, w.sliceNodes(t))
	})
}

// TestStragglers: a slice that another replica publishes, which sees the node leave
// later, goes as well.
func TestStragglers(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		w := partitioned(t, lifecycle.ManagedNodes{Labels: "zone=z1"})
		w.start()
		w.wrote("")
		again := w.list(t)
		again = slices.DeleteFunc(again, func(slice resourcev1.ResourceSlice) bool { return *slice.Spec.NodeName != "ours" })
		w.setNode("ours", leave)
		w.requireWrites("delete 1")
		time.Sleep(time.Minute)
		again[0].ResourceVersion, again[0].UID = "", "again"
		_, err := w.ResourceV1().ResourceSlices().Create(t.Context(), &again[0], metav1.CreateOptions{})
		require.NoError(t, err)
		w.wrote("create 1, delete 1")
		require.NotContains(t, w.sliceNodes(t), "ours")
	})
}

// TestNodesAreForgotten: of a node that has gone or left the selection nothing is
// remembered once its slices are gone, and not before.
func TestNodesAreForgotten(t *testing.T) {
	for name, end := range map[string]func(w *world){
		"gone": func(w *world) { w.deleteNode("ours") },
		"left": func(w *world) { w.setNode("ours", leave) },
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				w := partitioned(t, lifecycle.ManagedNodes{Labels: "zone=z1"})
				w.deleteNode("gone")
				w.start()
				w.Refuse(func(call string) error {
					if strings.HasPrefix(call, "delete") {
						return errors.New("not now")
					}
					return nil
				})
				remembered := func() []string {
					var names []string
					for _, key := range w.publisher.memory.knownKeys() {
						names = append(names, key.Node)
					}
					return names
				}
				end(w)
				require.Contains(t, remembered(), "ours")
				w.Refuse(nil)
				time.Sleep(10 * time.Minute)
				synctest.Wait()
				require.NotContains(t, w.sliceNodes(t), "ours")
				require.Empty(t, remembered())
			})
		})
	}
}

// TestPreviewOfANarrowSelection: slices of nodes that a Publisher with the selection
// would not list stay, as they do with a Publisher.
func TestPreviewOfANarrowSelection(t *testing.T) {
	for name, test := range map[string]struct {
		managed lifecycle.ManagedNodes
		want    map[string]int
	}{
		"annotation":   {lifecycle.ManagedNodes{}, map[string]int{"delete": 1}},
		"label":        {lifecycle.ManagedNodes{Labels: "zone=z1"}, map[string]int{}},
		"both":         {lifecycle.ManagedNodes{Labels: "zone=z1", Annotations: lifecycle.DefaultAnnotationSelector}, map[string]int{}},
		"no such node": {lifecycle.ManagedNodes{Labels: "zone=z3"}, map[string]int{}},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				w := partitioned(t, test.managed)
				w.deleteNode("gone")
				require.NoError(t, w.managed.Complete())
				require.Equal(t, test.want, countsIn(w.preview(t)))
				w.start()
				require.Equal(t, test.want, w.takeWrites())
			})
		})
	}
}
