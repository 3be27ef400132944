package resourceslice

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kwok-dra/kwok-dra/internal/testing/configtest"
)

// sharedTemplate is a document of a pool that all nodes share.
func sharedTemplate(name, more, devices string) string {
	return "---\napiVersion: dra.kwok.x-k8s.io/v1alpha1\nkind: ResourcePoolTemplate\nmetadata: {name: " + name + "}\n" +
		"spec:\n  driver: d\n  sharedWith: {allNodes: true}\n" + more + "  devices: [" + devices + "]\n"
}

const inZone = "  nodeSelector: {nodeSelectorTerms: [{matchExpressions: [{key: zone, operator: In, values: [z1]}]}]}\n"

func TestSharedPoolLivesWithItsNodes(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		w := newWorld(t, sharedTemplate("net", inZone, "{name: nic, count: 130}"), fakeNode("a", false))
		w.wrote("") // no node is Ready
		w.addNode(fakeNode("b", true))
		w.wrote("create 2")
		w.addNode(fakeNode("c", true))
		w.wrote("")
		for _, slice := range w.list(t) {
			require.True(t, *slice.Spec.AllNodes)
			require.Nil(t, slice.Spec.NodeName)
			require.Empty(t, slice.OwnerReferences)
			require.Equal(t, resourcev1.ResourcePool{Name: "net", Generation: 1, ResourceSliceCount: 2}, slice.Spec.Pool)
		}
		w.deleteNode("b")
		w.deleteNode("c")
		w.wrote("") // a never was Ready, but the pool is there and it is selected
		w.setNode("a", func(node *corev1.Node) { node.Labels["zone"] = "z2" })
		w.wrote("delete 2")
		w.setNode("a", func(node *corev1.Node) { node.Labels["zone"] = "z1" })
		w.wrote("") // now it would have to be Ready
		w.setNode("a", setReady(corev1.ConditionTrue))
		w.wrote("create 2")
		w.setNode("a", setReady(corev1.ConditionFalse))
		w.wrote("")
		w.deleteNode("a")
		w.wrote("delete 2")
	})
}

func TestSharedPoolAfterARestart(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		w := newWorld(t, sharedTemplate("net", "", "{name: nic}"), fakeNode("a", true), fakeNode("b", false))
		w.wrote("create 1")
		w.stop()
		w.start()
		w.wrote("")
		w.stop()
		w.deleteNode("a")
		w.start()
		w.wrote("") // b keeps it, although it is not Ready
		w.stop()
		w.deleteNode("b")
		w.start()
		w.wrote("delete 1")
	})
}

func TestSharedPoolIsRepaired(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		w := newWorld(t, sharedTemplate("net", "", "{name: nic}"), fakeNode("a", true))
		w.wrote("create 1")
		name := w.list(t)[0].Name
		w.setNode("a", setReady(corev1.ConditionFalse))
		w.remove(name)
		w.wrote("create 1") // it was to exist
		w.edit(name, func(slice *resourcev1.ResourceSlice) {
			slice.Spec.Devices[0].Name = "other"
			slice.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "Node", Name: "a", UID: "u"}}
		})
		w.wrote("patch 1")
		require.Equal(t, "nic", w.list(t)[0].Spec.Devices[0].Name)
		require.Empty(t, w.list(t)[0].OwnerReferences)
	})
}

func TestSharedPoolIsRetired(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		w := newWorld(t, sharedTemplate("net", "  retireWhen: {matchLabels: {gone: 'true'}}\n", "{name: nic}"), fakeNode("a", true), fakeNode("b", true))
		w.wrote("create 1")
		retire := func(node *corev1.Node) { node.Labels["gone"] = "true" }
		w.setNode("a", retire)
		w.wrote("")
		w.setNode("b", retire)
		w.wrote("delete 1")
		configtest.Replace(t, w.store, sharedTemplate("net", "", "{name: nic}"))
		w.wrote("create 1")
		configtest.Replace(t, w.store, template("other", "d", "{name: gpu}"))
		w.wrote("delete 1, create 2")
	})
}

// TestSharedPoolByPriority: per node and driver only the templates of the highest
// priority count.
func TestSharedPoolByPriority(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		w := newWorld(t, sharedTemplate("net", "", "{name: nic}")+
			sharedTemplate("better", inZone+"  priority: 1\n", "{name: nic}"), fakeNode("a", true))
		w.wrote("create 1")
		require.Equal(t, "better", w.list(t)[0].Spec.Pool.Name)
		other := fakeNode("b", true)
		other.Labels["zone"] = "z2"
		w.addNode(other)
		w.wrote("create 1")
	})
}

// TestSharedPoolWithABadSelector: what could not be told of a node neither
// publishes nor retires.
func TestSharedPoolWithABadSelector(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		w := newWorld(t, sharedTemplate("net", "  publishWhen: {matchExpressions: [{key: '.metadata.labels | tonumber', operator: Exists}]}\n", "{name: nic}"), fakeNode("a", true))
		w.wrote("")
		configtest.Replace(t, w.store, sharedTemplate("net", "", "{name: nic}"))
		w.wrote("create 1")
	})
}

