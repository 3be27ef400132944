package history

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// storyOf is that of a claim with one device for a Pod.
func storyOf(pod *corev1.Pod) *Story {
	return &Story{
		Claim: &resourcev1.ResourceClaim{
			ObjectMeta: metav1.ObjectMeta{Name: "gpus", UID: "claim"},
			Status: resourcev1.ResourceClaimStatus{
				Allocation: &resourcev1.AllocationResult{Devices: resourcev1.DeviceAllocationResult{Results: []resourcev1.DeviceRequestAllocationResult{{
					Request: "gpu", Driver: "gpu.example.com", Pool: "a", Device: "gpu-0",
				}}}},
				ReservedFor: []resourcev1.ResourceClaimConsumerReference{{Resource: "pods", Name: pod.Name, UID: pod.UID}},
			},
		},
		Pods: map[string]*corev1.Pod{pod.Name: pod},
	}
}

func stepsCalled(steps []Step, name string) []Step {
	var all []Step
	for _, step := range steps {
		if step.What == name {
			all = append(all, step)
		}
	}
	return all
}

// TestUnprepared: a Pod has ended, and its sandbox is gone since. One whose containers never ran tells nothing.
func TestUnprepared(t *testing.T) {
	t.Parallel()
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "train", UID: types.UID("pod")}}
	pod.Status.Phase = corev1.PodSucceeded
	pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReadyToStartContainers, Status: corev1.ConditionFalse, LastTransitionTime: metav1.NewTime(start)}}
	require.Empty(t, stepsCalled(storyOf(pod).ListSteps(), "unprepared"))

	pod.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "main", State: corev1.ContainerState{
		Terminated: &corev1.ContainerStateTerminated{StartedAt: metav1.NewTime(start.Add(-time.Minute)), FinishedAt: metav1.NewTime(start)},
	}}}
	steps := stepsCalled(storyOf(pod).ListSteps(), "unprepared")
	require.Len(t, steps, 1)
	require.Equal(t, start, *steps[0].Time)
	require.Equal(t, "for pods/train, which has ended", steps[0].Detail)
}

// TestBindingConditions: a condition that the driver has not set is a step that is still to come.
func TestBindingConditions(t *testing.T) {
	t.Parallel()
	story := storyOf(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "train", UID: "pod"}})
	result := &story.Claim.Status.Allocation.Devices.Results[0]
	result.BindingConditions = []string{"attached", "powered"}
	story.Claim.Status.Devices = []resourcev1.AllocatedDeviceStatus{{
		Driver: result.Driver, Pool: result.Pool, Device: result.Device,
		Conditions: []metav1.Condition{{Type: "attached", Status: metav1.ConditionTrue, LastTransitionTime: metav1.NewTime(start)}},
	}}
	steps := story.ListSteps()
	require.Len(t, stepsCalled(steps, "attached=True"), 1)
	waits := stepsCalled(steps, "waits for powered")
	require.Len(t, waits, 1)
	require.Nil(t, waits[0].Time)
	require.Equal(t, "device gpu.example.com/a/gpu-0", waits[0].Object)
	require.Empty(t, stepsCalled(steps, "waits for attached"))
}
