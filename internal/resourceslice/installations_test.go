package resourceslice

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"

	"github.com/kwok-dra/kwok-dra/internal/controller/installation"
	"github.com/kwok-dra/kwok-dra/internal/controller/shard"
	"github.com/kwok-dra/kwok-dra/internal/observe/facts"
	"github.com/kwok-dra/kwok-dra/internal/observe/lifecycle"
)

// zones is a cluster with a node in each of the zones z1 and z2, and a Publisher of an
// installation that acts for z1.
func zones(t *testing.T, documents string) *world {
	t.Helper()
	b := fakeNode("b", true)
	b.Labels["zone"] = "z2"
	w := &world{server: newServer(fakeNode("a", true), b), t: t, store: storeOf(t, documents), managed: lifecycle.ManagedNodes{Labels: "zone=z1"}}
	w.start()
	return w
}

// beside starts a Publisher of another installation on the server.
func (w *world) beside(managed lifecycle.ManagedNodes, documents string) *world {
	w.t.Helper()
	second := &world{server: w.server, t: w.t, store: storeOf(w.t, documents), managed: managed}
	second.start()
	return second
}

// pools are the pools and the installations of the slices.
func (w *world) pools() []string {
	w.t.Helper()
	var pools []string
	for _, slice := range w.list(w.t) {
		pools = append(pools, slice.Spec.Pool.Name+" of "+string(installation.Of(&slice)))
	}
	return pools
}

var (
	zone1, zone2 = lifecycle.ManagedNodes{Labels: "zone=z1"}, lifecycle.ManagedNodes{Labels: "zone=z2"}

	inZone2 = strings.ReplaceAll(inZone, "z1", "z2")
)

// TestSharedPoolBesideAnotherInstallation: an installation leaves the pool alone that
// another one has, whether it wants none, the same or another pool of the name.
func TestSharedPoolBesideAnotherInstallation(t *testing.T) {
	for name, test := range map[string]struct{ documents, told string }{
		"same template, without nodes": {sharedTemplate("net", inZone, "{name: nic}"), ""},
		"no such template":             {template("b", "e", "{name: gpu}") + "  publishWhen: {matchLabels: {never: ''}}\n", ""},
		"another pool of the name": {
			sharedTemplate("net", inZone2, "{name: gpu}"),
			`PoolNotManaged pool net of driver d belongs to installation "kube-system/kwok-dra (labels zone=z1)" of kwok-dra, and installation "kube-system/kwok-dra (labels zone=z2)" leaves it alone`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				w := zones(t, sharedTemplate("net", inZone, "{name: nic}"))
				w.wrote("create 1")
				second := w.beside(zone2, test.documents)
				w.wrote("")
				second.setNode("b", func(node *corev1.Node) { node.Labels["more"] = "x" })
				w.wrote("")
				require.Equal(t, []string{"net of kube-system/kwok-dra (labels zone=z1)"}, w.pools())
				events := strings.Join(second.events(), "\n")
				require.Contains(t, events, test.told)
				require.LessOrEqual(t, strings.Count(events, "PoolNotManaged"), 1)
			})
		})
	}
}

// TestSharedPoolIsTakenOver when its owner gives it up, when someone deletes it, and when
// its record goes while its owner does not run.
func TestSharedPoolIsTakenOver(t *testing.T) {
	for name, test := range map[string]struct {
		end    func(w *world)
		writes string
	}{
		"given up": {func(w *world) {
			w.setNode("a", func(node *corev1.Node) { node.Labels["zone"] = "z3" })
		}, "delete 1, create 1"},
		"deleted": {func(w *world) {
			w.stop()
			w.remove(w.list(w.t)[0].Name)
		}, "create 1"},
		"without a record": {func(w *world) {
			w.stop()
			w.edit(w.list(w.t)[0].Name, func(slice *resourcev1.ResourceSlice) { slice.Annotations = nil })
		}, "patch 1"},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				w := zones(t, sharedTemplate("net", inZone, "{name: nic}"))
				w.wrote("create 1")
				w.beside(zone2, sharedTemplate("net", inZone2, "{name: gpu}"))
				w.wrote("")
				test.end(w)
				w.wrote(test.writes)
				require.Equal(t, []string{"net of kube-system/kwok-dra (labels zone=z2)"}, w.pools())
			})
		})
	}
}

// TestSharedPoolWithoutARecord: of two installations that want the pool of a previous
// version, one adopts it.
func TestSharedPoolWithoutARecord(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		documents := sharedTemplate("net", "", "{name: nic, count: 130}")
		w := zones(t, documents)
		w.wrote("create 2")
		w.stop()
		for _, slice := range w.list(t) {
			w.edit(slice.Name, func(slice *resourcev1.ResourceSlice) { slice.Annotations = nil })
		}
		w.start()
		second := w.beside(zone2, documents)
		w.wrote("patch 2")
		pools := w.pools()
		require.Equal(t, pools[0], pools[1])
		require.Len(t, append(w.events(), second.events()...), 1)
	})
}

// TestSharedPoolOfAPreviousVersion: a version that records nothing makes and deletes pools
// for ever. It is answered less and less often.
func TestSharedPoolOfAPreviousVersion(t *testing.T) {
	with, without := sharedTemplate("net", "", "{name: nic}"), template("b", "e", "{name: gpu}")+"  publishWhen: {matchLabels: {never: ''}}\n"
	for name, documents := range map[string][2]string{"it deletes the pool": {with, without}, "it makes the pool": {without, with}} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				w := zones(t, documents[0])
				old := &world{server: w.server, t: t, store: storeOf(t, documents[1]), managed: zone2, owner: previousVersion()}
				old.start()
				time.Sleep(20 * time.Minute)
				synctest.Wait()
				w.takeWrites()
				time.Sleep(10 * time.Minute)
				synctest.Wait()
				require.LessOrEqual(t, w.countWrites(), 4)
			})
		})
	}
}

