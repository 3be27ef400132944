package claims

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kwok-dra/kwok-dra/internal/testing/configtest"
	"github.com/kwok-dra/kwok-dra/pkg/api/v1alpha1"
)

// pluginIs has Stages say in what state the plugins of the node n are.
func (w *world) pluginIs(status corev1.ConditionStatus, reason string) {
	w.editNode("n", func(node *corev1.Node) {
		node.Status.Conditions = []corev1.NodeCondition{{Type: v1alpha1.PluginRegistered, Status: status, Reason: reason}}
	})
	synctest.Wait()
}

// unprepareFailures checks the events of failures to unprepare the claims of p since the last time.
func (w *world) unprepareFailures(want ...string) {
	w.t.Helper()
	synctest.Wait()
	w.events.mu.Lock()
	defer w.events.mu.Unlock()
	for i := range want {
		want[i] = "kubelet | n | p | Warning | FailedUnprepareDynamicResources | Failed to unprepare dynamic resources: unprepare dynamic resources: " +
			want[i] + "; the Pod is kept until its driver is back, its claims are deallocated, or it is deleted by force"
	}
	require.Equal(w.t, want, append([]string(nil), w.events.all...))
	w.events.all = nil
}

func deleted(pod *corev1.Pod) { pod.DeletionTimestamp = new(metav1.Now()) }

const connectionRefused = "NodeUnprepareResources: rpc error: code = Unavailable desc = connection error: desc = \"transport: " +
	"Error while dialing: dial unix /var/lib/kubelet/plugins/d/dra.sock: connect: connection refused\""

// TestUnprepareWithoutDriver: a Pod is kept while its driver is away, with an event now and then, and unprepared soon after the
// driver is back.
func TestUnprepareWithoutDriver(t *testing.T) {
	for name, test := range map[string]struct {
		status  corev1.ConditionStatus
		reason  string
		failure string
	}{
		"crashed":      {corev1.ConditionUnknown, v1alpha1.PluginCrashed, connectionRefused},
		"unregistered": {corev1.ConditionUnknown, "PluginUnregistered", "DRA driver d is not registered"},
		"wiped":        {corev1.ConditionFalse, "PluginUnregistered", "DRA driver d is not registered"},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				w := prepared(t, configuration(faithful), false)
				w.pluginIs(test.status, test.reason)
				w.editPod("p", deleted)
				time.Sleep(repeatEventInterval / 2)
				w.wrote("")
				w.unprepareFailures(test.failure)
				require.True(t, w.ready("p"))
				require.Equal(t, 1, w.controller.observer.states.countPrepared())
				time.Sleep(repeatEventInterval)
				w.unprepareFailures(test.failure)
				w.pluginIs(corev1.ConditionTrue, "PluginRegistered")
				w.wrote("unprepared p")
				require.Zero(t, w.controller.observer.states.countPrepared())
				w.settled()
			})
		})
	}
}

// TestWhatEndsTheWaitForADriver: the Pod of a driver that does not come back is kept no longer than it must be.
func TestWhatEndsTheWaitForADriver(t *testing.T) {
	for name, test := range map[string]struct {
		end  func(w *world)
		want string
	}{
		"claim deallocated": {func(w *world) { w.deallocate("c") }, "unprepared p"},
		"claim gone":        {func(w *world) { w.Remove(w.claim("c")) }, "unprepared p"},
		"deleted by force":  {func(w *world) { w.Remove(newPod("p")) }, "withdraw c"},
		"Node gone":         {func(w *world) { w.Remove(newNode("n")) }, "withdraw c"},
		"template gone":     {func(w *world) { configtest.Replace(w.t, w.store, configuration(faithful)) }, "unprepared p"},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				w := prepared(t, configuration(faithful), false)
				w.pluginIs(corev1.ConditionFalse, "PluginUnregistered")
				w.editPod("p", deleted)
				time.Sleep(time.Minute)
				w.wrote("")
				test.end(w)
				time.Sleep(time.Minute)
				w.wrote(test.want)
				require.Zero(t, w.controller.observer.states.countPrepared())
				w.settled()
			})
		})
	}
}

// TestUnprepareWithoutDriverPod: so is a Pod whose driver has lost its own Pod, with the DaemonSet.
func TestUnprepareWithoutDriverPod(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		plugin, pod := pluginPod(), newPod("p", "c")
		w := newWorld(t, withDriverPod+configuration(faithful), newNode("n"), plugin, pod, allocated("c", pod))
		require.True(t, w.ready("p"))
		w.takeCalls(false)
		w.Remove(plugin)
		synctest.Wait()
		w.editPod("p", deleted)
		time.Sleep(time.Minute)
		w.wrote("")
		w.unprepareFailures("DRA driver d is not registered")
		w.Add(pluginPod())
		w.wrote("unprepared p")
		w.settled()
	})
}

// TestUnprepareOfSharedClaimWithoutDriver: only the last Pod needs the driver.
func TestUnprepareOfSharedClaimWithoutDriver(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		w := prepared(t, configuration(faithful), true)
		w.pluginIs(corev1.ConditionFalse, "PluginUnregistered")
		w.editPod("q", deleted)
		w.wrote("unprepared q")
		w.editPod("p", deleted)
		w.settled()
		require.True(t, w.ready("p"))
	})
}

// TestUnprepareWithoutStages: where nobody says how drivers are, they are there.
func TestUnprepareWithoutStages(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		w := prepared(t, configuration(faithful), false)
		w.Remove(newSlice("d", "n")) // as after retireWhen
		w.editPod("p", deleted)
		w.wrote("unprepared p")
		w.unprepareFailures()
	})
}
