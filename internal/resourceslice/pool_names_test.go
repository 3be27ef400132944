package resourceslice

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kwok-dra/kwok-dra/internal/testing/configtest"
)

// ofZone is a template whose pools have one name on all nodes of a zone.
const ofZone = `---
apiVersion: dra.kwok.x-k8s.io/v1alpha1
kind: ResourcePoolTemplate
metadata: {name: zonal}
spec:
  driver: d
  poolName: 'zone-{{ .Node.metadata.labels.zone }}'
  devices: [{name: gpu}]
`

// holders are the nodes of the slices that exist, or "" for one that nodes share.
func (w *world) holders() []string {
	var nodes []string
	for _, slice := range w.list(w.t) {
		name := ""
		if slice.Spec.NodeName != nil {
			name = *slice.Spec.NodeName
		}
		nodes = append(nodes, name)
	}
	return nodes
}

// skipWrites passes over the writes that lead to a state which then lasts.
func (w *world) skipWrites() {
	w.t.Helper()
	time.Sleep(time.Minute)
	synctest.Wait()
	w.takeWrites()
	w.wrote("")
}

// createdAt is a node that was created that many minutes after the first.
func createdAt(name string, minutes int) *corev1.Node {
	node := fakeNode(name, true)
	node.CreationTimestamp = metav1.NewTime(time.Unix(1e9, 0).Add(time.Duration(minutes) * time.Minute))
	return node
}

// TestPoolOfAnotherNode: a device is known by its driver, pool and name, so of two nodes with one pool name only one
// publishes it, and the other says why not.
func TestPoolOfAnotherNode(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		w := newWorld(t, ofZone+template("other", "e", "{name: nic}"), fakeNode("a", true))
		w.wrote("create 2")
		w.addNode(fakeNode("b", true))
		w.wrote("create 1") // the other driver's
		const problem = `template zonal: poolName "zone-{{ .Node.metadata.labels.zone }}" yields zone-z1 on node b, the name of the pool of driver d on node a: ` +
			"use a name that differs from node to node, for example with {{ .Node.metadata.name }}, or set sharedWith for one pool that nodes share; the pool is left out on this node"
		require.Equal(t, []string{"Warning PublishFailed " + problem}, w.events())
		require.EqualError(t, w.outcome("node b", "zonal").Problem, problem)
		require.Equal(t, Outcome{Slices: 1, Devices: 1}, w.outcome("node a", "zonal"))
		require.Equal(t, Outcome{Slices: 1, Devices: 1}, w.outcome("node b", "other"))

		w.stop()
		preview := w.preview(t)
		require.Empty(t, countsIn(preview))
		require.Len(t, preview.Problems, 1)
		require.EqualError(t, preview.Problems[0], "node b: "+problem)
		w.start()
		w.wrote("")
		require.Len(t, w.events(), 1)

		w.deleteNode("a")
		w.wrote("delete 2, create 1")
		require.Equal(t, []string{"b", "b"}, w.holders())
		require.Empty(t, w.events())
		require.Equal(t, Outcome{Slices: 1, Devices: 1}, w.outcome("node b", "zonal"))
	})
}

// TestPoolNameIsGivenUp: a node whose pool gets another name leaves the old one to the next.
func TestPoolNameIsGivenUp(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		w := newWorld(t, ofZone, fakeNode("a", true), fakeNode("b", true), fakeNode("c", true))
		w.skipWrites()
		require.Equal(t, []string{"a"}, w.holders())
		w.setNode("a", func(node *corev1.Node) { node.Labels["zone"] = "z2" })
		w.skipWrites()
		require.ElementsMatch(t, []string{"a", "b"}, w.holders())
	})
}

// TestEarliestNodeHasThePool: not the one that happened to publish first.
func TestEarliestNodeHasThePool(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		w := newWorld(t, ofZone, createdAt("a", 2), createdAt("b", 1), createdAt("c", 3))
		w.skipWrites()
		require.Equal(t, []string{"b"}, w.holders())
		late := createdAt("d", 0)
		late.Labels["zone"] = "z2"
		w.addNode(late)
		w.skipWrites()
		require.ElementsMatch(t, []string{"b", "d"}, w.holders())
		w.setNode("d", func(node *corev1.Node) { node.Labels["zone"] = "z1" })
		w.skipWrites()
		require.Equal(t, []string{"d"}, w.holders())
	})
}

// TestPoolNamedAsANode: a pool that has the name of another node, which has a pool of its own name.
func TestPoolNamedAsANode(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		w := newWorld(t, template("own", "d", "{name: gpu}")+"  nodeSelector: {nodeSelectorTerms: [{matchExpressions: [{key: zone, operator: In, values: [z2]}]}]}\n"+
			"---\napiVersion: dra.kwok.x-k8s.io/v1alpha1\nkind: ResourcePoolTemplate\nmetadata: {name: named}\n"+
			"spec: {driver: d, poolName: '{{ .Node.metadata.labels.of }}', devices: [{name: gpu}], "+
			"nodeSelector: {nodeSelectorTerms: [{matchExpressions: [{key: of, operator: Exists}]}]}}\n")
		a, b := createdAt("a", 1), createdAt("b", 2)
		a.Labels["zone"], b.Labels["of"] = "z2", "a"
		w.addNode(a)
		w.addNode(b)
		w.wrote("create 1")
		require.Equal(t, []string{"a"}, w.holders())
		require.Len(t, w.events(), 1)
	})
}

// TestPoolOfSharedName: nodes share a pool of that name, which they keep.
func TestPoolOfSharedName(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		w := newWorld(t, ofZone, fakeNode("a", true))
		w.wrote("create 1")
		configtest.Replace(t, w.store, ofZone+sharedTemplate("zone-z1", "", "{name: port}"))
		w.wrote("create 1, delete 1")
		require.Equal(t, []string{""}, w.holders())
		events := w.events()
		require.NotEmpty(t, events)
		require.Contains(t, events[0], "yields zone-z1 on node a, the name of the pool of driver d that nodes share: ")
		configtest.Replace(t, w.store, ofZone)
		w.wrote("delete 1, create 1")
		require.Equal(t, []string{"a"}, w.holders())
	})
}
