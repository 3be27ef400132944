package resourceslice

import (
	"fmt"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"

	"github.com/kwok-dra/kwok-dra/internal/testing/configtest"
)

// annotate writes the annotation of device taints.
func (w *world) annotate(text string) {
	w.t.Helper()
	w.setNode("n", func(node *corev1.Node) { node.Annotations["dra.kwok.x-k8s.io/device-taints"] = text })
}

// tainted tells of the taints that are published how many seconds ago they were
// added.
func (w *world) tainted() map[string]int64 {
	w.t.Helper()
	ago := taintedAt(w.list(w.t))
	for key, at := range ago {
		ago[key] = time.Now().Unix() - at
	}
	return ago
}

// taintedAt tells for each taint of a device the second at which it was added.
func taintedAt(slices []resourcev1.ResourceSlice) map[string]int64 {
	times := map[string]int64{}
	for _, slice := range slices {
		for _, device := range slice.Spec.Devices {
			for _, taint := range device.Taints {
				times[fmt.Sprintf("%s %s=%s:%s", device.Name, taint.Key, taint.Value, taint.Effect)] = taint.TimeAdded.Unix()
			}
		}
	}
	return times
}

const minutes10 = 600 // which wrote takes

func TestAnnotatedTaints(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		w := newWorld(t, template("a", "d", "{name: gpu, count: 2}")+template("b", "e", "{name: gpu}"), fakeNode("n", true))
		w.wrote("create 2")
		w.annotate("d/gpu-1:example.com/xid=79:NoExecute")
		w.wrote("dry-run 1, patch 1")
		require.Equal(t, map[string]int64{"gpu-1 example.com/xid=79:NoExecute": minutes10}, w.tainted())
		w.annotate("d/gpu-1:example.com/xid=79:NoExecute,gpu:k:None")
		w.wrote("patch 1")
		require.Equal(t, map[string]int64{"gpu-1 example.com/xid=79:NoExecute": 2 * minutes10, "gpu k=:None": minutes10}, w.tainted())
		for _, slice := range w.list(t) {
			require.EqualValues(t, 1, slice.Spec.Pool.Generation)
		}
		w.setNode("n", func(node *corev1.Node) { delete(node.Annotations, "dra.kwok.x-k8s.io/device-taints") })
		w.wrote("patch 2")
		require.Empty(t, w.tainted())
		require.Empty(t, w.events())
	})
}

// TestTaintsAreSplitAgain: the API server takes 128 devices in a slice, 64 once
// one of them is tainted. All that time the other taints stay as old as they are.
func TestTaintsAreSplitAgain(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		w := newWorld(t, template("a", "d", "{name: gpu, count: 100}"), fakeNode("n", true))
		w.wrote("create 1")
		w.annotate("gpu-99:k:NoExecute")
		w.wrote("dry-run 1, patch 1, create 1")
		w.annotate("gpu-99:k:NoExecute,gpu-0:k:NoExecute")
		w.wrote("patch 1")
		require.Equal(t, map[string]int64{"gpu-99 k=:NoExecute": 2 * minutes10, "gpu-0 k=:NoExecute": minutes10}, w.tainted())
		configtest.Replace(t, w.store, template("a", "d", "{name: nic, count: 50}, {name: gpu, count: 100}"))
		w.wrote("patch 2, create 1")
		require.Equal(t, map[string]int64{"gpu-99 k=:NoExecute": 3 * minutes10, "gpu-0 k=:NoExecute": 2 * minutes10}, w.tainted())
		w.annotate("")
		w.wrote("delete 1, patch 2")
		require.Empty(t, w.tainted())
	})
}

func TestRestartKeepsTimes(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		w := newWorld(t, template("a", "d", "{name: gpu, count: 2, taints: [{key: own, effect: NoSchedule}]}"), fakeNode("n", true))
		w.wrote("dry-run 1, create 1")
		w.annotate("gpu-0:k:None")
		w.wrote("patch 1")
		w.stop()
		w.start()
		w.wrote("dry-run 1")
		w.stop()
		w.annotate("gpu-0:k:None,gpu-1:k:None")
		w.start()
		w.wrote("dry-run 1, patch 1")
		require.Equal(t, map[string]int64{
			"gpu-0 own=:NoSchedule": 4 * minutes10, "gpu-1 own=:NoSchedule": 4 * minutes10, "gpu-0 k=:None": 3 * minutes10, "gpu-1 k=:None": minutes10,
		}, w.tainted())
	})
}

// TestTakeOverKeepsTimes: a slice that has lost its label is not in the cache.
func TestTakeOverKeepsTimes(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		w := newWorld(t, template("a", "d", "{name: gpu, taints: [{key: own, effect: NoSchedule}]}"), fakeNode("n", true))
		w.wrote("dry-run 1, create 1")
		w.stop()
		w.edit(w.list(t)[0].Name, func(s *resourcev1.ResourceSlice) { s.Labels, s.Spec.AllNodes = nil, new(true) })
		w.start()
		w.wrote("dry-run 1, create 1, patch 1")
		require.Equal(t, map[string]int64{"gpu own=:NoSchedule": 2 * minutes10}, w.tainted())
	})
}

