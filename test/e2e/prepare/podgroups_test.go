package prepare

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kwok-dra/kwok-dra/test/cluster"
	"github.com/kwok-dra/kwok-dra/test/e2e/harness"
)

// podGroup has a claim from a template, and one by its name.
const podGroup = `
apiVersion: %s
kind: PodGroup
metadata: {name: members, namespace: group}
spec:
  schedulingPolicy: {basic: {}}
  resourceClaims:
  - {name: claim-0, resourceClaimTemplateName: group}
  - {name: claim-1, resourceClaimName: named}
`

// TestPodGroup has Pods that share the claims of their PodGroup, which alone the claims are
// reserved for: they are prepared once, and for as long as there is a Pod.
func TestPodGroup(t *testing.T) {
	t.Parallel()
	if minor := harness.KubernetesMinor(); minor < 36 {
		t.Skipf("Kubernetes 1.%d: has no claims of PodGroups", minor)
	}
	api := "scheduling.k8s.io/v1beta1"
	if harness.KubernetesMinor() == 36 {
		api = "scheduling.k8s.io/v1alpha2"
	}
	h := harness.New(t, cluster.Options{
		Config: harness.FastStages(t), Audit: true,
		FeatureGates:  map[string]bool{"DRAWorkloadResourceClaims": true, "GenericWorkload": true},
		RuntimeConfig: map[string]bool{api: true},
	})
	h.Sidecar()
	h.Scene("group", "")
	h.CreateClaim("group", "named", harness.ClaimSpec("group"))
	h.Kubectl(fmt.Sprintf(podGroup, api), "apply", "-f", "-")

	create := func(name string) {
		pod := harness.NewPod(name, "group", harness.FromTemplate, "named")
		pod.Spec.SchedulingGroup = &corev1.PodSchedulingGroup{PodGroupName: new("members")}
		h.CreatePod("group", pod)
	}
	for i := range 3 {
		create(fmt.Sprint("pod-", i))
	}
	generated := sharedClaim(h)
	claims := []string{generated, "named"}
	for _, claim := range claims {
		reserved := h.Entries("group", claim, 1).Status.ReservedFor
		require.Len(t, reserved, 1)
		require.Equal(t, resourcev1.ResourceClaimConsumerReference{
			APIGroup: "scheduling.k8s.io", Resource: "podgroups", Name: "members", UID: reserved[0].UID,
		}, reserved[0])
	}

	h.DeletePod("group", "pod-0", 0)
	h.DeletePod("group", "pod-1", 0)
	h.Gone("group", "pod-0")
	h.Gone("group", "pod-1")
	create("pod-3")
	require.True(t, harness.IsReady(h.Running("group", "pod-3")))
	for _, claim := range claims {
		require.Len(t, h.Claim("group", claim).Status.Devices, 1, "a Pod has it all the time")
		require.Len(t, h.WritesTo("resourceclaims", claim), 1, "written once, for all Pods")
	}

	h.DeletePod("group", "pod-2", 0)
	h.DeletePod("group", "pod-3", 0)
	for _, claim := range claims {
		require.NotNil(t, h.Entries("group", claim, 0).Status.Allocation, "the PodGroup has it still")
	}
	create("pod-4")
	require.True(t, harness.IsReady(h.Running("group", "pod-4")))
	for _, claim := range claims {
		h.Entries("group", claim, 1)
	}
	h.DeletePod("group", "pod-4", 0)
	h.Kubectl("", "delete", "podgroup", "members", "--namespace", "group")
	released(h, generated)
}

// sharedClaim waits until the Pods run, and returns the name of the claim that was made for
// their PodGroup.
func sharedClaim(h *harness.H) string {
	h.Helper()
	var names []string
	for i := range 3 {
		pod := h.Running("group", fmt.Sprint("pod-", i))
		require.True(h, harness.IsReady(pod))
		names = append(names, *pod.Status.ResourceClaimStatuses[0].ResourceClaimName)
	}
	require.Equal(h, []string{names[0], names[0], names[0]}, names)
	return names[0]
}

// released waits until nothing is left of what a PodGroup had.
func released(h *harness.H, generated string) {
	h.Helper()
	h.Eventually(harness.Patience, func() string {
		if named := h.Claim("group", "named"); named.Status.Allocation != nil || named.Status.Devices != nil {
			return fmt.Sprintf("claim named is not released: %+v", named.Status)
		}
		if _, err := h.Client.ResourceV1().ResourceClaims("group").Get(h.Context(), generated, metav1.GetOptions{}); !apierrors.IsNotFound(err) {
			return "the claim of the PodGroup is not gone"
		}
		return ""
	})
}
