package claims

import (
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clienttesting "k8s.io/client-go/testing"
)

// TestWatchThatLags: a claim that the cache does not have is read before a
// failure is declared.
func TestWatchThatLags(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		w := newWorld(t, template("d", ""), newNode("n"))
		w.Lags["resourceclaims"] = time.Minute
		pod := newPod("p", "c")
		w.Add(allocated("c", pod))
		w.Add(pod)

		w.wrote("prepare c, ready p")
		w.read("get resourceclaims c")
		w.settled()
		w.failures()
	})
}

// TestPodWatchThatLags: what the cache says of a Pod is not acted upon until it
// has seen the last write.
func TestPodWatchThatLags(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		pod := newPod("p", "c")
		w := idleWorld(t, template("d", "")+configuration(faithful), newNode("n"), pod, allocated("c", pod))
		w.Lags["pods"] = time.Minute
		w.Refuse(failing(1, "prepare c", errBroken))
		w.start()
		time.Sleep(10 * time.Minute)
		w.wrote("waiting p, prepare c, prepare c, ready p")
	})
}

// TestPodsThatAreNotBound are not even in the cache: there are many.
func TestPodsThatAreNotBound(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		pod := newPod("p", "c")
		pod.Spec.NodeName = ""
		w := newWorld(t, template("d", ""), newNode("n"), pod)
		require.Empty(t, slices.Collect(w.controller.observer.Caches.Pods.All()))
	})
}

// TestSecondPodWhileTheWatchLags finds by the answer to the first one's write
// that the claim is prepared.
func TestSecondPodWhileTheWatchLags(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		p, q := newPod("p", "c"), newPod("q", "c")
		w := newWorld(t, template("d", ""), newNode("n"), allocated("c", p, q))
		w.Lags["resourceclaims"] = time.Minute
		w.Add(p)
		w.wrote("prepare c, ready p")
		w.Add(q)
		w.wrote("ready q")
		w.read("")
		w.settled()
	})
}

// TestPodThatIsNotSeen: another kwok-dra has prepared the claim for a Pod that
// the cache does not have for a while. Its entries are not withdrawn.
func TestPodThatIsNotSeen(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		p, q := newPod("p", "c"), newPod("q", "c")
		w := newWorld(t, template("d", ""), newNode("n"), allocated("c", p, q), p)
		w.wrote("prepare c, ready p")
		w.Remove(p)
		w.wrote("")
		w.Lags["pods"] = time.Minute
		q.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReadyToStartContainers, Status: corev1.ConditionTrue}}
		w.Add(q)
		time.Sleep(10 * time.Minute)
		w.wrote("")
		require.NotEmpty(t, w.shown("c"))
	})
}

// outdated makes a world whose cache does not see that the claim c has changed, and adds
// the Pod p, which uses it, when all else is set up.
func outdated(t *testing.T, setUp ...func(w *world)) *world {
	t.Helper()
	pod := newPod("p", "c")
	w := newWorld(t, template("d", ""), newNode("n"), allocated("c", pod))
	w.Lags["resourceclaims"] = time.Hour
	w.reserve("c", newPod("q", "c"))
	synctest.Wait()
	for _, more := range setUp {
		more(w)
	}
	w.Add(pod)
	return w
}

// TestConflictWhileTheWatchLags: after a conflict the claim is read, for the cache may
// be late for long.
func TestConflictWhileTheWatchLags(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		w := outdated(t)
		time.Sleep(time.Second)
		require.True(t, w.ready("p"))
		w.read("get resourceclaims c")
	})
}

// TestConflictsOneAfterTheOther: where another one writes a claim all the time, only a
// version that was just read can be written.
func TestConflictsOneAfterTheOther(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		w := outdated(t)
		for range 60 {
			time.Sleep(16 * time.Millisecond)
			w.reserve("c", newPod("q", "c"))
		}
		require.True(t, w.ready("p"))
	})
}

// TestConflictsWithoutEnd: a claim that someone writes after each look at it is written in the end,
// by a patch or, where only that can, by an update, which looks itself.
func TestConflictsWithoutEnd(t *testing.T) {
	for name, test := range map[string]struct {
		update bool
		tried  string
	}{
		"patch":  {false, "prepare c, "},
		"update": {true, "prepare c, update resourceclaims c, "},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				w := outdated(t, func(w *world) {
					if test.update {
						w.editClaim("c", withUnsortedParameters)
					}
					serve := w.ReactionChain[0]
					w.PrependReactor("get", "resourceclaims", func(action clienttesting.Action) (bool, runtime.Object, error) {
						if test.update {
							w.reserve("c", newPod("q", "c"))
							return serve.React(action)
						}
						handled, object, err := serve.React(action)
						w.reserve("c", newPod("q", "c"))
						return handled, object, err
					})
				})
				w.wrote("prepare c, " + strings.Repeat(test.tried, conflictAttempts-1) + "ready p")
				require.Len(t, w.shown("c"), 1)
				w.settled()
			})
		})
	}
}
