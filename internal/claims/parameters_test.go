package claims

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/kwok-dra/kwok-dra/internal/claims/plan"
)

// unsorted are parameters that the API server prints otherwise.
const unsorted = `{"kind": "Config", "apiVersion": "g/v1"}`

func withUnsortedParameters(claim *resourcev1.ResourceClaim) {
	claim.Status.Allocation.Devices.Config = []resourcev1.DeviceAllocationConfiguration{{
		Source: resourcev1.AllocationConfigSourceClaim,
		DeviceConfiguration: resourcev1.DeviceConfiguration{Opaque: &resourcev1.OpaqueDeviceConfiguration{
			Driver: "d", Parameters: runtime.RawExtension{Raw: []byte(unsorted)},
		}},
	}}
}

// TestParametersOfAnyForm: the API server refuses a patch of a claim whose parameters have
// spaces, or keys that are not sorted, and all is written as for any other claim.
func TestParametersOfAnyForm(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		w := binding(t, "  claimStatus: {data: {a: b}}\n", func(_ *corev1.Pod, claim *resourcev1.ResourceClaim) { withUnsortedParameters(claim) })
		w.wrote("bind c, update resourceclaims c")
		w.editPod("p", bindTo("n"))
		w.wrote("prepare c, update resourceclaims c, ready p")
		require.Equal(t, map[string]string{"Attached": "Bound", "Ready": "Prepared"}, w.conditions("c"))
		require.JSONEq(t, `{"a": "b"}`, w.data("c"))
		require.Equal(t, runtime.RawExtension{Raw: []byte(unsorted)}, w.claim("c").Status.Allocation.Devices.Config[0].Opaque.Parameters)
		w.failures()
		w.settled()

		w.Remove(newPod("p"))
		time.Sleep(plan.WithdrawDelay)
		w.wrote("update resourceclaims c, update resourceclaims c")
		require.Empty(t, w.shown("c"))
		w.settled()
	})
}
