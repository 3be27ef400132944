package story

import (
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// TestAnswers proves that drivers answer once for each device that has binding conditions, and keep what they said.
func TestAnswers(t *testing.T) {
	t.Parallel()
	claim := &resourcev1.ResourceClaim{}
	require.Nil(t, answerFor(claim, Ready), "it is not allocated")
	share := types.UID("share")
	claim.Status.Allocation = &resourcev1.AllocationResult{Devices: resourcev1.DeviceAllocationResult{Results: []resourcev1.DeviceRequestAllocationResult{
		{Driver: "d", Pool: "p", Device: "plain"},
		{Driver: "d", Pool: "p", Device: "first", BindingConditions: []string{"a", "b"}, BindingFailureConditions: []string{"x"}},
		{Driver: "d", Pool: "p", Device: "second", BindingConditions: []string{"a"}, BindingFailureConditions: []string{"x"}, ShareID: &share},
	}}}
	saidOf := func(statuses []resourcev1.AllocatedDeviceStatus) map[string][]string {
		said := map[string][]string{}
		for _, status := range statuses {
			for _, condition := range status.Conditions {
				require.Equal(t, metav1.ConditionTrue, condition.Status)
				said[status.Device] = append(said[status.Device], condition.Type)
			}
		}
		return said
	}
	require.Equal(t, map[string][]string{"first": {"x"}, "second": {"x"}}, saidOf(answerFor(claim, Failed)))
	statuses := answerFor(claim, Ready)
	require.Equal(t, map[string][]string{"first": {"a", "b"}, "second": {"a"}}, saidOf(statuses))
	require.Equal(t, "share", *statuses[1].ShareID)
	claim.Status.Devices = statuses[:1]
	require.Equal(t, map[string][]string{"first": {"a", "b"}, "second": {"x"}}, saidOf(answerFor(claim, Failed)))
	claim.Status.Devices = statuses
	require.Nil(t, answerFor(claim, Ready), "all is said")
}

// TestUndecided proves for which Pods a Player waits before it goes on.
func TestUndecided(t *testing.T) {
	t.Parallel()
	claim := resourcev1.ResourceClaim{ObjectMeta: metav1.ObjectMeta{Name: "claim"}}
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{UID: "pod"}, Status: corev1.PodStatus{Phase: corev1.PodPending}}
	pod.Spec.ResourceClaims = []corev1.PodResourceClaim{{Name: "c", ResourceClaimName: new("claim")}, {Name: "t", ResourceClaimTemplateName: new("template")}}
	require.False(t, isUndecided(pod, nil), "its claims do not exist")
	require.False(t, isUndecided(pod, []resourcev1.ResourceClaim{claim}), "the claim of the template does not exist")
	pod.Status.ResourceClaimStatuses = []corev1.PodResourceClaimStatus{{Name: "t"}}
	require.True(t, isUndecided(pod, []resourcev1.ResourceClaim{claim}))
	pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse}}
	require.False(t, isUndecided(pod, []resourcev1.ResourceClaim{claim}), "it does not fit")
	claim.Status.ReservedFor = []resourcev1.ResourceClaimConsumerReference{{Resource: "pods", UID: "pod"}}
	claim.Status.Allocation = &resourcev1.AllocationResult{Devices: resourcev1.DeviceAllocationResult{Results: []resourcev1.DeviceRequestAllocationResult{
		{Driver: "d", Pool: "p", Device: "first", BindingConditions: []string{"a"}},
	}}}
	require.False(t, isUndecided(pod, []resourcev1.ResourceClaim{claim}), "a driver is to answer")
	claim.Status.Devices = answerFor(&claim, Ready)
	require.True(t, isUndecided(pod, []resourcev1.ResourceClaim{claim}), "the driver has answered")
	pod.Spec.NodeName = "node"
	require.False(t, isUndecided(pod, []resourcev1.ResourceClaim{claim}), "it is bound")
}
