package claims

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/kwok-dra/kwok-dra/internal/observe/facts"
	"github.com/kwok-dra/kwok-dra/internal/observe/lifecycle"
	"github.com/kwok-dra/kwok-dra/internal/testing/configtest"
)

const (
	faithful = "{podStatus: Faithful}"
	namePods = "  claimStatus: {data: {pods: '{{ range .Pods }}{{ .name }} {{ end }}'}}\n"
)

func TestMinimalTakesTwoWrites(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		pod := newPod("p", "c")
		w := newWorld(t, template("d", ""), newNode("n"), pod, allocated("c", pod))
		w.wrote("prepare c, ready p")
		w.read("")
		entry := w.claim("c").Status.Devices[0]
		require.Equal(t, facts.DeviceID{Driver: "d", Pool: "n", Device: "gpu-0"}, facts.EntryID(&entry))
		require.Equal(t, []metav1.Condition{{
			Type: "Ready", Status: metav1.ConditionTrue, Reason: "Prepared", Message: "device is prepared", LastTransitionTime: metav1.Now().Rfc3339Copy(),
		}}, sameZone(entry.Conditions))
		w.settled()
		w.failures()
	})
}

// sameZone makes times comparable, which the codec leaves in the local zone.
func sameZone(conditions []metav1.Condition) []metav1.Condition {
	for i := range conditions {
		conditions[i].LastTransitionTime = conditions[i].LastTransitionTime.Rfc3339Copy()
	}
	return conditions
}

func TestFaithfulTakesThreeWritesInOrder(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		pod := newPod("p", "c")
		w := newWorld(t, template("d", "")+configuration(faithful), newNode("n"), pod, allocated("c", pod))
		w.wrote("waiting p, prepare c, ready p")
		require.Equal(t, "10.0.0.1", w.pod("p").Status.HostIP)
		w.settled()
	})
}

func TestAllClaimsBeforeThePod(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		pod := newPod("p", "a", "b")
		pod.Status.ExtendedResourceClaimStatus = &corev1.PodExtendedResourceClaimStatus{ResourceClaimName: "e"}
		w := newWorld(t, template("d", ""), newNode("n"), pod, allocated("a", pod), allocated("b", pod), allocated("e", pod))
		w.wrote("prepare a, prepare b, prepare e, ready p")
		w.settled()
	})
}

func TestRestartWritesNothing(t *testing.T) {
	for name, documents := range map[string]string{
		"minimal":   template("d", ""),
		"faithful":  template("d", "") + configuration(faithful),
		"name Pods": template("d", namePods),
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				p, q := newPod("p", "c"), newPod("q", "c", "b")
				w := newWorld(t, documents, newNode("n"), p, q, allocated("c", p, q), allocated("b", q))
				synctest.Wait()
				require.NotEmpty(t, w.takeCalls(false))
				w.stop()
				w.start()
				w.wrote("")
				w.read("")
				w.settled()
				require.Equal(t, 2, w.controller.observer.states.countPrepared(), "what is in use is known again")
			})
		})
	}
}

// TestRestartPreparesWhatIsOwed: the sidecar ended between the claim's write and
// the Pod's, or before both.
func TestRestartPreparesWhatIsOwed(t *testing.T) {
	for name, test := range map[string]struct{ broken, before, after string }{
		"before the claim": {"prepare c", "prepare c", "prepare c, ready p"},
		"before the Pod":   {"ready p", "prepare c, ready p", "ready p"},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				pod := newPod("p", "c")
				w := idleWorld(t, template("d", ""), newNode("n"), pod, allocated("c", pod))
				w.Refuse(failing(1000, test.broken, errBroken))
				w.start()
				w.wrote(test.before)
				w.stop()
				w.Refuse(nil)
				w.start()
				w.wrote(test.after)
				w.settled()
			})
		})
	}
}

func TestSharedClaimIsWrittenOnce(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		objects, want := []runtime.Object{newNode("n")}, map[string]int{"prepare c": 1}
		var pods []*corev1.Pod
		for i := range 20 {
			pods = append(pods, newPod(fmt.Sprintf("p%d", i), "c"))
			objects = append(objects, pods[i])
			want["ready "+pods[i].Name] = 1
		}
		w := newWorld(t, template("d", ""), append(objects, allocated("c", pods...))...)
		w.counted(want)
		w.settled()
		require.Equal(t, 1, w.controller.observer.states.countPrepared())
		require.InDelta(t, 1, testutil.ToFloat64(w.controller.observer.states.metrics.prepares), 0)
	})
}

// TestEntriesThatNamePods are written once for each change of the Pods.
func TestEntriesThatNamePods(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		p, q := newPod("p", "c"), newPod("q", "c")
		w := newWorld(t, template("d", namePods), newNode("n"), p, allocated("c", p))
		w.wrote("prepare c, ready p")
		require.JSONEq(t, `{"pods": "p "}`, w.data("c"))

		w.reserve("c", q)
		w.Add(q)
		w.wrote("prepare c, ready q")
		require.JSONEq(t, `{"pods": "p q "}`, w.data("c"))
		w.settled()

		w.unreserve("c", p.UID)
		synctest.Wait()
		w.Remove(p)
		w.wrote("prepare c")
		require.JSONEq(t, `{"pods": "q "}`, w.data("c"))
		w.settled()
	})
}

