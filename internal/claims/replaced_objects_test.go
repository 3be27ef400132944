package claims

import (
	"testing"
	"testing/synctest"

	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kwok-dra/kwok-dra/internal/claims/plan"
)

// withoutClaims makes a Pod another one of its name that has no claims. A watch that was broken meanwhile tells of an update.
func withoutClaims(pod *corev1.Pod) {
	pod.UID = "another"
	pod.Spec.ResourceClaims, pod.Spec.Containers[0].Resources.Claims = nil, nil
	pod.Status = corev1.PodStatus{}
}

// TestPodReplacedByOneWithoutClaims: nothing is left of the Pod that had the name before.
func TestPodReplacedByOneWithoutClaims(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		w := prepared(t, "", false)
		states := w.controller.observer.states
		require.Equal(t, 1, states.countPrepared())
		w.editPod("p", withoutClaims)
		w.deallocate("c")
		w.settled()
		require.Zero(t, states.countPrepared())
		require.InDelta(t, 1, testutil.ToFloat64(states.metrics.unprepares), 0)
		_, known := states.pods.Load(types.NamespacedName{Namespace: "default", Name: "p"})
		require.False(t, known)
	})
}

// TestWaitingPodReplacedByOneWithoutClaims: the Pod that had the name before no longer waits.
func TestWaitingPodReplacedByOneWithoutClaims(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		w := newWorld(t, template("d", ""), newNode("n"), newPod("p", "c"))
		require.Len(t, w.controller.Waiting(), 1)
		w.editPod("p", withoutClaims)
		synctest.Wait()
		require.Empty(t, w.controller.Waiting())
		require.Equal(t, map[string]int{preparing: 0}, w.controller.observer.states.waitingPods())
	})
}

// TestReplacedPodWithdraws: the entries of a claim go after the Pod that was replaced, as after one that is deleted.
func TestReplacedPodWithdraws(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		w := prepared(t, "", false)
		w.editPod("p", withoutClaims)
		w.withdrawsAfter(plan.WithdrawDelay)
		w.settled()
	})
}

// TestReplacedClaimIsForgotten: nothing is left of the claim that had the name before.
func TestReplacedClaimIsForgotten(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		w := prepared(t, "", false)
		states := w.controller.observer.states
		w.editClaim("c", func(claim *resourcev1.ResourceClaim) {
			claim.UID, claim.ManagedFields, claim.Status.Devices = "another", nil, nil
		})
		synctest.Wait()
		w.editPod("p", func(pod *corev1.Pod) { pod.Labels = map[string]string{"edit": "yes"} })
		w.settled()
		require.Equal(t, 1, states.countPrepared())
		require.Empty(t, states.usersOf("uid-of-c"))
		_, known := states.claims.Load(types.UID("uid-of-c"))
		require.False(t, known)
	})
}
