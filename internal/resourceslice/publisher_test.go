package resourceslice

import (
	"fmt"
	"maps"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/kwok-dra/kwok-dra/internal/observe/facts"
	"github.com/kwok-dra/kwok-dra/internal/testing/configtest"
)

func TestPublishOnceReady(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		w := newWorld(t, template("a", "d", twoSlices), fakeNode("n", false))
		w.wrote("")
		w.setNode("n", setReady(corev1.ConditionTrue))
		w.wrote("create 2")
		for i, slice := range w.list(t) {
			require.Equal(t, "n", *slice.Spec.NodeName)
			require.Equal(t, resourcev1.ResourcePool{Name: "n", Generation: 1, ResourceSliceCount: 2}, slice.Spec.Pool)
			require.Len(t, slice.Spec.Devices, []int{128, 1}[i])
		}
		w.setNode("n", setReady(corev1.ConditionFalse))
		w.wrote("")
		require.Empty(t, w.events(), "what goes right is no event")
	})
}

func TestNothingToDoWritesNothing(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		w := newWorld(t, template("a", "d", oneOfEach)+template("b", "e", tainted), fakeNode("n", true))
		w.wrote("create 2, dry-run 1")
		for range 10 {
			w.setNode("n", func(node *corev1.Node) {
				node.Status.Conditions[0].LastHeartbeatTime = metav1.Now()
			})
			time.Sleep(10 * time.Second)
		}
		require.Zero(t, w.publisher.loop.NumRequeues(facts.SlicesKey{Node: "n"}))
		w.wrote("")
		w.setNode("n", func(node *corev1.Node) { node.Labels["other"] = "label" })
		w.wrote("")
		w.publisher.enqueueAll()
		w.wrote("")
		configtest.Replace(t, w.store, template("a", "d", oneOfEach)+template("b", "e", tainted))
		w.wrote("")
	})
}

func TestRestartWritesNothing(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		w := newWorld(t, template("a", "d", twoSlices)+template("b", "e", oneOfEach), fakeNode("n", true), fakeNode("m", true))
		w.wrote("create 6")
		w.stop()
		w.start()
		w.wrote("")
	})
}

func TestRetiring(t *testing.T) {
	selected := strings.Replace(template("a", "d", twoSlices), "spec:\n", "spec:\n  nodeSelector: {nodeSelectorTerms: [{matchExpressions: [{key: zone, operator: Exists}]}]}\n", 1)
	retiring := template("a", "d", twoSlices) + "  retireWhen: {matchLabels: {retire: \"true\"}}\n"
	for name, test := range map[string]struct {
		documents string
		do        func(w *world)
	}{
		"node deleted":            {selected, func(w *world) { w.deleteNode("n") }},
		"node no longer selected": {selected, func(w *world) { w.setNode("n", func(node *corev1.Node) { delete(node.Labels, "zone") }) }},
		"node no longer fake":     {selected, func(w *world) { w.setNode("n", func(node *corev1.Node) { node.Annotations = nil }) }},
		"template gone":           {selected, func(w *world) { configtest.Replace(w.t, w.store, "") }},
		"retireWhen":              {retiring, func(w *world) { w.setNode("n", func(node *corev1.Node) { node.Labels["retire"] = "true" }) }},
		"deleted while it was down": {selected, func(w *world) {
			w.stop()
			w.deleteNode("n")
			w.start()
		}},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				w := newWorld(t, test.documents, fakeNode("n", true))
				w.wrote("create 2")
				test.do(w)
				w.wrote("delete 2")
				require.Empty(t, w.list(t))
				require.Empty(t, w.events())
			})
		})
	}
}

func TestNodeOfTheSameName(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		w := newWorld(t, template("a", "d", twoSlices), fakeNode("n", true))
		w.wrote("create 2")
		w.deleteNode("n")
		w.wrote("delete 2")
		renewed := fakeNode("n", true)
		renewed.UID = "another"
		w.addNode(renewed)
		w.wrote("create 2")
		require.EqualValues(t, "another", w.list(t)[0].OwnerReferences[0].UID)
		require.EqualValues(t, 1, w.list(t)[0].Spec.Pool.Generation)
	})
}

