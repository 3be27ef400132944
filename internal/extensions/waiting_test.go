package extensions

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestDescribeUnscheduled(t *testing.T) {
	t.Parallel()
	created := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	pod := &corev1.Pod{}
	pod.Namespace, pod.Name, pod.CreationTimestamp = "n", "p", metav1.NewTime(created)
	waits := describeUnscheduled(pod)
	require.Equal(t, "no scheduler has tried it yet", waits.Reason)
	require.Equal(t, created, waits.Since)
	require.Empty(t, waits.Owner)

	pod.OwnerReferences = []metav1.OwnerReference{{Kind: "Other", Name: "o"}, {Kind: "Job", Name: "j", Controller: new(true)}}
	pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: "SchedulingGated"}}
	waits = describeUnscheduled(pod)
	require.Equal(t, "SchedulingGated", waits.Reason)
	require.Equal(t, "Job/j", waits.Owner)
	pod.Status.Conditions[0].Message = "0/1 nodes are available"
	require.Equal(t, "0/1 nodes are available", describeUnscheduled(pod).Reason)
}

func TestScheduledAt(t *testing.T) {
	t.Parallel()
	created, bound := metav1.NewTime(time.Unix(1, 0)), metav1.NewTime(time.Unix(2, 0))
	pod := &corev1.Pod{}
	pod.CreationTimestamp = created
	require.Equal(t, created.Time, scheduledAt(pod), "whoever binds a Pod need not say when")
	pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionTrue, LastTransitionTime: bound}}
	require.Equal(t, bound.Time, scheduledAt(pod))
}
