package e2e

import (
	"fmt"

	"github.com/stretchr/testify/require"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func testDeletedWhilePreparing(h *harness) {
	h.needs(36, "the scheduler panics when a Pod is deleted while its claim is being bound")
	h.scene("deleted", "")
	h.createClaim("deleted", "mine", claimSpec("deleted"))
	for i := range 10 {
		name := fmt.Sprint("pod-", i)
		h.createPod("deleted", newPod(name, "deleted", "mine"))
		h.eventually(patience, func() string {
			if h.claim("deleted", "mine").Status.Allocation == nil {
				return "not allocated"
			}
			return ""
		})
		h.deletePod("deleted", name, 0)
		h.gone("deleted", name)
	}
	h.entries("deleted", "mine", 0)
	settled(h)
	require.Empty(h, h.claim("deleted", "mine").Status.Devices)
}

func testForceDeleted(h *harness) {
	h.scene("forced", "")
	h.createClaim("forced", "mine", claimSpec("forced"))
	h.createPod("forced", newPod("pod", "forced", "mine"))
	h.running("forced", "pod")
	h.entries("forced", "mine", 1)
	h.deletePod("forced", "pod", 0)
	h.entries("forced", "mine", 0)
}

// testCompleted has a Pod of a Job, which kwok completes.
func testCompleted(h *harness) {
	h.scene("job", "")
	pod := newPod("pod", "job", fromTemplate)
	pod.Spec.RestartPolicy = corev1.RestartPolicyNever
	_, err := h.client.BatchV1().Jobs("job").Create(h.Context(), &batchv1.Job{
		ObjectMeta: metav1.ObjectMeta{Name: "job"},
		Spec:       batchv1.JobSpec{Template: corev1.PodTemplateSpec{Spec: pod.Spec}},
	}, metav1.CreateOptions{})
	require.NoError(h, err)
	h.eventually(patience, func() string {
		job, err := h.client.BatchV1().Jobs("job").Get(h.Context(), "job", metav1.GetOptions{})
		require.NoError(h, err)
		claims, err := h.client.ResourceV1().ResourceClaims("job").List(h.Context(), metav1.ListOptions{})
		require.NoError(h, err)
		if job.Status.Succeeded == 1 && len(claims.Items) == 0 {
			return ""
		}
		return fmt.Sprintf("job %+v, %d claims", job.Status, len(claims.Items))
	})
}

func testNodeDeleted(h *harness) {
	h.scene("node-gone", "")
	h.createClaim("node-gone", "mine", claimSpec("node-gone"))
	h.createPod("node-gone", newPod("pod", "node-gone", "mine"))
	h.running("node-gone", "pod")
	h.entries("node-gone", "mine", 1)
	h.deleteNode("node-gone")
	h.entries("node-gone", "mine", 0)
}
