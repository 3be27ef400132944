package devices

import (
	"fmt"

	"github.com/stretchr/testify/require"
	resourcev1alpha3 "k8s.io/api/resource/v1alpha3"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kwok-dra/kwok-dra/test/e2e/harness"
)

// testPoolStatus asks Kubernetes for the status of pools, which it counts from their
// slices and claims.
func testPoolStatus(h *harness.H) {
	const driver = "counts.example.com"
	h.Configure("counts", harness.Template("counts", driver, "counts", harness.GPUs(8)))
	h.Namespace("counts", driver)
	for _, node := range []string{"counts", "counts-too"} {
		hostNode(h, node, "counts")
		h.Published(node, driver, 8)
	}
	untouched := poolOf(h, driver, "counts-too", 0, 0)
	poolsAre(h, resourcev1alpha3.ResourcePoolStatusRequestSpec{Driver: driver}, poolOf(h, driver, "counts", 0, 0), untouched)

	for i := range 3 {
		pod := h.CreatePod("counts", onHost(fmt.Sprint("pod-", i), "counts", "counts", harness.FromTemplate))
		h.Running("counts", pod.Name)
	}
	poolsAre(h, resourcev1alpha3.ResourcePoolStatusRequestSpec{Driver: driver}, poolOf(h, driver, "counts", 3, 0), untouched)
	poolsAre(h, resourcev1alpha3.ResourcePoolStatusRequestSpec{Driver: driver, PoolName: new("counts-too")}, untouched)

	taint(h, "counts", "gpu-6:example.com/bad:NoSchedule,gpu-7:example.com/bad:NoExecute")
	unavailable := int32(2)
	if harness.KubernetesMinor() < 37 {
		unavailable = 0 // it does not look at taints
	}
	poolsAre(h, resourcev1alpha3.ResourcePoolStatusRequestSpec{Driver: driver, PoolName: new("counts")}, poolOf(h, driver, "counts", 3, unavailable))

	h.DeletePod("counts", "pod-0", 0)
	poolsAre(h, resourcev1alpha3.ResourcePoolStatusRequestSpec{Driver: driver, PoolName: new("counts")}, poolOf(h, driver, "counts", 2, unavailable))
	h.DeleteNode("counts-too")
	poolsAre(h, resourcev1alpha3.ResourcePoolStatusRequestSpec{Driver: driver, PoolName: new("counts-too")})
}

// poolOf is what the status of a node's pool of eight devices is to be.
func poolOf(h *harness.H, driver, node string, allocated, unavailable int32) resourcev1alpha3.PoolStatus {
	h.Helper()
	slices := h.SlicesOf(node)
	require.Len(h, slices, 1)
	return resourcev1alpha3.PoolStatus{
		Driver: driver, PoolName: node, NodeName: &node,
		Generation: slices[0].Spec.Pool.Generation, ResourceSliceCount: new(int32(1)),
		TotalDevices: new(int32(8)), AllocatedDevices: &allocated, UnavailableDevices: &unavailable,
		AvailableDevices: new(8 - allocated - unavailable),
	}
}

// poolsAre waits until a request is answered with the pools. A request is answered once, by
// what the controller has seen until then, so it is made again.
func poolsAre(h *harness.H, spec resourcev1alpha3.ResourcePoolStatusRequestSpec, want ...resourcev1alpha3.PoolStatus) {
	h.Helper()
	requests := h.Client.ResourceV1alpha3().ResourcePoolStatusRequests()
	h.Eventually(harness.Patience, func() string {
		request, err := requests.Create(h.Context(), &resourcev1alpha3.ResourcePoolStatusRequest{
			ObjectMeta: metav1.ObjectMeta{GenerateName: "status-"}, Spec: spec,
		}, metav1.CreateOptions{})
		require.NoError(h, err)
		h.Eventually(harness.Patience, func() string {
			request, err = requests.Get(h.Context(), request.Name, metav1.GetOptions{})
			require.NoError(h, err)
			if request.Status == nil {
				return "no status of " + request.Name
			}
			return ""
		})
		if apiequality.Semantic.DeepEqual(want, request.Status.Pools) && int(*request.Status.PoolCount) == len(want) {
			return ""
		}
		return fmt.Sprintf("the pools are %+v, want %+v", request.Status, want)
	})
}
