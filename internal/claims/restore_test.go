package claims

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	clienttesting "k8s.io/client-go/testing"

	"github.com/kwok-dra/kwok-dra/internal/controller/expectations"
	"github.com/kwok-dra/kwok-dra/internal/testing/apitest"
)

// loseWrites has the API server answer to writes, each once, with versions that it never has again: etcd is restored from a
// backup from before them.
func (w *world) loseWrites(writes ...string) {
	serve := w.ReactionChain[0]
	w.PrependReactor("patch", "*", func(action clienttesting.Action) (bool, runtime.Object, error) {
		i := slices.Index(writes, operation(action))
		if i < 0 {
			return false, nil, nil
		}
		name := action.(clienttesting.PatchAction).GetName()
		pod, claim := w.pod("p").DeepCopy(), w.claim("c").DeepCopy()
		handled, answer, err := serve.React(action)
		if err != nil { // a conflict, since what was answered before was lost
			return handled, answer, err
		}
		writes = slices.Delete(writes, i, i+1)
		if name == "p" {
			apitest.Edit(w.Server, "default", name, func(now *corev1.Pod) { now.Status = pod.Status })
		} else {
			apitest.Edit(w.Server, "default", name, func(now *resourcev1.ResourceClaim) { now.Status, now.ManagedFields = claim.Status, nil })
		}
		answer = answer.DeepCopyObject()
		if accessor, accessErr := meta.Accessor(answer); accessErr == nil {
			accessor.SetResourceVersion("999999")
		}
		return handled, answer, err
	})
}

// TestRestoredBackup: what was written before etcd is restored from an older backup is written again, though all versions are
// older then than those that were answered.
func TestRestoredBackup(t *testing.T) {
	for name, lost := range map[string][]string{
		"pod":               {"ready p"},
		"claim and pod":     {"prepare c", "ready p"},
		"waiting and ready": {"waiting p", "ready p"},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				pod := newPod("p", "c")
				w := idleWorld(t, template("d", "")+configuration(faithful), newNode("n"), pod, allocated("c", pod))
				w.loseWrites(lost...)
				w.start()
				time.Sleep(4 * expectations.Limit)
				synctest.Wait()
				require.True(t, w.ready("p"))
				require.Equal(t, []string{"d/n/gpu-0"}, w.shown("c"))
				w.takeCalls(false)
				w.settled()
			})
		})
	}
}

// TestUnpreparedPodOfBackup: a Pod whose end was written is unprepared again.
func TestUnpreparedPodOfBackup(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		w := prepared(t, configuration(faithful), false)
		w.loseWrites("unprepared p")
		w.editPod("p", setPhase(corev1.PodSucceeded))
		time.Sleep(2 * expectations.Limit)
		synctest.Wait()
		require.False(t, w.ready("p"))
		w.takeCalls(false)
		w.settled()
	})
}

// TestRestoredPodIsSeenFirst: after a restore of etcd the cache still has the claim as it was prepared, when the Pod is
// already as it was before.
func TestRestoredPodIsSeenFirst(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		pod := newPod("p", "c")
		w := idleWorld(t, template("d", ""), newNode("n"), pod, allocated("c", pod))
		before := []runtime.Object{w.pod("p").DeepCopy(), w.claim("c").DeepCopy()}
		w.start()
		w.wrote("prepare c, ready p")
		w.Lags["resourceclaims"] = 20 * time.Second
		for _, object := range before {
			w.Restore(object)
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		require.Equal(t, []string{"d/n/gpu-0"}, w.shown("c"))
		require.True(t, w.ready("p"))
		w.takeCalls(false)
		time.Sleep(time.Hour)
		w.settled()
	})
}
