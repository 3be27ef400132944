package claims

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kwok-dra/kwok-dra/internal/claims/plan"
)

// binding is a Pod p that is to be bound once the device of claim c has the
// condition Attached.
func binding(t *testing.T, documents string, changes ...func(pod *corev1.Pod, claim *resourcev1.ResourceClaim)) *world {
	t.Helper()
	pod := newPod("p", "c")
	claim := allocated("c", pod)
	pod.Spec.NodeName = ""
	gpu := device("d", "gpu-0")
	gpu.BindingConditions, gpu.BindingFailureConditions = []string{"Attached"}, []string{"AttachFailed"}
	allocate(claim, gpu)
	claim.Status.Allocation.AllocationTimestamp = new(metav1.Now())
	for _, change := range changes {
		change(pod, claim)
	}
	return newWorld(t, template("d", "")+documents, newNode("n"), realNode("real"), pod, claim)
}

func bindTo(node string) func(pod *corev1.Pod) {
	return func(pod *corev1.Pod) { pod.Spec.NodeName = node }
}

// conditions are those of a claim's first entry: type and reason.
func (w *world) conditions(claim string) map[string]string {
	all := map[string]string{}
	for _, entry := range w.claim(claim).Status.Devices {
		for _, condition := range entry.Conditions {
			all[condition.Type] = condition.Reason
		}
	}
	return all
}

// TestBinding: the conditions are set before the Pod is bound, stay as long as
// it uses the claim, and go with the other entries.
func TestBinding(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		w := binding(t, "")
		w.wrote("bind c")
		require.Equal(t, map[string]string{"Attached": "Bound"}, w.conditions("c"))
		w.settled() // also while the scheduler takes its time

		w.editPod("p", bindTo("n"))
		w.wrote("prepare c, ready p")
		require.Equal(t, map[string]string{"Attached": "Bound", "Ready": "Prepared"}, w.conditions("c"))
		require.Equal(t, []string{"d/n/gpu-0"}, w.shown("c"))
		w.settled()

		w.Remove(newPod("p"))
		time.Sleep(plan.WithdrawDelay)
		w.wrote("withdraw c, withdraw-kwok-dra-binding c")
		require.Empty(t, w.shown("c"))
		w.settled()
	})
}

// TestBindingInASharedPool: without bindsToNode it is not known which node the
// scheduler has chosen, and it waits all the same.
func TestBindingInASharedPool(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		pod := newPod("p", "c")
		claim := allocated("c", pod)
		allocateToAll(claim)
		claim.Status.Allocation.Devices.Results[0].BindingConditions = []string{"Attached"}
		pod.Spec.NodeName = ""
		w := newWorld(t, fabric(""), newNode("n"), pod, claim)
		w.wrote("bind c")
		require.Equal(t, map[string]string{"Attached": "Bound"}, w.conditions("c"))
		w.settled()

		w.editPod("p", bindTo("n"))
		w.wrote("prepare c, ready p")
		w.settled()
		w.Remove(newPod("p"))
		time.Sleep(plan.WithdrawDelay)
		w.wrote("withdraw c, withdraw-kwok-dra-binding c")
	})
}

func TestBindingDelay(t *testing.T) {
	for name, test := range map[string]struct {
		ago  time.Duration
		left time.Duration
	}{
		"allocated now":         {0, 10 * time.Second},
		"allocated a while ago": {4 * time.Second, 6 * time.Second},
		"allocated long ago":    {time.Minute, 0},
		"clock an hour behind":  {-time.Hour, 10 * time.Second},
		"clock an hour ahead":   {time.Hour, 0},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				w := binding(t, configuration("{bindingDelay: 10s}"), func(_ *corev1.Pod, claim *resourcev1.ResourceClaim) {
					claim.Status.Allocation.AllocationTimestamp = new(metav1.NewTime(time.Now().Add(-test.ago)))
				})
				if test.left > 0 {
					time.Sleep(test.left - time.Millisecond)
					w.wrote("")
					time.Sleep(time.Millisecond)
				}
				w.wrote("bind c")
				w.settled()
			})
		})
	}
}

// TestBindingWithoutTimestamp: an allocation may lack the time, and must not wait
// for ever then.
func TestBindingWithoutTimestamp(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		w := binding(t, configuration("{bindingDelay: 10s}"), func(_ *corev1.Pod, claim *resourcev1.ResourceClaim) {
			claim.Status.Allocation.AllocationTimestamp = nil
		})
		time.Sleep(20 * time.Second)
		w.wrote("bind c")
		w.settled()
	})
}

// TestBindingThatCannotBePlanned: the user of a Pod that waits for binding conditions is told why they are not set.
func TestBindingThatCannotBePlanned(t *testing.T) {
	const guarded = `{failWhen: {matchExpressions: [{cel: {expression: 'self.metadata.labels["fail"] == "yes"'}}]}}`
	inBubble(t, func(t *testing.T) {
		w := binding(t, configuration(guarded))
		time.Sleep(time.Hour)
		w.wrote("")
		w.events.mu.Lock()
		require.InDelta(t, 6, len(w.events.all), 1, "one in ten minutes")
		require.Contains(t, w.events.all[0], "kwok-dra |  | p | Warning | FailedPrepareDynamicResources | Failed to prepare dynamic resources: ")
		require.Contains(t, w.events.all[0], "no such key: fail")
		w.events.mu.Unlock()
		require.InDelta(t, 180, len(w.takeCalls(true)), 5, "a look in 20 s")

		w.editPod("p", func(pod *corev1.Pod) { pod.Labels = map[string]string{"fail": "no"} })
		time.Sleep(20 * time.Second)
		w.wrote("bind c")
		w.settled()
	})
}

