package claims

import (
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"

	"github.com/kwok-dra/kwok-dra/pkg/api/v1alpha1"
)

const failWhen = `{failWhen: {matchExpressions: [{key: '.status.conditions.[] | select(.type == "dra.kwok.x-k8s.io/PrepareResources") | .status', operator: In, values: ["False"]}]}}`

// halfAllocated is a Pod with two claims, the second of which is not allocated.
func halfAllocated(t *testing.T, documents string) *world {
	t.Helper()
	pod := newPod("p", "a", "b")
	b := allocated("b", pod)
	b.Status.Allocation = nil
	w := newWorld(t, template("d", "")+documents, newNode("n"), pod, allocated("a", pod), b)
	w.wrote("waiting p")
	w.read("get resourceclaims a, get resourceclaims b")
	w.failures("ResourceClaim b: not allocated")
	return w
}

func allocateLate(claim *resourcev1.ResourceClaim) {
	allocate(claim, device("d", "gpu-1"))
}

// TestFailureWaitsLikeTheKubelet: claims are prepared all or none, and a Pod that
// failed is looked at again by the regular sync, not when the cause has gone.
func TestFailureWaitsLikeTheKubelet(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		w := halfAllocated(t, "")
		start := time.Now()
		for range 2 {
			time.Sleep(30*time.Second - time.Millisecond)
			w.editClaim("b", allocateLate)
			w.wrote("")
		}
		require.Equal(t, time.Minute-2*time.Millisecond, time.Since(start))
		w.failures()
		time.Sleep(30*time.Second + 3*time.Millisecond)
		w.wrote("prepare a, prepare b, ready p")
		w.settled()
		w.failures()
	})
}

func TestFailureIsTriedAgainAndAgain(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		w := halfAllocated(t, configuration("{retryInterval: 10s}"))
		time.Sleep(10 * time.Minute)
		w.wrote("")
		require.InDelta(t, 50, len(w.events.all), 10, "every 10 to 15 seconds")
	})
}

// TestFailureOfRunningPod: a Pod that runs without having waited, under Stages
// that do not know of claims, is not thrown back.
func TestFailureOfRunningPod(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		pod := newPod("p", "c")
		run(pod)
		claim := allocated("c", pod)
		claim.Status.Allocation = nil
		w := newWorld(t, template("d", "")+configuration(faithful), newNode("n"), pod, claim)
		w.wrote("")
		w.failures("ResourceClaim c: not allocated")
	})
}

// TestEditedPodIsTriedAtOnce, as the kubelet syncs it.
func TestEditedPodIsTriedAtOnce(t *testing.T) {
	for name, test := range map[string]struct {
		edit func(pod *corev1.Pod)
		want string
	}{
		"label":      {func(pod *corev1.Pod) { pod.Labels = map[string]string{"a": "b"} }, "prepare a, prepare b, ready p"},
		"annotation": {func(pod *corev1.Pod) { pod.Annotations = map[string]string{"a": "b"} }, "prepare a, prepare b, ready p"},
		"spec":       {func(pod *corev1.Pod) { pod.Generation++ }, "prepare a, prepare b, ready p"},
		"status":     {func(pod *corev1.Pod) { pod.Status.Message = "hello" }, ""},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				w := halfAllocated(t, "")
				w.editClaim("b", allocateLate)
				w.wrote("")
				w.editPod("p", test.edit)
				w.wrote(test.want)
			})
		})
	}
}

func TestFailWhen(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		pod := newPod("p", "c")
		say(corev1.ConditionFalse, "GPU has fallen off the bus")(pod)
		w := newWorld(t, template("d", "")+configuration(failWhen), newNode("n"), pod, allocated("c", pod))
		w.wrote("waiting p")
		w.failures("NodePrepareResources failed for ResourceClaim c: GPU has fallen off the bus")
		require.InDelta(t, 0, testutil.ToFloat64(w.controller.observer.states.metrics.prepares), 0, "nothing was prepared")
		require.Zero(t, w.controller.observer.states.countPrepared())
		time.Sleep(91 * time.Second)
		w.failures("NodePrepareResources failed for ResourceClaim c: GPU has fallen off the bus")
		w.editPod("p", say(corev1.ConditionTrue, ""))
		w.wrote("prepare c, ready p")
		w.settled()
		require.InDelta(t, 1, testutil.ToFloat64(w.controller.observer.states.metrics.prepares), 0)
	})
}

