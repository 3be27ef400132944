package claims

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"github.com/kwok-dra/kwok-dra/internal/claims/plan"
)

// startLate starts a second replica that acts for the same nodes, as one that does not
// know yet that it has lost its lease, and whose caches are late.
func (w *world) startLate() map[string]time.Duration {
	w.t.Helper()
	late := &world{server: w.server, t: w.t, store: w.store, events: &eventLog{}}
	prompt, lags := w.Lags, map[string]time.Duration{}
	w.Lags = lags
	late.start()
	w.Lags = prompt
	return lags
}

// TestLateReplicaWithdrawsNothing from a claim that a Pod uses which it has not seen.
func TestLateReplicaWithdrawsNothing(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		p, q := newPod("p", "c"), newPod("q", "c")
		w := newWorld(t, template("d", ""), newNode("n"), p, allocated("c", p))
		late := w.startLate()
		synctest.Wait()
		require.True(t, w.ready("p"))
		w.set(late, time.Hour, 0)

		w.reserve("c", q)
		w.unreserve("c", p.UID)
		w.Remove(p)
		w.Add(q)
		time.Sleep(2 * plan.WithdrawDelay)
		synctest.Wait()
		require.True(t, w.ready("q"))
		require.Equal(t, []string{"d/n/gpu-0"}, w.shown("c"))
		time.Sleep(24 * time.Hour)
		synctest.Wait()
		require.Equal(t, []string{"d/n/gpu-0"}, w.shown("c"))
		w.takeCalls(false)
		w.settled()
	})
}

// TestLateReplicaStopsNoPod: it sees a Pod that waits, while that runs already.
func TestLateReplicaStopsNoPod(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		w := newWorld(t, template("d", "")+configuration(faithful), newNode("n"))
		w.set(w.startLate(), 0, time.Minute)
		pod := newPod("p", "c")
		w.Add(allocated("c", pod))
		w.Add(pod)
		synctest.Wait()
		require.True(t, w.ready("p"))
		w.editPod("p", func(pod *corev1.Pod) { pod.Status.Phase = corev1.PodRunning })
		time.Sleep(24 * time.Hour)
		synctest.Wait()
		require.True(t, w.ready("p"))
		require.Equal(t, corev1.PodRunning, w.pod("p").Status.Phase)
		w.takeCalls(false)
		w.settled()
	})
}

// set sets how late a replica's caches are from now on.
func (w *world) set(lags map[string]time.Duration, claims, pods time.Duration) {
	w.Mu.Lock()
	defer w.Mu.Unlock()
	lags["resourceclaims"], lags["pods"] = claims, pods
}
