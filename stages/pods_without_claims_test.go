package stages_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// kwokGeneral are kwok's own general Stages for Pods.
func kwokGeneral(t *testing.T) []string {
	t.Helper()
	return kwokStages(t, "pod/general", "pod-create", "pod-init-container-running", "pod-init-container-completed",
		"pod-ready", "pod-complete", "pod-delete")
}

// plainPods are Pods without claims.
var plainPods = map[string]*corev1.Pod{
	"plain":             newPod(),
	"init container":    newPod(withInitContainer),
	"job":               newPod(ofJob),
	"job and container": newPod(ofJob, withInitContainer),
	"label":             newPod(withLabel(prepareFail), withLabel(unprepareFail)),
	"finalizer":         newPod(func(pod *corev1.Pod) { pod.Finalizers = []string{"example.com/keep"} }),
	"host network":      newPod(func(pod *corev1.Pod) { pod.Spec.HostNetwork = true }),
	"start time":        newPod(func(pod *corev1.Pod) { pod.Status.StartTime = &metav1.Time{Time: goldenNow.Add(-time.Hour)} }),
	"reasons": newPod(func(pod *corev1.Pod) {
		pod.Status.Conditions = append(pod.Status.Conditions, corev1.PodCondition{
			Type: corev1.PodReady, Status: corev1.ConditionFalse,
			Reason: "Why", Message: "not",
		}, corev1.PodCondition{Type: corev1.PodReadyToStartContainers, Status: corev1.ConditionFalse})
	}),
	"gate": newPod(func(pod *corev1.Pod) {
		pod.Spec.ReadinessGates = []corev1.PodReadinessGate{{ConditionType: "example.com/gate"}}
	}),
	"sidecar container": newPod(withInitContainer, func(pod *corev1.Pod) {
		always := corev1.ContainerRestartPolicyAlways
		pod.Spec.InitContainers[0].RestartPolicy = &always
	}),
	"annotations": newPod(ofJob, withInitContainer, func(pod *corev1.Pod) {
		for _, stage := range []string{"pod-create", "pod-init-container-running", "pod-init-container-completed", ready, complete, deletion} {
			metav1.SetMetaDataAnnotation(&pod.ObjectMeta, stage+".stage.kwok.x-k8s.io/delay", "7s")
			metav1.SetMetaDataAnnotation(&pod.ObjectMeta, stage+".stage.kwok.x-k8s.io/jitter-delay", "8s")
			metav1.SetMetaDataAnnotation(&pod.ObjectMeta, stage+".stage.kwok.x-k8s.io/weight", "9")
		}
	}),
}

// A Pod without claims is played as by kwok's own Stages: at every step of its
// life the same Stages may be played, with the same weights and delays, and write
// the same.
func TestWithoutClaimsAsKwok(t *testing.T) {
	t.Parallel()
	for name, pod := range plainPods {
		t.Run("general/"+name, func(t *testing.T) {
			t.Parallel()
			requireAsKwok(t, pod, [][]string{kwokGeneral(t)}, [][]string{podGeneralStages, podChaosStages})
		})
		t.Run("fast/"+name, func(t *testing.T) {
			t.Parallel()
			requireAsKwok(t, pod, [][]string{kwokPodReady, kwokPodFast}, [][]string{podFastStages, kwokPodFast, podChaosStages})
		})
	}
}

func requireAsKwok(t *testing.T, pod *corev1.Pod, kwok, ours [][]string) {
	t.Helper()
	for range 10 {
		deleted := pod.DeepCopy()
		deleted.DeletionTimestamp = &metav1.Time{Time: goldenNow.Add(30 * time.Second)}
		require.Equal(t, possibleOn(t, deleted, kwok08, kwok...), possibleOn(t, deleted, nil, ours...))

		want := possibleOn(t, pod, kwok08, kwok...)
		require.Equal(t, want, possibleOn(t, pod, nil, ours...))
		if len(want.Stages) == 0 {
			require.NotEqual(t, corev1.PodPending, pod.Status.Phase)
			return
		}
		before, err := json.Marshal(pod)
		require.NoError(t, err)
		after := &corev1.Pod{}
		patched(t, before, want.Stages[0].Patch, after)
		pod = after
	}
	t.Fatal("it never ends")
}
