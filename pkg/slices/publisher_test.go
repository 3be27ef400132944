package slices

import (
	"context"
	"errors"
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
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/record"

	"github.com/kwok-dra/kwok-dra/pkg/config"
	"github.com/kwok-dra/kwok-dra/pkg/lifecycle"
)

// world is a Publisher at work on a server, in a bubble.
type world struct {
	*server
	t         *testing.T
	store     *config.Store
	recorder  *record.FakeRecorder
	publisher *Publisher
	stop      func()
	// sliceName is the slice that TestLostRace is about.
	sliceName string
}

// newWorld starts a Publisher with the documents on a server with the objects.
// With no documents there is no configuration yet.
func newWorld(t *testing.T, documents string, objects ...runtime.Object) *world {
	t.Helper()
	w := &world{server: newServer(objects...), t: t, store: config.NewStore("test")}
	if documents != "" {
		replace(t, w.store, documents)
	}
	w.start()
	return w
}

// start starts a Publisher, as a restart of the sidecar does after stop.
func (w *world) start() {
	w.t.Helper()
	managed := &lifecycle.ManagedNodes{}
	require.NoError(w.t, managed.Complete())
	w.recorder = record.NewFakeRecorder(1000)
	publisher, err := New(Options{Client: w.server, Config: w.store, Managed: managed, Recorder: w.recorder})
	require.NoError(w.t, err)
	w.publisher = publisher
	ctx, cancel := context.WithCancel(quiet(w.t))
	done := make(chan struct{})
	go func() {
		defer close(done)
		publisher.Run(ctx, 4)
	}()
	w.stop = func() {
		cancel()
		<-done
	}
	w.t.Cleanup(func() { w.stop() })
	synctest.Wait()
}

// wrote checks which writes there were since the last call, and nothing else
// even if time passes. "create 2, patch 1" are the wants.
func (w *world) wrote(want string) {
	w.t.Helper()
	synctest.Wait()
	w.requireWrites(want)
	time.Sleep(10 * time.Minute)
	w.requireWrites("")
}

func (w *world) requireWrites(want string) {
	w.t.Helper()
	wanted := map[string]int{}
	for _, word := range strings.Split(want, ", ") {
		var verb string
		var count int
		if n, _ := fmt.Sscanf(word, "%s %d", &verb, &count); n == 2 {
			wanted[verb] = count
		}
	}
	require.Equal(w.t, wanted, w.takeWrites())
}

func (w *world) setNode(name string, change func(*corev1.Node)) {
	w.t.Helper()
	node, err := w.CoreV1().Nodes().Get(w.t.Context(), name, metav1.GetOptions{})
	require.NoError(w.t, err)
	node = node.DeepCopy()
	change(node)
	_, err = w.CoreV1().Nodes().Update(w.t.Context(), node, metav1.UpdateOptions{})
	require.NoError(w.t, err)
	synctest.Wait()
}

func (w *world) addNode(node *corev1.Node) {
	w.t.Helper()
	_, err := w.CoreV1().Nodes().Create(w.t.Context(), node, metav1.CreateOptions{})
	require.NoError(w.t, err)
	synctest.Wait()
}

func (w *world) deleteNode(name string) {
	w.t.Helper()
	require.NoError(w.t, w.CoreV1().Nodes().Delete(w.t.Context(), name, metav1.DeleteOptions{}))
	synctest.Wait()
}

func (w *world) events() []string {
	var events []string
	for len(w.recorder.Events) > 0 {
		events = append(events, <-w.recorder.Events)
	}
	return events
}

func setReady(status corev1.ConditionStatus) func(*corev1.Node) {
	return func(node *corev1.Node) { node.Status.Conditions[0].Status = status }
}

const (
	twoSlices = "{name: gpu, count: 129}"
	oneOfEach = "{name: gpu, attributes: {zone: \"{{ or .Node.metadata.labels.zone `none` }}\"}}"
)