// TestEntriesThatNameManyPods: Pods that come at once do not write over one
// another.
func TestEntriesThatNameManyPods(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		var pods []*corev1.Pod
		objects := []runtime.Object{newNode("n")}
		for i := range 20 {
			pods = append(pods, newPod(fmt.Sprintf("p%d", i), "c"))
			objects = append(objects, pods[i])
		}
		w := newWorld(t, template("d", namePods), append(objects, allocated("c", pods...))...)
		time.Sleep(time.Minute)
		writes := len(slices.DeleteFunc(w.takeCalls(false), func(call string) bool { return call != "prepare c" }))
		require.LessOrEqual(t, writes, 20)
		require.Equal(t, 20, strings.Count(w.data("c"), " "))
		w.settled()
	})
}

func TestModeNoneWritesNoClaim(t *testing.T) {
	for name, test := range map[string]struct{ claimStatus, want string }{
		"nothing to say": {"  claimStatus: {mode: None}\n", "ready p"},
		"only CDI ids":   {"  claimStatus: {mode: None, cdiDeviceIDs: [k8s.example.com/gpu=0]}\n", "ready p"},
		"data":           {"  claimStatus: {mode: None, data: {a: b}}\n", "prepare c, ready p"},
		"network data":   {"  claimStatus: {mode: None, networkData: {interfaceName: eth0}}\n", "prepare c, ready p"},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				pod := newPod("p", "c")
				w := newWorld(t, template("d", test.claimStatus), newNode("n"), pod, allocated("c", pod))
				w.wrote(test.want)
				w.settled()
			})
		})
	}
}

// TestOtherDrivers are taken as prepared, and what they write is left alone.
func TestOtherDrivers(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		pod := newPod("p", "other", "mixed")
		other, mixed := allocated("other", pod), allocated("mixed", pod)
		allocate(other, device("foreign", "x"))
		allocate(mixed, device("foreign", "x"), device("d", "gpu-1"))
		mixed.Status.Devices = []resourcev1.AllocatedDeviceStatus{{Driver: "foreign", Pool: "n", Device: "x"}}
		w := newWorld(t, template("d", ""), newNode("n"), pod, other, mixed)
		w.wrote("prepare mixed, ready p")
		require.ElementsMatch(t, []string{"foreign/n/x", "d/n/gpu-1"}, w.shown("mixed"))
		w.unreserve("mixed", pod.UID)
		w.Remove(pod)
		time.Sleep(time.Minute)
		w.wrote("withdraw mixed")
		require.Equal(t, []string{"foreign/n/x"}, w.shown("mixed"))
		w.settled()
	})
}

// TestNotOurs: none of these Pods is ours to write, and most are not even worth
// a read.
func TestNotOurs(t *testing.T) {
	plain := newPod("p")
	onReal, onUnknown := newPod("p", "c"), newPod("p", "c")
	onReal.Spec.NodeName, onUnknown.Spec.NodeName = "real", "unknown"
	done, deleted, unbound := newPod("p", "c"), newPod("p", "c"), newPod("p", "c")
	done.Status.Phase = corev1.PodSucceeded
	deleted.DeletionTimestamp, deleted.Finalizers = &metav1.Time{Time: time.Unix(0, 0)}, []string{"a/b"}
	unbound.Spec.NodeName = ""
	for name, pod := range map[string]*corev1.Pod{
		"no claims": plain, "real node": onReal, "unknown node": onUnknown, "done": done, "deleted": deleted, "unbound": unbound,
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				w := newWorld(t, template("d", "")+configuration(faithful), newNode("n"), realNode("real"), pod, allocated("c", pod))
				w.wrote("")
				w.editPod("p", func(pod *corev1.Pod) { pod.Labels = map[string]string{"a": "b"} })
				w.settled()
				w.read("")
				w.failures()
			})
		})
	}
}

func TestNoConfigurationNoWrites(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		pod := newPod("p", "c")
		w := newWorld(t, "", newNode("n"), pod, allocated("c", pod))
		w.settled()
		w.read("")
		configtest.Replace(t, w.store, template("d", ""))
		w.wrote("prepare c, ready p")
		configtest.Replace(t, w.store, "")
		w.settled()
	})
}

// TestNodeComes: a Pod may be seen before its node.
func TestNodeComes(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		pod := newPod("p", "c")
		w := newWorld(t, template("d", ""), pod, allocated("c", pod))
		w.settled()
		w.Add(realNode("n"))
		w.settled()
		w.editNode("n", func(node *corev1.Node) { node.Annotations = newNode("n").Annotations })
		w.wrote("prepare c, ready p")
		w.settled()
	})
}

// TestNarrowSelection: claims on nodes that are never listed are someone else's,
// even with entries of kwok-dra.
func TestNarrowSelection(t *testing.T) {
	for name, test := range map[string]struct {
		managed lifecycle.ManagedNodes
		want    string
	}{
		"all nodes are listed": {lifecycle.ManagedNodes{}, "withdraw c"},
		"never listed":         {lifecycle.ManagedNodes{Single: "other"}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				pod := newPod("p", "c")
				w := newWorld(t, template("d", ""), newNode("n"), pod, allocated("c", pod))
				w.wrote("prepare c, ready p")
				w.stop()
				w.Remove(newNode("n"))
				w.managed = test.managed
				w.start()
				time.Sleep(time.Minute)
				w.wrote(test.want)
				w.settled()
			})
		})
	}
}

// TestPodOfTheSameName is another Pod, with claims of its own.
func TestPodOfTheSameName(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		pod := newPod("p", "c")
		w := newWorld(t, template("d", ""), newNode("n"), pod, allocated("c", pod))
		w.wrote("prepare c, ready p")
		again := newPod("p", "b")
		again.UID = "another"
		w.deallocate("c")
		w.Add(allocated("b", again))
		w.Remove(pod)
		w.Add(again)
		w.wrote("prepare b, ready p")
		require.Equal(t, 1, w.controller.observer.states.countPrepared())
		w.settled()
	})
}
