package observe

import (
	"context"
	"fmt"
	"iter"
	"maps"
	"slices"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/tools/cache"

	"github.com/kwok-dra/kwok-dra/internal/observe/lifecycle"
)

// watched is a Nodes at work in a bubble, and what its handler was told.
type watched struct {
	*Nodes
	t      *testing.T
	client *fake.Clientset

	mu   sync.Mutex
	told []string
}

func watch(t *testing.T, managed *lifecycle.ManagedNodes, objects ...runtime.Object) *watched {
	t.Helper()
	require.NoError(t, managed.Complete())
	w := &watched{t: t, client: fake.NewClientset(objects...)}
	w.Nodes = New(w.client, managed).Nodes
	w.Handle(w.tell)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		w.Run(ctx)
	}()
	t.Cleanup(func() {
		cancel()
		<-done
	})
	cache.WaitFor(ctx, "", w.Synced()...)
	synctest.Wait() // until it watches: the fake forgets what is deleted before
	return w
}

func (w *watched) tell(name string, old, now *Node) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.told = append(w.told, fmt.Sprintf("%s %t %t", name, old != nil, now != nil))
}

// heard checks what the handler was told since the last time: "<name> <was there>
// <is there>".
func (w *watched) heard(want ...string) {
	w.t.Helper()
	synctest.Wait()
	w.mu.Lock()
	defer w.mu.Unlock()
	slices.Sort(w.told)
	require.Equal(w.t, append([]string(nil), want...), w.told)
	w.told = nil
}

func (w *watched) set(name string, change func(node *corev1.Node)) {
	w.t.Helper()
	nodes := w.client.CoreV1().Nodes()
	node, err := nodes.Get(w.t.Context(), name, metav1.GetOptions{})
	require.NoError(w.t, err)
	node = node.DeepCopy()
	change(node)
	_, err = nodes.Update(w.t.Context(), node, metav1.UpdateOptions{})
	require.NoError(w.t, err)
	synctest.Wait()
}

func fakeNode(name string) *corev1.Node {
	return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Annotations: map[string]string{"kwok.x-k8s.io/node": "fake"}}}
}

func TestNodes(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := watch(t, &lifecycle.ManagedNodes{}, fakeNode("fake"), &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "real"}})
		w.heard("fake false true", "real false true")
		require.Equal(t, "fake", w.Get("fake").Name)
		require.True(t, w.Has("fake"))
		require.False(t, w.Has("real"), "not fake")
		require.Nil(t, w.Get("real"), "not fake")
		require.Nil(t, w.Get("none"))
		require.Nil(t, w.Get(""), "the node of a Pod that is not bound")
		require.ElementsMatch(t, []string{"fake", "real"}, w.Keys())

		w.set("fake", func(node *corev1.Node) { node.Annotations = nil })
		w.set("real", func(node *corev1.Node) { node.Annotations = fakeNode("").Annotations })
		w.heard("fake true true", "real true true")
		require.Nil(t, w.Get("fake"))
		require.NotNil(t, w.Get("real"))

		require.NoError(t, w.client.CoreV1().Nodes().Delete(t.Context(), "real", metav1.DeleteOptions{}))
		w.heard("real true false")
		require.Nil(t, w.Get("real"))
		require.Equal(t, []string{"fake"}, w.Keys())
	})
}

// TestNodesWithoutHeartbeats: selectors and templates do not see them, and nobody
// is told of them: a fleet sends them many times a second.
func TestNodesWithoutHeartbeats(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		node := fakeNode("n")
		node.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: "kwok"}}
		node.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, LastHeartbeatTime: metav1.Now(), LastTransitionTime: metav1.Unix(1, 0)}}
		w := watch(t, &lifecycle.ManagedNodes{}, node)
		w.heard("n false true")
		got := w.Get("n")
		require.Empty(t, got.ManagedFields)
		require.True(t, got.Status.Conditions[0].LastHeartbeatTime.IsZero())
		require.False(t, got.Status.Conditions[0].LastTransitionTime.IsZero())

		w.set("n", func(node *corev1.Node) {
			node.ResourceVersion = "77"
			node.Status.Conditions[0].LastHeartbeatTime = metav1.Unix(9, 0)
			node.ManagedFields[0].Time = new(metav1.Unix(9, 0))
		})
		w.heard()
		require.Equal(t, "77", w.Get("n").ResourceVersion)
		w.set("n", func(node *corev1.Node) { node.Status.Conditions[0].LastTransitionTime = metav1.Unix(9, 0) })
		w.heard("n true true")
	})
}

// TestObserveNode: a node is seen as it is in the cache.
func TestObserveNode(t *testing.T) {
	t.Parallel()
	managed := &lifecycle.ManagedNodes{}
	require.NoError(t, managed.Complete())
	nodes := New(fake.NewClientset(), managed).Nodes
	see := func(change func(*corev1.Node)) *Node {
		node := fakeNode("n")
		change(node)
		return nodes.observeNode(node)
	}
	first := see(func(node *corev1.Node) { node.Labels = map[string]string{"a": "b", "c": "d"} })
	second := see(func(node *corev1.Node) { node.ResourceVersion, node.Annotations = "2", nil })
	require.True(t, first.IsFake)
	require.False(t, second.IsFake)

	old, now := first.Decode(), second.Decode()
	require.Equal(t, "b", old.Labels["a"])
	require.Equal(t, "2", now.ResourceVersion)
	old.Labels["a"] = "spoiled"
	require.Equal(t, "b", first.Decode().Labels["a"], "each reader has a copy")
}

// TestOthers: where the server lists some nodes only, others may exist.
func TestMayBeForeign(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		managed      lifecycle.ManagedNodes
		others, once bool // once it has gone
	}{
		"by annotation": {lifecycle.ManagedNodes{}, false, false},
		"all":           {lifecycle.ManagedNodes{All: true}, false, false},
		"by label":      {lifecycle.ManagedNodes{Labels: "a=b"}, true, true},
		"by both":       {lifecycle.ManagedNodes{Labels: "a=b", Annotations: "a=b"}, true, true},
		"single":        {lifecycle.ManagedNodes{Single: "n"}, true, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				node := fakeNode("n")
				node.Labels = map[string]string{"a": "b"}
				w := watch(t, &test.managed, node)
				require.False(t, w.MayBeForeign("n"), "listed, fake or not")
				require.Equal(t, test.others, w.MayBeForeign("other"))
				require.NoError(t, w.client.CoreV1().Nodes().Delete(t.Context(), "n", metav1.DeleteOptions{}))
				synctest.Wait()
				require.Nil(t, w.Get("n"))
				require.Equal(t, test.once, w.MayBeForeign("n"))
			})
		})
	}
}

func TestLabels(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		labelled := func(name string, labels map[string]string) *corev1.Node {
			return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels, Annotations: map[string]string{"kwok.x-k8s.io/node": "fake"}}}
		}
		other := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "real", Labels: map[string]string{"zone": "a"}}}
		w := watch(t, &lifecycle.ManagedNodes{}, labelled("a", map[string]string{"zone": "b"}), labelled("b", nil), other)
		require.Equal(t, map[string]map[string]string{"a": {"zone": "b"}, "b": nil}, maps.Collect(iter.Seq2[string, map[string]string](w.Labels)))
		for range w.Labels {
			break
		}
	})
}