// inBubble runs a test in a bubble of its own.
func inBubble(t *testing.T, test func(t *testing.T)) {
	t.Helper()
	t.Parallel()
	synctest.Test(t, test)
}

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
				node.ResourceVersion += "1"
				node.Status.Conditions[0].LastHeartbeatTime = metav1.Now()
			})
			time.Sleep(10 * time.Second)
		}
		require.Zero(t, w.publisher.loop.Failures("n"))
		w.wrote("")
		w.setNode("n", func(node *corev1.Node) { node.Labels["other"] = "label" })
		w.wrote("")
		w.publisher.enqueueAll()
		w.wrote("")
		replace(t, w.store, template("a", "d", oneOfEach)+template("b", "e", tainted))
		w.wrote("")
	})
}

// TestHeartbeatsAreNotEvenReconciled: a fleet sends them many times a second.
func TestHeartbeatsAreNotEvenReconciled(t *testing.T) {
	t.Parallel()
	beat := func(at int64, version string) *corev1.Node {
		node := fakeNode("n", true)
		node.ResourceVersion = version
		node.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: "kwok" + version}}
		node.Status.Conditions[0].LastHeartbeatTime = metav1.Unix(at, 0)
		slim, err := slimNode(node)
		require.NoError(t, err)
		return slim.(*corev1.Node)
	}
	require.True(t, sameNode(beat(1, "1"), beat(2, "2")))
	changed := beat(2, "2")
	changed.Status.Conditions[0].LastTransitionTime = metav1.Unix(2, 0)
	require.False(t, sameNode(beat(1, "1"), changed))
	odd, err := slimNode("odd")
	require.NoError(t, err)
	require.Equal(t, "odd", odd)
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
		"template gone":           {selected, func(w *world) { replace(w.t, w.store, "") }},
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
			replace(w.t, w.store, template("a", "d", "{name: gpu, attributes: {x: 2}}"))
		}, "patch 1", 1},
		"a label that is rendered": {template("a", "d", oneOfEach), func(w *world) {
			w.setNode("n", func(node *corev1.Node) { node.Labels["zone"] = "z2" })
		}, "patch 1", 1},
		"more devices": {template("a", "d", "{name: gpu}"), func(w *world) {
			replace(w.t, w.store, template("a", "d", twoSlices))
		}, "patch 1, create 1", 2},
		"fewer devices": {template("a", "d", twoSlices), func(w *world) {
			replace(w.t, w.store, template("a", "d", "{name: gpu, count: 128}"))
		}, "delete 1, patch 1", 1},
		"a taint that splits": {template("a", "d", "{name: gpu, count: 100}"), func(w *world) {
			replace(w.t, w.store, template("a", "d", "{name: gpu, count: 100, taints: [{key: k, effect: NoSchedule}]}"))
		}, "dry-run 1, patch 1, create 1", 2},
		"another driver": {template("a", "d", "{name: gpu}"), func(w *world) {
			replace(w.t, w.store, template("a", "e", "{name: gpu}"))
		}, "delete 1, create 1", 1},
		"a second template": {template("a", "d", "{name: gpu}"), func(w *world) {
			replace(w.t, w.store, template("a", "d", "{name: gpu}")+template("b", "d", "{name: nic}"))
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
		"deleted": {func(w *world, first string) { w.remove(w.t, first) }, "patch 1, create 1"},
		"all deleted": {func(w *world, _ string) {
			for _, slice := range w.list(w.t) {
				w.remove(w.t, slice.Name)
			}
		}, "create 2"},
		"devices": {func(w *world, first string) {
			w.edit(w.t, first, func(s *resourcev1.ResourceSlice) { s.Spec.Devices = s.Spec.Devices[:3] })
		}, "patch 1"},
		"owner": {func(w *world, first string) {
			w.edit(w.t, first, func(s *resourcev1.ResourceSlice) { s.OwnerReferences = nil })
		}, "patch 1"},
		"foreign fields": {func(w *world, first string) {
			w.edit(w.t, first, func(s *resourcev1.ResourceSlice) { s.Spec.SkipNodeOperations = []resourcev1.SkipNodeOperation{"a"} })
		}, "patch 1"},
		"nothing that counts": {func(w *world, first string) {
			w.edit(w.t, first, func(s *resourcev1.ResourceSlice) { s.Annotations = map[string]string{"a": "b"} })
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
					}
					test.do(w, w.list(t)[0].Name)
					if down {
						w.start()
						w.wrote(test.want)
					} else {
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

// TestTakeOver: a slice that has lost its label is not in the cache, but in the
// way of the new one.
func TestTakeOver(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		node, pool := fakeNode("n", true), poolOf("n", 1)
		lost := newSlices(node, &pool)[0]
		lost.Labels, lost.ResourceVersion, lost.UID = nil, "900", "lost"
		lost.Spec.AllNodes = new(true)
		w := newWorld(t, template("a", "d", "{name: gpu}"), node, lost)
		w.wrote("create 1, patch 1")
		slices := w.list(t)
		require.Len(t, slices, 1)
		require.EqualValues(t, "lost", slices[0].UID)
		require.Equal(t, "kwok-dra", slices[0].Labels["dra.kwok.x-k8s.io/managed-by"])
		require.Nil(t, slices[0].Spec.AllNodes)
		require.Equal(t, "gpu", slices[0].Spec.Devices[0].Name)
	})
}

// TestNoConfigurationNoWrites: as long as a carrier is unknown, what it would
// say of existing slices is unknown too.
func TestNoConfigurationNoWrites(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		w := newWorld(t, template("a", "d", "{name: gpu}"), fakeNode("n", true))
		w.wrote("create 1")
		w.stop()
		w.store = config.NewStore("test")
		w.deleteNode("n")
		w.start()
		w.addNode(fakeNode("m", true))
		w.wrote("")
		replace(t, w.store, template("a", "d", "{name: gpu}"))
		w.wrote("delete 1, create 1")
	})
}

