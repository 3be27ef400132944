package claims

import (
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kwok-dra/kwok-dra/internal/claims/plan"
	"github.com/kwok-dra/kwok-dra/internal/observe/facts"
	"github.com/kwok-dra/kwok-dra/internal/testing/configtest"
)

// prepared is a Pod p, and a Pod q if it is shared, with the claim c, which is
// prepared.
func prepared(t *testing.T, documents string, shared bool) *world {
	t.Helper()
	p, q := newPod("p", "c"), newPod("q", "c")
	w := newWorld(t, template("d", "")+documents, newNode("n"), p, allocated("c", p))
	if shared {
		w.reserve("c", q)
		w.Add(q)
	}
	require.Contains(t, w.takeCalls(false), "prepare c")
	return w
}

func setPhase(phase corev1.PodPhase) func(*corev1.Pod) {
	return func(pod *corev1.Pod) { pod.Status.Phase = phase }
}

// TestWithdrawing: where nobody deallocates a claim, its entries go some seconds
// after its last consumer on a fake node.
func TestWithdrawing(t *testing.T) {
	for name, end := range map[string]func(w *world){
		"deleted":   func(w *world) { w.Remove(newPod("p")) },
		"succeeded": func(w *world) { w.editPod("p", setPhase(corev1.PodSucceeded)) },
		"failed":    func(w *world) { w.editPod("p", setPhase(corev1.PodFailed)) },
		"node gone": func(w *world) { w.Remove(newNode("n")) },
		"node no longer fake": func(w *world) {
			w.editNode("n", func(node *corev1.Node) { node.Annotations = nil })
		},
		"unreserved": func(w *world) { w.unreserve("c", "uid-of-p") },
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				w := prepared(t, "", false)
				end(w)
				w.withdrawsAfter(plan.WithdrawDelay)
				require.Empty(t, w.shown("c"))
				w.settled()
				if name == "deleted" {
					w.read("get pods p") // it might be one that the cache does not have yet
				}
				w.read("")
				require.Equal(t, name == "unreserved", w.controller.observer.states.countPrepared() == 1)
			})
		})
	}
}

// TestDeallocatedClaimIsNotWritten: the API server has dropped the entries.
func TestDeallocatedClaimIsNotWritten(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		w := prepared(t, "", false)
		w.Remove(newPod("p"))
		time.Sleep(plan.WithdrawDelay - time.Second)
		w.deallocate("c")
		w.settled()
		require.Zero(t, w.controller.observer.states.countPrepared())
		require.InDelta(t, 1, testutil.ToFloat64(w.controller.observer.states.metrics.unprepares), 0)
	})
}

func TestLastConsumerWithdraws(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		w := prepared(t, "", true)
		w.Remove(newPod("p"))
		w.settled()
		require.Equal(t, 1, w.controller.observer.states.countPrepared())
		w.Remove(newPod("q"))
		time.Sleep(time.Minute)
		w.wrote("withdraw c")
		require.Zero(t, w.controller.observer.states.countPrepared())
	})
}

// TestConsumerElsewhere: entries exist only as long as a consumer on one of our
// nodes lives.
func TestConsumerElsewhere(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		w := prepared(t, "", false)
		elsewhere := newPod("q", "c")
		elsewhere.Spec.NodeName = "real"
		w.reserve("c", elsewhere)
		w.Add(realNode("real"))
		w.Add(elsewhere)
		w.Remove(newPod("p"))
		time.Sleep(time.Minute)
		w.wrote("withdraw c")
		w.settled()
	})
}

// TestNextConsumerInTime keeps the entries; one that comes later has them
// written again.
func TestNextConsumerInTime(t *testing.T) {
	for name, test := range map[string]struct {
		after time.Duration
		want  string
	}{
		"in time": {plan.WithdrawDelay - time.Second, "ready q"},
		"late":    {plan.WithdrawDelay + time.Second, "withdraw c, prepare c, ready q"},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				w := prepared(t, "", false)
				w.Remove(newPod("p"))
				time.Sleep(test.after)
				w.reserve("c", newPod("q"))
				w.Add(newPod("q", "c"))
				w.wrote(test.want)
				require.Equal(t, []string{"d/n/gpu-0"}, w.shown("c"))
				w.settled()
				w.Remove(newPod("q"))
				w.withdrawsAfter(plan.WithdrawDelay)
			})
		})
	}
}

// TestNodeBackInTime: the next time, the delay begins anew.
func TestNodeBackInTime(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		w := prepared(t, "", false)
		w.editNode("n", func(node *corev1.Node) { node.Annotations = nil })
		time.Sleep(plan.WithdrawDelay - time.Second)
		w.editNode("n", func(node *corev1.Node) { node.Annotations = newNode("n").Annotations })
		w.settled()
		w.Remove(newPod("p"))
		w.withdrawsAfter(plan.WithdrawDelay)
	})
}

