package resourceslice

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"

	"github.com/kwok-dra/kwok-dra/pkg/inventory"
)

func TestInventory(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		stranger := fakeNode("real", true)
		stranger.Annotations = nil
		w := newWorld(t, template("a", "d", "{name: gpu, count: 2}"), fakeNode("n", true), fakeNode("unready", false), stranger)
		w.wrote("create 1")
		require.ElementsMatch(t, []string{"n", "unready"}, w.publisher.Nodes())

		w.annotate("gpu-1:k=v:NoExecute,gpu-1:k:None,gpu-1:a:NoSchedule")
		w.wrote("dry-run 1, patch 1")
		added := time.Now().Add(-minutes10 * time.Second)
		stored := w.list(t)[0]
		got := w.publisher.Slices()
		for _, taints := range got[0].Taints {
			for i := range taints {
				require.WithinDuration(t, added, taints[i].TimeAdded, time.Second)
				taints[i].TimeAdded = time.Time{}
			}
		}
		require.Equal(t, []inventory.Slice{{
			Node: "n", Driver: "d", Pool: "n", Name: stored.Name, Generation: 1, Count: 1,
			Devices: inventory.NamesOf(stored.Spec.Devices),
			Taints: map[string][]inventory.Taint{"gpu-1": {
				{Key: "a", Effect: resourcev1.DeviceTaintEffectNoSchedule},
				{Key: "k", Effect: resourcev1.DeviceTaintEffectNoExecute, Value: "v"},
				{Key: "k", Effect: resourcev1.DeviceTaintEffectNone},
			}},
		}}, got)
	})
}

func TestInventoryOfASharedPool(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		w := newWorld(t, sharedTemplate("net", "", "{name: nic, count: 130}"), fakeNode("n", true))
		w.wrote("create 2")
		all := w.publisher.Slices()
		require.Len(t, all, 2)
		require.Empty(t, all[0].Node)
		require.Equal(t, "net", all[0].Pool)
		require.EqualValues(t, 2, all[0].Count)
		require.Nil(t, all[0].Taints)
	})
}

// TestInventoryChanges: what changes an inventory is counted, so that it need
// not be taken to find out.
func TestInventoryChanges(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		w := newWorld(t, template("a", "d", "{name: gpu}"), fakeNode("n", true))
		w.wrote("create 1")
		before := w.publisher.Changes()
		changed := func(what string) {
			t.Helper()
			now := w.publisher.Changes()
			require.Greater(t, now, before, what)
			before = now
		}
		w.addNode(fakeNode("m", false))
		changed("a node comes")
		w.setNode("m", func(node *corev1.Node) { node.Annotations = nil })
		changed("a node is no longer fake")
		w.deleteNode("m")
		changed("a node goes")
		w.annotate("gpu:k:NoExecute")
		w.wrote("dry-run 1, patch 1")
		changed("a slice changes")
		w.deleteNode("n")
		w.wrote("delete 1")
		changed("a slice goes")
		time.Sleep(time.Hour)
		require.Equal(t, before, w.publisher.Changes(), "time changes nothing")
	})
}