const divided = "{name: gpu, count: 2, counters: {m: 2}, partitions: [{name: p, count: 2, consumes: {m: 1}}]}"

func TestCountersAreLaidOut(t *testing.T) {
	for name, with := range map[string]bool{"apart": false, "with the devices": true} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				w := newWorld(t, "", fakeNode("n", true))
				w.countersWithDevices = with
				configtest.Replace(t, w.store, template("a", "d", divided))
				if with {
					w.wrote("dry-run 2, create 1")
				} else {
					w.wrote("dry-run 1, create 2")
				}
				sets, devices := 0, 0
				for _, slice := range w.list(t) {
					sets += len(slice.Spec.SharedCounters)
					devices += len(slice.Spec.Devices)
					require.Equal(t, with, len(slice.Spec.SharedCounters) > 0 && len(slice.Spec.Devices) > 0)
				}
				require.Equal(t, 2, sets)
				require.Equal(t, 6, devices)
			})
		})
	}
}

// TestWithoutCountersNothingIsPublished: without them a GPU and a part of it
// could be allocated together.
func TestWithoutCountersNothingIsPublished(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		w := newWorld(t, "", fakeNode("n", true))
		w.off = []string{"DRAPartitionableDevices"}
		configtest.Replace(t, w.store, template("a", "d", divided)+template("b", "d", "{name: fpga}")+template("c", "e", "{name: nic}"))
		w.wrote("dry-run 1, create 1")
		require.Equal(t, "e", w.list(t)[0].Spec.Driver)
		require.Equal(t, []string{"Warning FieldsDropped the API server drops consumesCounters of the devices of template a, and its pool is not published, " +
			"since devices that exclude each other could be allocated together: turn on its feature gate DRAPartitionableDevices, or remove the field"}, w.events())

		w.turnOn()
		time.Sleep(probeInterval)
		w.wrote("dry-run 2, create 2")
		require.Empty(t, w.events())
	})
}

// TestGateIsTurnedOff: an API server that comes back with a gate off, at the same
// version, is noticed by what it stores, or refuses, of the next slice.
func TestGateIsTurnedOff(t *testing.T) {
	for name, test := range map[string]struct {
		gate, devices, off, on string
		event                  string
	}{
		"the field is left out":               {"DRADeviceTaints", tainted, "create 1, dry-run 2, patch 1", "dry-run 2, patch 2", "taints"},
		"the slice is refused":                {"DRAListTypeAttributes", "{name: gpu, attributes: {roots: [x, z]}}", "create 2, dry-run 2, patch 1", "dry-run 2, patch 2", "list attributes"},
		"the pool would be wrong":             {"DRAPartitionableDevices", divided, "create 1, dry-run 2, delete 3", "dry-run 2, create 4", "consumesCounters"},
		"the fields of one gate are left out": {"DRADeviceBindingConditions", binding, "create 1, dry-run 2, patch 1", "dry-run 2, patch 2", "bindingConditions"},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				w := newWorld(t, template("a", "d", test.devices), fakeNode("n", true))
				w.takeWrites()
				w.turnOff(test.gate)
				w.addNode(fakeNode("m", true))
				w.wrote(test.off)
				require.Contains(t, strings.Join(w.events(), "\n"), "Warning FieldsDropped the API server drops "+test.event)
				w.turnOff()
				time.Sleep(probeInterval)
				w.wrote(test.on)
			})
		})
	}
}

// turnOff has the API server drop what needs the gates.
func (w *world) turnOff(gates ...string) {
	w.Mu.Lock()
	defer w.Mu.Unlock()
	w.off = gates
}

// turnOn has the API server keep everything.
func (w *world) turnOn() { w.turnOff() }

// become has the API server be of another version.
func (w *world) become(version string, countersWithDevices bool) {
	w.Mu.Lock()
	defer w.Mu.Unlock()
	w.gitVersion, w.countersWithDevices = version, countersWithDevices
}

// TestServerChangesItsLayout: an upgrade from 1.34 to 1.35 moves the counter sets.
func TestServerChangesItsLayout(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		w := newWorld(t, "", fakeNode("n", true))
		w.become("v1.34.4", true)
		configtest.Replace(t, w.store, template("a", "d", divided))
		w.wrote("dry-run 2, create 1")
		w.become("v1.35.4", false)
		time.Sleep(probeInterval)
		w.wrote("dry-run 1, patch 1, create 1")
		for _, slice := range w.list(t) {
			require.EqualValues(t, 2, slice.Spec.Pool.Generation)
		}
	})
}

func TestListsAreDropped(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		w := newWorld(t, "", fakeNode("n", true))
		w.off = []string{"DRAListTypeAttributes"}
		configtest.Replace(t, w.store, template("a", "d", "{name: gpu, count: 100, attributes: {roots: [x, z], model: a}}"))
		w.wrote("dry-run 1, create 1")
		require.Len(t, w.list(t)[0].Spec.Devices[99].Attributes, 1)
		require.Len(t, w.events(), 1)
	})
}