func TestDeletedWhileItWasDown(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		w := prepared(t, "", false)
		w.stop()
		w.Remove(newPod("p"))
		w.start()
		w.wrote("")
		time.Sleep(plan.WithdrawDelay)
		w.wrote("withdraw c")
		w.stop()
		w.start()
		w.settled()
	})
}

func TestWithdrawingIsRetried(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		w := prepared(t, "", false)
		w.Refuse(failing(2, "withdraw c", apierrors.NewInternalError(errBroken)))
		w.Remove(newPod("p"))
		time.Sleep(time.Minute)
		w.wrote("withdraw c, withdraw c, withdraw c")
		w.settled()
		w.failures()
	})
}

// TestReallocatedClaim: what one Pod got is written anew for the next.
func TestReallocatedClaim(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		w := prepared(t, "", false)
		w.Remove(newPod("p"))
		w.deallocate("c")
		q := newPod("q", "c")
		w.reserve("c", q)
		w.editClaim("c", allocateLate)
		w.Add(q)
		w.wrote("prepare c, ready q")
		require.Equal(t, []string{"d/n/gpu-1"}, w.shown("c"))
		w.settled()
	})
}

const unprepareWhen = `{podStatus: Faithful, unprepareWhen: {matchLabels: {stopped: "yes"}}}`

// TestFaithfulEnd: the Pod's status tells that its claims are unprepared.
func TestFaithfulEnd(t *testing.T) {
	for name, end := range map[string]func(*corev1.Pod){
		"deleted":   func(pod *corev1.Pod) { pod.DeletionTimestamp = new(metav1.Now()) },
		"succeeded": setPhase(corev1.PodSucceeded),
		"completed": func(pod *corev1.Pod) {
			pod.Spec.RestartPolicy = corev1.RestartPolicyNever
			pod.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "c", State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{}}}}
		},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				w := prepared(t, configuration(faithful), false)
				w.editPod("p", end)
				w.wrote("unprepared p")
				require.Equal(t, corev1.ConditionFalse, facts.ReadyToStart(w.pod("p")))
				require.Zero(t, w.controller.observer.states.countPrepared())
				w.deallocate("c")
				w.settled()
			})
		})
	}
}

func TestUnprepareWhen(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		w := prepared(t, configuration(unprepareWhen), false)
		w.editPod("p", func(pod *corev1.Pod) { pod.DeletionTimestamp = new(metav1.Now()) })
		w.settled()
		require.Equal(t, 1, w.controller.observer.states.countPrepared())
		w.editPod("p", func(pod *corev1.Pod) { pod.Labels = map[string]string{"stopped": "yes"} })
		w.wrote("unprepared p")
		w.settled()
		require.Zero(t, w.controller.observer.states.countPrepared())
	})
}

// TestEndedPodIsCountedOnce: a Pod that has ended may be there for long, as that of
// a Job, and be edited.
func TestEndedPodIsCountedOnce(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		w := prepared(t, "", false)
		w.editPod("p", setPhase(corev1.PodSucceeded))
		for i := range 5 {
			synctest.Wait()
			w.editPod("p", func(pod *corev1.Pod) { pod.Annotations = map[string]string{"edit": strconv.Itoa(i)} })
		}
		synctest.Wait()
		require.InDelta(t, 1, testutil.ToFloat64(w.controller.observer.states.metrics.prepares), 0)
		require.InDelta(t, 1, testutil.ToFloat64(w.controller.observer.states.metrics.unprepares), 0)
	})
}

func TestMinimalEndWritesNothing(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		w := prepared(t, "", false)
		w.editPod("p", func(pod *corev1.Pod) { pod.DeletionTimestamp = new(metav1.Now()) })
		w.settled()
		w.editPod("p", setPhase(corev1.PodSucceeded))
		w.deallocate("c")
		w.settled()
		require.Zero(t, w.controller.observer.states.countPrepared())
	})
}

// TestEndBeforeThePodWasPrepared: nothing is prepared any more, nor unprepared.
func TestEndBeforeThePodWasPrepared(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		w := halfAllocated(t, configuration(faithful))
		w.editPod("p", func(pod *corev1.Pod) { pod.DeletionTimestamp = new(metav1.Now()) })
		w.editClaim("b", allocateLate)
		w.settled()
		w.Remove(newPod("p"))
		w.settled()
		w.failures()
	})
}

// TestConfigurationWithoutTheTemplate: what was prepared is withdrawn all the
// same when its Pod is gone.
func TestConfigurationWithoutTheTemplate(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		w := prepared(t, "", false)
		configtest.Replace(t, w.store, "")
		w.settled()
		w.Remove(newPod("p"))
		time.Sleep(plan.WithdrawDelay)
		w.wrote("withdraw c")
		w.settled()
	})
}