// TestBadAnnotation: all stays as it is, so that a slip does not make a device
// healthy that is not to be.
func TestBadAnnotation(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		w := newWorld(t, template("a", "d", "{name: gpu}")+template("b", "e", oneOfEach), fakeNode("n", true))
		w.annotate("d/gpu:k:NoExecute")
		w.wrote("create 2, dry-run 1, patch 1")
		w.annotate("d/gpu:k:NoExecution")
		w.setNode("n", func(node *corev1.Node) { node.Labels["zone"] = "z2" })
		w.wrote("")
		require.Equal(t, map[string]int64{"gpu k=:NoExecute": 2 * minutes10}, w.tainted())
		events := w.events()
		require.Len(t, events, 2, "one for each change of the node, however many drivers there are")
		for _, event := range events {
			require.Equal(t, `Warning PublishFailed annotation dra.kwok.x-k8s.io/device-taints: entry "d/gpu:k:NoExecution": `+
				`effect: Unsupported value: "NoExecution": supported values: "NoSchedule", "NoExecute", "None"; did you mean "NoExecute"?`, event)
		}
		require.InDelta(t, 2, testutil.ToFloat64(w.publisher.reporter.metrics.failing.WithLabelValues("annotation")), 0)
		require.Zero(t, testutil.ToFloat64(w.publisher.reporter.metrics.failing.WithLabelValues("template")))

		w.annotate("")
		w.wrote("patch 2")
		require.Empty(t, w.tainted())
		require.Empty(t, w.events())
	})
}

func TestBadAnnotationOfAnEmptyNode(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		node := fakeNode("n", true)
		node.Annotations["dra.kwok.x-k8s.io/device-taints"] = "gpu"
		w := newWorld(t, template("a", "d", "{name: gpu}"), node)
		w.wrote("")
		require.Len(t, w.events(), 1)
		w.annotate("")
		w.wrote("create 1")
		w.annotate("gpu")
		w.wrote("")
		w.deleteNode("n")
		w.wrote("delete 1")
	})
}

// TestTaintOfAMissingDevice is told of, and the rest is published.
func TestTaintOfAMissingDevice(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		w := newWorld(t, template("a", "d", "{name: gpu}"), fakeNode("n", true))
		w.wrote("create 1")
		w.annotate("gpu:k:None,gpu-9:k:None")
		w.wrote("dry-run 1, patch 1")
		require.Equal(t, map[string]int64{"gpu k=:None": minutes10}, w.tainted())
		require.Equal(t, []string{`Warning PublishFailed annotation dra.kwok.x-k8s.io/device-taints: entry "gpu-9:k:None": ` +
			"the node has no such device; it has, for example, d/gpu"}, w.events())
		configtest.Replace(t, w.store, template("a", "d", "{name: gpu}, {name: gpu-9}"))
		w.wrote("patch 1")
		require.Len(t, w.tainted(), 2)
		require.Empty(t, w.events())
	})
}

// TestTaintOfADeviceToCome: a device is the node's before its pool is published,
// and one of a held driver may be.
func TestTaintOfADeviceToCome(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		node := fakeNode("n", false)
		node.Annotations["dra.kwok.x-k8s.io/device-taints"] = "gpu:k:None"
		w := newWorld(t, template("a", "d", "{name: gpu}"), node)
		w.wrote("")
		require.Empty(t, w.events())
		w.setNode("n", setReady(corev1.ConditionTrue))
		w.wrote("dry-run 1, create 1")
		require.Len(t, w.tainted(), 1)

		configtest.Replace(t, w.store, template("a", "d", "{name: nic}")+template("b", "held", missing))
		w.wrote("patch 1")
		events := w.events()
		require.Len(t, events, 1)
		require.Contains(t, events[0], "driver held: render template b")
	})
}

// TestTooManyTaints holds only the driver whose device has them.
func TestTooManyTaints(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		var text string
		for i := range 17 {
			text += fmt.Sprintf("d/gpu:k%d:None,", i)
		}
		w := newWorld(t, template("a", "d", "{name: gpu}")+template("b", "e", "{name: gpu}"), fakeNode("n", true))
		w.wrote("create 2")
		w.annotate(text + "e/gpu:k:None")
		w.wrote("dry-run 1, patch 1")
		require.Len(t, w.tainted(), 1)
		require.Equal(t, []string{"Warning PublishFailed driver d: annotation dra.kwok.x-k8s.io/device-taints: " +
			"device gpu of driver d has more than 16 taints, those of its template counted"}, w.events())
	})
}

// TestDroppedAnnotation: without the feature gate a taint would come to nothing
// without a word.
func TestDroppedAnnotation(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		w := newWorld(t, template("a", "d", "{name: gpu, count: 100}"), fakeNode("n", true))
		w.off = []string{"DRADeviceTaints"}
		w.wrote("create 1")
		time.Sleep(time.Second) // not when the API server is asked again
		w.annotate("gpu-0:k:None")
		w.wrote("dry-run 1")
		require.Equal(t, []string{"Warning FieldsDropped the API server drops the taints of annotation dra.kwok.x-k8s.io/device-taints: " +
			"turn on its feature gate DRADeviceTaints, or remove the annotation"}, w.events())
		w.annotate("gpu-1:k:None")
		w.wrote("")
		require.Empty(t, w.events(), "once is enough, as for templates")
		require.InDelta(t, 1, testutil.ToFloat64(w.publisher.reporter.metrics.dropped.WithLabelValues("dra.kwok.x-k8s.io/device-taints", "taints")), 0)
	})
}
