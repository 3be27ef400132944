package status

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/kwok-dra/kwok-dra/internal/dractl/output"
	"github.com/kwok-dra/kwok-dra/internal/dractl/steps"
)

// TestOrder has a claim that is made for a Pod and prepared within a second.
func TestOrder(t *testing.T) {
	t.Parallel()
	made := claim("made", "a", []string{"gpu-0"}, "train")
	made.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "Pod", Name: "train", UID: types.UID("pod-train"), Controller: new(true)}}
	made.ManagedFields[0].Time = new(at(0))
	condition := func(name corev1.PodConditionType, second int) corev1.PodCondition {
		return corev1.PodCondition{Type: name, Status: corev1.ConditionTrue, LastTransitionTime: at(second)}
	}
	train := pod("train", "a", "made", condition(corev1.PodReady, 1), condition(corev1.ContainersReady, 1), condition(corev1.PodInitialized, 1),
		condition(corev1.PodReadyToStartContainers, 1), condition(corev1.PodScheduled, 0), condition("example.com/Own", 1))
	train.CreationTimestamp = at(0)
	train.Status.InitContainerStatuses = []corev1.ContainerStatus{{Name: "setup", State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{
		StartedAt: at(1), FinishedAt: at(1), Reason: "Completed",
	}}}}
	train.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "main", State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: at(1)}}}}
	client := fake.NewClientset(made, train,
		event("train", "Scheduled", 420*time.Millisecond), event("train", "FailedScheduling", 90*time.Millisecond), event("train", "Pulled", time.Second+5*time.Millisecond))
	listed := pathIn(t, client, "made")
	var out strings.Builder
	require.NoError(t, steps.StepTable(listed).Print(&out, output.Table))
	require.Equal(t, `TIME                       AFTER   OBJECT      STEP                             DETAIL
2026-01-02T03:04:05Z       0s      Pod train   created                          <none>
2026-01-02T03:04:05Z       0s      claim       created                          gpu wants 1 of gpu
2026-01-02T03:04:05.090Z   0s      Pod train   FailedScheduling                 <none>
2026-01-02T03:04:05Z       0s      claim       allocated                        gpu=gpu.example.com/a/gpu-0
2026-01-02T03:04:05Z       0s      claim       reserved                         for pods/train
2026-01-02T03:04:05Z       0s      Pod train   PodScheduled=True                on node a
2026-01-02T03:04:05.420Z   0s      Pod train   Scheduled                        <none>
2026-01-02T03:04:06.005Z   1s      Pod train   Pulled                           <none>
2026-01-02T03:04:06Z       1s      claim       prepared                         for pods/train
2026-01-02T03:04:06Z       1s      Pod train   PodReadyToStartContainers=True   <none>
2026-01-02T03:04:06Z       1s      Pod train   started                          container setup
2026-01-02T03:04:06Z       1s      Pod train   ended                            container setup: exit code 0: Completed
2026-01-02T03:04:06Z       1s      Pod train   Initialized=True                 <none>
2026-01-02T03:04:06Z       1s      Pod train   started                          container main
2026-01-02T03:04:06Z       1s      Pod train   ContainersReady=True             <none>
2026-01-02T03:04:06Z       1s      Pod train   Ready=True                       <none>
2026-01-02T03:04:06Z       1s      Pod train   example.com/Own=True             <none>
`, out.String())

	out.Reset()
	require.NoError(t, output.Value(&out, output.JSON, listed))
	require.Contains(t, out.String(), `"time": "2026-01-02T03:04:05Z"`)
	require.Contains(t, out.String(), `"time": "2026-01-02T03:04:05.42Z"`)
}

func event(pod, reason string, after time.Duration) *corev1.Event {
	return &corev1.Event{
		ObjectMeta:     metav1.ObjectMeta{Namespace: "default", Name: pod + "-" + reason},
		InvolvedObject: corev1.ObjectReference{Name: pod, UID: types.UID("pod-" + pod)},
		Reason:         reason, EventTime: metav1.NewMicroTime(start.Add(after)),
	}
}