// TestNodesOfAnotherSelection: all nodes are listed for a selection by annotations, and
// their slices are still whose selection they are in.
func TestNodesOfAnotherSelection(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		other := fakeNode("b", true)
		other.Annotations = map[string]string{"team": "b"}
		w := newWorld(t, template("a", "d", "{name: gpu}"), fakeNode("a", true), other)
		w.wrote("create 1")
		second := w.beside(lifecycle.ManagedNodes{Annotations: "team=b"}, template("a", "d", "{name: gpu}"))
		w.wrote("create 1")
		require.Equal(t, []string{"a of kube-system/kwok-dra", "b of kube-system/kwok-dra (annotations team=b)"}, w.pools())
		second.deleteNode("b")
		w.wrote("delete 1")
	})
}

// TestNodeIsHandedOver: a node that moves to the selection of another installation has the
// slices of that one, which the first one no longer deletes.
func TestNodeIsHandedOver(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		w := zones(t, template("a", "d", "{name: gpu}"))
		w.beside(zone2, template("a", "d", "{name: nic}"))
		w.wrote("create 2")
		w.setNode("a", leave)
		time.Sleep(10 * time.Minute)
		synctest.Wait()
		require.LessOrEqual(t, w.countWrites(), 4)
		require.Equal(t, []string{"a of kube-system/kwok-dra (labels zone=z2)", "b of kube-system/kwok-dra (labels zone=z2)"}, w.pools())
		require.Equal(t, "nic", w.list(t)[0].Spec.Devices[0].Name)
	})
}

// TestTwoInstallationsForANode: the one that acted for the node before keeps it, and the
// other one tells of that.
func TestTwoInstallationsForANode(t *testing.T) {
	for name, documents := range map[string]string{
		"other devices":  template("a", "d", "{name: nic}"),
		"same devices":   template("a", "d", "{name: gpu}"),
		"another driver": template("b", "e", "{name: gpu}"),
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				w := newWorld(t, template("a", "d", "{name: gpu}"), fakeNode("a", true))
				w.wrote("create 1")
				second := w.beside(zone1, documents)
				time.Sleep(time.Minute)
				synctest.Wait()
				require.LessOrEqual(t, w.countWrites(), 2)
				second.setNode("a", func(node *corev1.Node) { node.Labels["more"] = "x" })
				w.wrote("")
				require.Equal(t, "gpu", w.list(t)[0].Spec.Devices[0].Name)
				require.Equal(t, name == "other devices", strings.Contains(strings.Join(second.events(), "\n"), "PublishFailed node a belongs to installation \"kube-system/kwok-dra\""))
			})
		})
	}
}

// TestAnotherSelection makes another installation of one. It takes its nodes with it.
func TestAnotherSelection(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		w := newWorld(t, template("a", "d", "{name: gpu}"), fakeNode("a", true))
		w.wrote("create 1")
		w.stop()
		w.managed = zone1
		w.start()
		w.wrote("patch 1")
		w.setNode("a", leave)
		w.wrote("delete 1")
	})
}

// TestNamedInstallation stays the same when its selection changes, and so knows the slices
// of a node that has left the selection meanwhile, and its shared pools.
func TestNamedInstallation(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		w := &world{
			server: newServer(fakeNode("a", true)), t: t, store: storeOf(t, template("a", "e", "{name: gpu}")+sharedTemplate("net", "", "{name: nic}")),
			owner: shard.New(shard.Options{Mode: shard.None, Installation: "lab"}),
		}
		w.start()
		w.wrote("create 2")
		w.stop()
		w.managed = zone2
		w.start()
		w.wrote("delete 2")
	})
}

// TestNodesOfAPreviousVersion: a version that records nothing acts for other nodes of those
// that are listed. Its slices may be left over, and go once.
func TestNodesOfAPreviousVersion(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		other := fakeNode("b", true)
		other.Annotations = map[string]string{"team": "b"}
		w := newWorld(t, template("a", "d", "{name: gpu}"), other)
		old := &world{server: w.server, t: t, store: storeOf(t, template("a", "d", "{name: gpu}")), managed: lifecycle.ManagedNodes{Annotations: "team=b"}, owner: previousVersion()}
		old.start()
		time.Sleep(time.Minute)
		synctest.Wait()
		require.Equal(t, map[string]int{"create": 2, "delete": 1}, w.takeWrites())
		old.setNode("b", func(node *corev1.Node) { node.Labels["more"] = "x" })
		w.wrote("")
		require.Equal(t, []string{"b of "}, w.pools())
		old.stop()
		w.deleteNode("b")
		w.wrote("delete 1")
	})
}

// TestNothingIsRememberedOfNodesThatAreGone: what a previous version has left on a node is
// retired once, as long as the Node is there.
func TestNothingIsRememberedOfNodesThatAreGone(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		b := fakeNode("b", true)
		b.Annotations = map[string]string{"team": "b"}
		w := &world{server: newServer(b), t: t, store: storeOf(t, template("a", "d", "{name: gpu}")), managed: lifecycle.ManagedNodes{Annotations: "team=b"}, owner: previousVersion()}
		w.start()
		w.wrote("create 1")
		w.stop()
		w.managed, w.owner = lifecycle.ManagedNodes{}, nil
		w.start()
		w.wrote("delete 1")
		require.NotNil(t, w.publisher.memory.entryOf(facts.SlicesKey{Node: "b"}).unrecorded)
		w.deleteNode("b")
		w.wrote("")
		require.Empty(t, w.publisher.memory.knownKeys())
	})
}
