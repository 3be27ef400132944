package claims

import (
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestClaimNameThatAClientDrops: a client that does not know a field of the status drops it when it updates the status
// (kubernetes#139772). The claim stays prepared as long as the Pod is there for which it is reserved, also after a restart.
func TestClaimNameThatAClientDrops(t *testing.T) {
	for name, test := range map[string]struct{ set, drop func(pod *corev1.Pod) }{
		"extended resources": {func(pod *corev1.Pod) {
			pod.Spec.ResourceClaims, pod.Spec.Containers[0].Resources.Claims = nil, nil
			pod.Status.ExtendedResourceClaimStatus = &corev1.PodExtendedResourceClaimStatus{ResourceClaimName: "c"}
		}, func(pod *corev1.Pod) { pod.Status.ExtendedResourceClaimStatus = nil }},
		"claim template": {func(pod *corev1.Pod) {
			pod.Spec.ResourceClaims[0].ResourceClaimName, pod.Spec.ResourceClaims[0].ResourceClaimTemplateName = nil, new("made")
			pod.Status.ResourceClaimStatuses = []corev1.PodResourceClaimStatus{{Name: pod.Spec.ResourceClaims[0].Name, ResourceClaimName: new("c")}}
		}, func(pod *corev1.Pod) { pod.Status.ResourceClaimStatuses = nil }},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				pod := newPod("p", "c")
				test.set(pod)
				claim := allocated("c", pod)
				claim.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(pod, corev1.SchemeGroupVersion.WithKind("Pod"))}
				w := newWorld(t, template("d", ""), newNode("n"), pod, claim)
				w.wrote("prepare c, ready p")
				w.editPod("p", test.drop)
				edits := 0
				edit := func() {
					synctest.Wait()
					edits++
					w.editClaim("c", func(claim *resourcev1.ResourceClaim) { claim.Labels = map[string]string{"edit": strconv.Itoa(edits)} })
					w.editPod("p", func(pod *corev1.Pod) { pod.Labels = map[string]string{"edit": strconv.Itoa(edits)} })
					w.settled()
				}
				edit()
				require.Equal(t, 1, w.controller.observer.states.countPrepared())
				w.stop()
				w.start()
				edit()
				require.Equal(t, []string{"d/n/gpu-0"}, w.shown("c"))
				w.Remove(newPod("p"))
				time.Sleep(time.Minute)
				w.wrote("withdraw c")
				require.Zero(t, w.controller.observer.states.countPrepared())
			})
		})
	}
}

// TestPodThatNamesNoClaimEnds: the claim that was reserved for it is withdrawn, though no event of the Pod tells of it.
func TestPodThatNamesNoClaimEnds(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		w := prepared(t, "", false)
		w.stop()
		w.editPod("p", func(pod *corev1.Pod) { pod.Spec.ResourceClaims, pod.Spec.Containers[0].Resources.Claims = nil, nil })
		w.start()
		w.settled()
		w.editPod("p", setPhase(corev1.PodSucceeded))
		time.Sleep(time.Minute)
		w.wrote("withdraw c")
		require.Empty(t, w.shown("c"))
	})
}