const missing = "{name: gpu, attributes: {x: \"{{ .Node.metadata.labels.missing }}\"}}"

// TestHeldDriver: a driver whose templates cannot be rendered keeps its slices,
// others go on.
func TestHeldDriver(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		w := newWorld(t, template("a", "held", oneOfEach)+template("b", "other", oneOfEach), fakeNode("n", true))
		w.wrote("create 2")
		replace(t, w.store, template("a", "held", missing)+template("b", "other", "{name: gpu, attributes: {zone: other}}"))
		w.wrote("patch 1")
		require.Len(t, w.list(t), 2)
		events := w.events()
		require.Len(t, events, 1)
		require.True(t, strings.HasPrefix(events[0], "Warning PublishFailed driver held: render template a: device gpu: spec.devices[0].attributes[x]"), events[0])

		w.setNode("n", func(node *corev1.Node) { node.Labels["missing"] = "here" })
		w.wrote("patch 1")
		require.Empty(t, w.events())
		w.deleteNode("n")
		w.wrote("delete 2")
	})
}

func TestHeldBySelector(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		text := template("a", "held", "{name: gpu}") + "  publishWhen: {matchExpressions: [{cel: {expression: 'self.metadata.labels[\"missing\"] == \"a\"'}}]}\n"
		w := newWorld(t, text+template("b", "other", "{name: gpu}"), fakeNode("n", true))
		w.wrote("create 1")
		events := w.events()
		require.Len(t, events, 1)
		require.Contains(t, events[0], "driver held: pool n: template a: evaluate spec.publishWhen: ")
	})
}

func internalError(string, string) error { return apierrors.NewInternalError(errors.New("down")) }

func TestErrorsAreRetried(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		failures := 3
		w := newWorld(t, "", fakeNode("n", true))
		w.refuse(func(string, string) error {
			if failures--; failures >= 0 {
				return internalError("", "")
			}
			return nil
		})
		replace(t, w.store, template("a", "d", "{name: gpu}"))
		time.Sleep(349 * time.Millisecond)
		w.requireWrites("create 3")
		time.Sleep(time.Millisecond) // 50 + 100 + 200 ms
		w.wrote("create 1")
		require.Empty(t, w.events(), "a restart of the API server is nothing to tell of")
		require.InDelta(t, 3, testutil.ToFloat64(w.publisher.metrics.failing.WithLabelValues("api")), 0)
		require.InDelta(t, 3, testutil.ToFloat64(w.publisher.metrics.writes.WithLabelValues("create", "InternalError")), 0)
	})
}