func TestChanges(t *testing.T) {
	for name, test := range map[string]struct {
		before     string
		do         func(w *world)
		want       string
		generation int64
	}{
		"an attribute": {template("a", "d", "{name: gpu, attributes: {x: 1}}"), func(w *world) {
			configtest.Replace(w.t, w.store, template("a", "d", "{name: gpu, attributes: {x: 2}}"))
		}, "patch 1", 1},
		"a label that is rendered": {template("a", "d", oneOfEach), func(w *world) {
			w.setNode("n", func(node *corev1.Node) { node.Labels["zone"] = "z2" })
		}, "patch 1", 1},
		"more devices": {template("a", "d", "{name: gpu}"), func(w *world) {
			configtest.Replace(w.t, w.store, template("a", "d", twoSlices))
		}, "patch 1, create 1", 2},
		"fewer devices": {template("a", "d", twoSlices), func(w *world) {
			configtest.Replace(w.t, w.store, template("a", "d", "{name: gpu, count: 128}"))
		}, "delete 1, patch 1", 1},
		"a taint that splits": {template("a", "d", "{name: gpu, count: 100}"), func(w *world) {
			configtest.Replace(w.t, w.store, template("a", "d", "{name: gpu, count: 100, taints: [{key: k, effect: NoSchedule}]}"))
		}, "dry-run 1, patch 1, create 1", 2},
		"another driver": {template("a", "d", "{name: gpu}"), func(w *world) {
			configtest.Replace(w.t, w.store, template("a", "e", "{name: gpu}"))
		}, "delete 1, create 1", 1},
		"a second template": {template("a", "d", "{name: gpu}"), func(w *world) {
			configtest.Replace(w.t, w.store, template("a", "d", "{name: gpu}")+template("b", "d", "{name: nic}"))
		}, "patch 1", 1},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				w := newWorld(t, test.before, fakeNode("n", true))
				synctest.Wait()
				w.takeWrites()
				test.do(w)
				w.wrote(test.want)
				for _, slice := range w.list(t) {
					require.Equal(t, test.generation, slice.Spec.Pool.Generation)
				}
			})
		})
	}
}

// TestRepair: what is done to slices by hand comes back as it was, also when it
// is done while the sidecar is down.
func TestRepair(t *testing.T) {
	for name, test := range map[string]struct {
		do   func(w *world, first string)
		want string
	}{
		"deleted": {func(w *world, first string) { w.remove(first) }, "patch 1, create 1"},
		"all deleted": {func(w *world, _ string) {
			for _, slice := range w.list(w.t) {
				w.remove(slice.Name)
			}
		}, "create 2"},
		"devices": {func(w *world, first string) {
			w.edit(first, func(s *resourcev1.ResourceSlice) { s.Spec.Devices = s.Spec.Devices[:3] })
		}, "patch 1"},
		"owner": {func(w *world, first string) {
			w.edit(first, func(s *resourcev1.ResourceSlice) { s.OwnerReferences = nil })
		}, "patch 1"},
		"foreign fields": {func(w *world, first string) {
			w.edit(first, func(s *resourcev1.ResourceSlice) { s.Spec.SkipNodeOperations = []resourcev1.SkipNodeOperation{"a"} })
		}, "patch 1"},
		"nothing that counts": {func(w *world, first string) {
			w.edit(first, func(s *resourcev1.ResourceSlice) { s.Annotations = map[string]string{"a": "b"} })
		}, ""},
	} {
		for _, down := range []bool{false, true} {
			t.Run(fmt.Sprint(name, ", while down: ", down), func(t *testing.T) {
				inBubble(t, func(t *testing.T) {
					w := newWorld(t, template("a", "d", twoSlices), fakeNode("n", true))
					w.wrote("create 2")
					before := specs(w.list(t))
					if down {
						w.stop()
						test.do(w, w.list(t)[0].Name)
						w.start()
						w.wrote(test.want)
					} else {
						test.do(w, w.list(t)[0].Name)
						w.settled(before)
					}
					require.Equal(t, before, specs(w.list(t)))
					require.Empty(t, w.events())
				})
			})
		}
	}
}