func TestBindingFailure(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		w := binding(t, configuration(failWhen), func(pod *corev1.Pod, _ *resourcev1.ResourceClaim) {
			say(corev1.ConditionFalse, "no such cable")(pod)
		})
		w.wrote("bind c")
		w.read("get pods p") // the Pod is not bound, so the cache does not have it
		require.Equal(t, map[string]string{"AttachFailed": "BindingFailed"}, w.conditions("c"))
		require.Equal(t, "no such cable", w.claim("c").Status.Devices[0].Conditions[0].Message)
		w.settled()

		w.deallocate("c") // as the scheduler does then
		w.settled()
	})
}

func TestBindingThatDoesNotFail(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		w := binding(t, configuration(failWhen))
		w.wrote("bind c")
		w.read("get pods p")
		require.Equal(t, map[string]string{"Attached": "Bound"}, w.conditions("c"))
		w.editPod("p", bindTo("n"))
		w.wrote("prepare c, ready p")
		w.settled()
	})
}

func TestBindingIsRetried(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		w := binding(t, configuration("{bindingDelay: 1s}"))
		w.Refuse(failing(2, "bind c", apierrors.NewInternalError(errBroken)))
		time.Sleep(10 * time.Second)
		w.wrote("bind c, bind c, bind c")
		w.settled()
	})
}

// TestBindingOfOthers is not ours.
func TestBindingOfOthers(t *testing.T) {
	for name, change := range map[string]func(pod *corev1.Pod, claim *resourcev1.ResourceClaim){
		"another driver": func(_ *corev1.Pod, claim *resourcev1.ResourceClaim) {
			claim.Status.Allocation.Devices.Results[0].Driver = "other"
		},
		"a real node": func(_ *corev1.Pod, claim *resourcev1.ResourceClaim) {
			claim.Status.Allocation.NodeSelector.NodeSelectorTerms[0].MatchFields[0].Values[0] = "real"
		},
		"any node, in a pool of one": func(_ *corev1.Pod, claim *resourcev1.ResourceClaim) { claim.Status.Allocation.NodeSelector = nil },
		"bound by someone": func(_ *corev1.Pod, claim *resourcev1.ResourceClaim) {
			claim.Status.Devices = []resourcev1.AllocatedDeviceStatus{{
				Driver: "d", Pool: "n", Device: "gpu-0",
				Conditions: []metav1.Condition{{Type: "Attached", Status: metav1.ConditionTrue}},
			}}
		},
		"no conditions": func(_ *corev1.Pod, claim *resourcev1.ResourceClaim) {
			claim.Status.Allocation.Devices.Results[0].BindingConditions = nil
		},
		"not allocated": func(_ *corev1.Pod, claim *resourcev1.ResourceClaim) { claim.Status.Allocation = nil },
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				w := binding(t, configuration(failWhen), change)
				w.settled()
				w.read("")
			})
		})
	}
}

// TestBindingGivenUp: the Pod is deleted before it is bound, and nobody
// deallocates. A restart finds out.
func TestBindingGivenUp(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		w := binding(t, "")
		w.wrote("bind c")
		w.stop()
		w.Remove(newPod("p"))
		w.start()
		time.Sleep(plan.WithdrawDelay)
		w.wrote("withdraw-kwok-dra-binding c")
		w.settled()
	})
}

// TestBindingForAPodGroup: which of its Pods is being bound is not known.
func TestBindingForAPodGroup(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		w := binding(t, "", func(_ *corev1.Pod, claim *resourcev1.ResourceClaim) {
			claim.Status.ReservedFor = []resourcev1.ResourceClaimConsumerReference{{APIGroup: "scheduling.k8s.io", Resource: "podgroups", Name: "g", UID: "uid-of-g"}}
		})
		w.wrote("bind c")
		w.settled()
	})
}

// TestBindingForNobody would be withdrawn, and then set again, for ever.
func TestBindingForNobody(t *testing.T) {
	for name, change := range map[string]func(pod *corev1.Pod, claim *resourcev1.ResourceClaim){
		"another Pod of that name": func(pod *corev1.Pod, _ *resourcev1.ResourceClaim) { pod.UID = "another" },
		"done":                     func(pod *corev1.Pod, _ *resourcev1.ResourceClaim) { pod.Status.Phase = corev1.PodFailed },
		"bound to a real node":     func(pod *corev1.Pod, _ *resourcev1.ResourceClaim) { pod.Spec.NodeName = "real" },
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				w := binding(t, "", change)
				if name == "bound to a real node" {
					w.read("") // the cache has it
				} else {
					w.read("get pods p")
				}
				w.settled()
			})
		})
	}
}