func TestEventAfterPatience(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		w := newWorld(t, "", fakeNode("n", true))
		w.refuse(internalError)
		replace(t, w.store, template("a", "d", "{name: gpu}"))
		time.Sleep(1549 * time.Millisecond) // 50 + 100 + 200 + 400 + 800 ms
		w.requireWrites("create 5")
		require.Empty(t, w.events())
		time.Sleep(time.Millisecond)
		synctest.Wait()
		w.requireWrites("create 1")
		events := w.events()
		require.Len(t, events, 1, "the sixth failure")
		require.Contains(t, events[0], "Warning PublishFailed create slice 00000-d-n-")
		w.refuse(nil)
		time.Sleep(2 * time.Second)
		w.wrote("create 1")
		require.Empty(t, w.events())
	})
}

func TestEventAtOnceForWhatIsRefused(t *testing.T) {
	for name, err := range map[string]error{
		"invalid":   apierrors.NewInvalid(schema.GroupKind{}, "a", nil),
		"forbidden": apierrors.NewForbidden(sliceResource.GroupResource(), "a", nil),
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				w := newWorld(t, "", fakeNode("n", true))
				w.refuse(func(string, string) error { return err })
				replace(t, w.store, template("a", "d", "{name: gpu}"))
				synctest.Wait()
				require.Len(t, w.events(), 1)
				w.stop()
			})
		})
	}
}

// TestLostRace: a slice changes between the cache and the write. That is
// retried and nobody is alarmed.
func TestLostRace(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		w := newWorld(t, template("a", "d", "{name: gpu}"), fakeNode("n", true))
		w.wrote("create 1")
		raced := false
		w.refuse(func(string, string) error {
			if raced {
				return nil
			}
			raced = true
			slice, err := w.get(w.sliceName)
			require.NoError(t, err)
			slice = slice.DeepCopy()
			slice.Annotations = map[string]string{"a": "b"}
			_, err = w.update(slice)
			return err
		})
		w.sliceName = w.list(t)[0].Name
		replace(t, w.store, template("a", "d", "{name: gpu, attributes: {x: 1}}"))
		w.wrote("patch 2")
		require.Empty(t, w.events())
		require.Zero(t, testutil.ToFloat64(w.publisher.metrics.failing.WithLabelValues("api")))
	})
}

func TestDroppedField(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		w := newWorld(t, "", fakeNode("n", true), fakeNode("m", true))
		w.dropTaints = true
		replace(t, w.store, template("a", "d", tainted))
		w.wrote("dry-run 1, create 2")
		events := w.events()
		require.Len(t, events, 1)
		require.Equal(t, "Warning FieldsDropped the API server drops taints of the devices of template a: turn on its feature gate DRADeviceTaints, or take the field away", events[0])
		require.InDelta(t, 1, testutil.ToFloat64(w.publisher.metrics.dropped.WithLabelValues("a", "taints")), 0)
	})
}

// TestAdmissionThatChangesSlices must not end in a loop of writes without a
// word.
func TestAdmissionThatChangesSlices(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		w := newWorld(t, "", fakeNode("n", true))
		w.dropTaints = true
		w.publisher.fields.kept["taints"] = true
		replace(t, w.store, template("a", "d", tainted))
		time.Sleep(time.Hour)
		writes := w.takeWrites()
		require.Equal(t, 1, writes["create"])
		require.Less(t, writes["patch"], 75, "with backoff up to a minute")
		events := w.events()
		require.NotEmpty(t, events)
		require.Contains(t, events[0], "the API server stored something else than it was sent")
	})
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
# HELP kwok_dra_devices Devices published now, by driver.
# TYPE kwok_dra_devices gauge
kwok_dra_devices{driver="d"} 800
# HELP kwok_dra_slices ResourceSlices published now, by driver.
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

func TestRunThatEndsBeforeTheCachesAreFull(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		managed := &lifecycle.ManagedNodes{All: true}
		require.NoError(t, managed.Complete())
		publisher, err := New(Options{Client: newServer(), Config: storeOf(t, ""), Managed: managed, Recorder: record.NewFakeRecorder(1)})
		require.NoError(t, err)
		ctx, cancel := context.WithCancel(quiet(t))
		cancel()
		publisher.Run(ctx, 1)
	})
}