// TestFailWhenLeavesOthersAlone: drivers without a template are not played, so
// they cannot fail.
func TestFailWhenLeavesOthersAlone(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		pod := newPod("p", "c")
		say(corev1.ConditionFalse, "")(pod)
		claim := allocated("c", pod)
		allocate(claim, device("other", "x"))
		w := newWorld(t, template("d", "")+configuration(failWhen), newNode("n"), pod, claim)
		w.wrote("ready p")
	})
}

// TestFailedPodIsNotNamed to the Pods that a claim is prepared for.
func TestFailedPodIsNotNamed(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		p, q := newPod("p", "c"), newPod("q", "c")
		say(corev1.ConditionFalse, "")(p)
		w := newWorld(t, template("d", namePods)+configuration(failWhen), newNode("n"), p, allocated("c", p, q))
		w.wrote("waiting p")
		w.Add(q)
		w.wrote("prepare c, ready q")
		require.JSONEq(t, `{"pods": "q "}`, w.data("c"))
		w.settled()
	})
}

func TestPrepareWhen(t *testing.T) {
	const when = `{prepareWhen: {matchExpressions: [{key: '.status.conditions.[] | select(.type == "dra.kwok.x-k8s.io/PrepareResources") | .status', operator: In, values: ["True"]}]}}`
	inBubble(t, func(t *testing.T) {
		pod := newPod("p", "c")
		w := newWorld(t, template("d", "")+configuration(when), newNode("n"), pod, allocated("c", pod))
		w.wrote("waiting p")
		w.settled()
		w.editPod("p", say(corev1.ConditionFalse, "not yet"))
		w.settled()
		w.editPod("p", say(corev1.ConditionTrue, ""))
		w.wrote("prepare c, ready p")
		w.settled()
		w.failures()
	})
}

// TestPlugin: what the node's condition says of its plugins, and the slices.
func TestPlugin(t *testing.T) {
	const unavailable = "NodePrepareResources: rpc error: code = Unavailable desc = connection error: desc = \"transport: Error while dialing: " +
		"dial unix /var/lib/kubelet/plugins/d/dra.sock: connect: connection refused\""
	for name, test := range map[string]struct {
		status    corev1.ConditionStatus
		reason    string
		published bool
		want      string
	}{
		"no condition":       {"", "", true, ""},
		"registered":         {corev1.ConditionTrue, "", true, ""},
		"crashed, then True": {corev1.ConditionTrue, "PluginCrashed", true, ""},
		"crashed":            {corev1.ConditionUnknown, "PluginCrashed", true, unavailable},
		"unknown":            {corev1.ConditionUnknown, "Other", true, "DRA driver d is not registered"},
		"gone":               {corev1.ConditionFalse, "PluginCrashed", true, "DRA driver d is not registered"},
		"no slices":          {"", "", false, "DRA driver d is not registered"},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				node, pod := newNode("n"), newPod("p", "c")
				if test.status != "" {
					node.Status.Conditions = []corev1.NodeCondition{{Type: v1alpha1.PluginRegistered, Status: test.status, Reason: test.reason}}
				}
				w := idleWorld(t, template("d", ""), node, pod, allocated("c", pod))
				if !test.published {
					w.Remove(newSlice("d", "n"))
				}
				w.start()
				if test.want == "" {
					w.wrote("prepare c, ready p")
					w.failures()
					return
				}
				w.wrote("waiting p")
				w.failures(test.want)
			})
		})
	}
}

// TestSlicesThatTheCacheLacks are asked for before a failure is declared.
func TestSlicesThatTheCacheLacks(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		pod := newPod("p", "c")
		w := idleWorld(t, template("d", ""), newNode("n"), pod, allocated("c", pod))
		slice := newSlice("d", "n")
		w.Remove(slice)
		slice.Labels = nil
		w.Add(slice)
		w.start()
		w.wrote("prepare c, ready p")
		w.read("get resourceclaims c, list resourceslices")
		w.failures()
	})
}

func TestTemplateThatCannotBeRendered(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		pod := newPod("p", "a", "b")
		b := allocated("b", pod)
		allocate(b, device("d", "gpu-9"))
		w := newWorld(t, template("d", ""), newNode("n"), pod, allocated("a", pod), b)
		w.wrote("waiting p")
		w.failures("NodePrepareResources failed for ResourceClaim b: requested device is not allocatable: gpu-9 in pool n of driver d")
	})
}
