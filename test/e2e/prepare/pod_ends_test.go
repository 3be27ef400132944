package prepare

import (
	"fmt"

	"github.com/stretchr/testify/require"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kwok-dra/kwok-dra/test/e2e/harness"
)

func testDeletedWhilePreparing(h *harness.H) {
	h.Needs(36, "the scheduler panics when a Pod is deleted while its claim is being bound")
	h.Scene("deleted", "")
	h.CreateClaim("deleted", "mine", harness.ClaimSpec("deleted"))
	for i := range 10 {
		name := fmt.Sprint("pod-", i)
		h.CreatePod("deleted", harness.NewPod(name, "deleted", "mine"))
		h.Eventually(harness.Patience, func() string {
			if h.Claim("deleted", "mine").Status.Allocation == nil {
				return "not allocated"
			}
			return ""
		})
		h.DeletePod("deleted", name, 0)
		h.Gone("deleted", name)
	}
	h.Entries("deleted", "mine", 0)
	harness.Settled(h)
	require.Empty(h, h.Claim("deleted", "mine").Status.Devices)
}

func testForceDeleted(h *harness.H) {
	h.Scene("forced", "")
	h.CreateClaim("forced", "mine", harness.ClaimSpec("forced"))
	h.CreatePod("forced", harness.NewPod("pod", "forced", "mine"))
	h.Running("forced", "pod")
	h.Entries("forced", "mine", 1)
	h.DeletePod("forced", "pod", 0)
	h.Entries("forced", "mine", 0)
}

// testCompleted has a Pod of a Job, which kwok completes.
func testCompleted(h *harness.H) {
	h.Scene("job", "")
	pod := harness.NewPod("pod", "job", harness.FromTemplate)
	pod.Spec.RestartPolicy = corev1.RestartPolicyNever
	_, err := h.Client.BatchV1().Jobs("job").Create(h.Context(), &batchv1.Job{
		ObjectMeta: metav1.ObjectMeta{Name: "job"},
		Spec:       batchv1.JobSpec{Template: corev1.PodTemplateSpec{Spec: pod.Spec}},
	}, metav1.CreateOptions{})
	require.NoError(h, err)
	h.Eventually(harness.Patience, func() string {
		job, err := h.Client.BatchV1().Jobs("job").Get(h.Context(), "job", metav1.GetOptions{})
		require.NoError(h, err)
		claims, err := h.Client.ResourceV1().ResourceClaims("job").List(h.Context(), metav1.ListOptions{})
		require.NoError(h, err)
		if job.Status.Succeeded == 1 && len(claims.Items) == 0 {
			return ""
		}
		return fmt.Sprintf("job %+v, %d claims", job.Status, len(claims.Items))
	})
}

func testNodeDeleted(h *harness.H) {
	h.Scene("node-gone", "")
	h.CreateClaim("node-gone", "mine", harness.ClaimSpec("node-gone"))
	h.CreatePod("node-gone", harness.NewPod("pod", "node-gone", "mine"))
	h.Running("node-gone", "pod")
	h.Entries("node-gone", "mine", 1)
	h.DeleteNode("node-gone")
	h.Entries("node-gone", "mine", 0)
}
