package prepare

import (
	"fmt"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/kwok-dra/kwok-dra/test/e2e/harness"
)

// testParameters has a driver refuse parameters of a claim: its Pod waits. With good
// parameters a Pod runs.
func testParameters(h *harness.H) {
	h.Scene("parameters", `parameters:
    kinds:
    - apiVersion: gpu.example.com/v1
      kind: GpuConfig
      schema: {type: object, properties: {strategy: {type: string, enum: [TimeSlicing]}}}`)
	use := func(name, fields string) *resourcev1.ResourceClaim {
		h.Helper()
		// With blanks and keys in no order, as a program may write them: no patch keeps them so.
		parameters := `{"kind": "GpuConfig", "apiVersion": "gpu.example.com/v1", ` + fields + `}`
		spec := harness.ClaimSpec("parameters")
		spec.Devices.Config = []resourcev1.DeviceClaimConfiguration{{DeviceConfiguration: resourcev1.DeviceConfiguration{Opaque: &resourcev1.OpaqueDeviceConfiguration{
			Driver: harness.Driver, Parameters: runtime.RawExtension{Raw: []byte(parameters)},
		}}}}
		claim := h.CreateClaim("parameters", name, spec)
		h.CreatePod("parameters", harness.NewPod(name, "parameters", name))
		return claim
	}
	for name, bad := range map[string]struct{ fields, want string }{
		"unknown": {`"stratgy":"TimeSlicing"`, `strict decoding error: unknown field "stratgy"`},
		"value":   {`"strategy":"MPS"`, `strategy: Unsupported value: "MPS": supported values: "TimeSlicing"`},
	} {
		claim := use(name, bad.fields)
		event := h.FailedPrepare("parameters", name)
		require.Equal(h, fmt.Sprintf("Failed to prepare dynamic resources: prepare dynamic resources: NodePrepareResources failed for ResourceClaim %s: "+
			"error preparing devices for claim %s: error decoding config parameters: %s", name, claim.UID, bad.want), event.Message)
		pod := h.PodEventually("parameters", name, func(pod *corev1.Pod) bool {
			return harness.PodCondition(pod, corev1.PodReadyToStartContainers) == corev1.ConditionFalse
		})
		require.Equal(h, corev1.PodPending, pod.Status.Phase)
		require.Empty(h, h.Claim("parameters", name).Status.Devices)
	}
	use("good", `"strategy": "TimeSlicing"`)
	h.Running("parameters", "good")
	require.Len(h, h.Claim("parameters", "good").Status.Devices, 1)
}