// settled waits until all is as before, however many writes that takes when
// several events are dealt with one by one.
func (w *world) settled(before map[string]resourcev1.ResourceSlice) {
	w.t.Helper()
	time.Sleep(time.Minute)
	require.Equal(w.t, before, specs(w.list(w.t)))
	w.takeWrites()
	w.wrote("")
}

// specs are what the slices say, by name, but for the generation.
func specs(slices []resourcev1.ResourceSlice) map[string]resourcev1.ResourceSlice {
	all := map[string]resourcev1.ResourceSlice{}
	for _, slice := range slices {
		slice.Spec.Pool.Generation = 0
		all[slice.Name] = resourcev1.ResourceSlice{
			ObjectMeta: metav1.ObjectMeta{Labels: slice.Labels, OwnerReferences: slice.OwnerReferences},
			Spec:       slice.Spec,
		}
	}
	return all
}

func TestFleet(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		var objects []runtime.Object
		for i := range 100 {
			objects = append(objects, fakeNode(fmt.Sprintf("n%03d", i), true))
		}
		w := newWorld(t, template("a", "d", "{name: gpu, count: 8}"), objects...)
		w.wrote("create 100")
		require.Len(t, w.list(t), 100)
		require.Empty(t, w.events())
		expected := `
# HELP kwok_dra_devices Devices that are published now, by driver.
# TYPE kwok_dra_devices gauge
kwok_dra_devices{driver="d"} 800
# HELP kwok_dra_slices ResourceSlices that are published now, by driver.
# TYPE kwok_dra_slices gauge
kwok_dra_slices{driver="d"} 100
# HELP kwok_dra_slice_writes_total Writes of ResourceSlices, by verb (create, update, delete) and result (ok or the API server's reason).
# TYPE kwok_dra_slice_writes_total counter
kwok_dra_slice_writes_total{result="ok",verb="create"} 100
`
		require.NoError(t, testutil.CollectAndCompare(w.publisher.Metrics(), strings.NewReader(expected),
			"kwok_dra_devices", "kwok_dra_slices", "kwok_dra_slice_writes_total"))
		registry := prometheus.NewPedanticRegistry()
		registry.MustRegister(w.publisher.Metrics())
		problems, err := testutil.GatherAndLint(registry)
		require.NoError(t, err)
		require.Empty(t, problems)
	})
}

// TestPublishTogether: templates that form a pool share its fate.
func TestPublishTogether(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		text := template("a", "d", "{name: x}") + "  publishWhen: {matchLabels: {a: \"1\"}}\n" +
			template("b", "d", "{name: w}") + "  publishWhen: {matchLabels: {b: \"1\"}}\n  retireWhen: {matchLabels: {gone: \"1\"}}\n"
		w := newWorld(t, text, fakeNode("n", true))
		label := func(name string) {
			w.setNode("n", func(node *corev1.Node) { node.Labels[name] = "1" })
		}
		unlabel := func(names ...string) {
			w.setNode("n", func(node *corev1.Node) {
				maps.DeleteFunc(node.Labels, func(key, _ string) bool { return strings.Contains(strings.Join(names, " "), key) })
			})
		}
		label("a")
		w.wrote("")
		label("b")
		w.wrote("create 1")
		unlabel("a", "b")
		w.wrote("")
		label("gone")
		w.wrote("delete 1")
		unlabel("gone")
		w.wrote("")
		label("a")
		label("b")
		w.wrote("create 1")
	})
}
