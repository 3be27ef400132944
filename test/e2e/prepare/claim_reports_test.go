package prepare

import (
	"fmt"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/kwok-dra/kwok-dra/test/cluster"
	"github.com/kwok-dra/kwok-dra/test/e2e/harness"
)

// testReports has a driver that tells much, from its class's and its claim's
// parameters too.
func testReports(h *harness.H) {
	h.Scene("reports", `claimStatus:
    data: |
      device: {{ .Result.device }}
      node: {{ .Node.metadata.name }}
      claim: {{ .Claim.name }}
      config: {{ .Config | toJson }}
    networkData: {interfaceName: "eth{{ .Device.attributes.index.int }}", ips: ["10.0.0.{{ .Device.attributes.index.int }}/24"], hardwareAddress: 00:00:5e:00:53:01}`)
	parameters := func(text string) *resourcev1.OpaqueDeviceConfiguration {
		return &resourcev1.OpaqueDeviceConfiguration{Driver: harness.Driver, Parameters: runtime.RawExtension{Raw: []byte(text)}}
	}
	class, err := h.Client.ResourceV1().DeviceClasses().Get(h.Context(), "reports", metav1.GetOptions{})
	require.NoError(h, err)
	class.Spec.Config = []resourcev1.DeviceClassConfiguration{{DeviceConfiguration: resourcev1.DeviceConfiguration{Opaque: parameters(`{"from":"class"}`)}}}
	_, err = h.Client.ResourceV1().DeviceClasses().Update(h.Context(), class, metav1.UpdateOptions{})
	require.NoError(h, err)
	spec := harness.ClaimSpec("reports")
	spec.Devices.Requests = append(spec.Devices.Requests, spec.Devices.Requests[0])
	spec.Devices.Requests[1].Name = "plain"
	spec.Devices.Config = []resourcev1.DeviceClaimConfiguration{{
		Requests: []string{"reports"}, DeviceConfiguration: resourcev1.DeviceConfiguration{Opaque: parameters(`{"from":"claim"}`)},
	}}
	h.CreateClaim("reports", "claim", spec)
	h.CreatePod("reports", harness.NewPod("pod", "reports", "claim"))
	h.Running("reports", "pod")

	claim := h.Entries("reports", "claim", 2)
	for i, result := range claim.Status.Allocation.Devices.Results {
		config := `[{"from":"class"}]`
		if result.Request == "reports" {
			config = `[{"from":"class"},{"from":"claim"}]`
		}
		entry := claim.Status.Devices[i]
		require.JSONEq(h, fmt.Sprintf(`{"device": %q, "node": "reports", "claim": "claim", "config": %s}`, result.Device, config), string(entry.Data.Raw))
		index := result.Device[len("gpu-"):]
		require.Equal(h, &resourcev1.NetworkDeviceData{
			InterfaceName: "eth" + index, IPs: []string{"10.0.0." + index + "/24"}, HardwareAddress: "00:00:5e:00:53:01",
		}, entry.NetworkData)
	}
}

// testNamesItsPods has a report that changes with the Pods.
func testNamesItsPods(h *harness.H) {
	h.Scene("names", `claimStatus: {data: {pods: "{{ range .Pods }}{{ .name }} {{ end }}"}}`)
	h.CreateClaim("names", "naming", harness.ClaimSpec("names"))
	pods := func(want string) {
		h.Helper()
		h.Eventually(harness.Patience, func() string {
			claim := h.Claim("names", "naming")
			if len(claim.Status.Devices) == 1 && string(claim.Status.Devices[0].Data.Raw) == fmt.Sprintf(`{"pods":%q}`, want) {
				return ""
			}
			return fmt.Sprintf("want pods %q, have %+v", want, claim.Status.Devices)
		})
	}
	h.CreatePod("names", harness.NewPod("b", "names", "naming"))
	pods("b ")
	h.Running("names", "b")
	h.CreatePod("names", harness.NewPod("a", "names", "naming"))
	pods("a b ")
	h.Running("names", "a")
	h.DeletePod("names", "b", 0)
	pods("a ")
	requireWrites(h, 3, func() []cluster.AuditEvent { return h.WritesTo("resourceclaims", "naming") }) // one per change
}

// requireWrites waits for so many writes: the audit log has one a moment after others see what it has changed.
func requireWrites(h *harness.H, want int, writes func() []cluster.AuditEvent) {
	h.Helper()
	h.Eventually(harness.Patience, func() string {
		if n := len(writes()); n != want {
			return fmt.Sprintf("%d writes, want %d", n, want)
		}
		return ""
	})
}

// testModeNone has a driver that reports nothing, and one that only has data.
func testModeNone(h *harness.H) {
	h.Scene("silent", "claimStatus: {mode: None}")
	h.CreateClaim("silent", "silent-claim", harness.ClaimSpec("silent"))
	h.CreatePod("silent", harness.NewPod("pod", "silent", "silent-claim"))
	require.True(h, harness.IsReady(h.Running("silent", "pod")))
	require.Empty(h, h.WritesTo("resourceclaims", "silent-claim"))

	h.Scene("data", "claimStatus: {mode: None, data: {model: {string: H100}}}")
	h.CreateClaim("data", "data-claim", harness.ClaimSpec("data"))
	h.CreatePod("data", harness.NewPod("pod", "data", "data-claim"))
	h.Running("data", "pod")
	require.Empty(h, h.Entries("data", "data-claim", 1).Status.Devices[0].Conditions)
}

// testClaimOfAnotherPod has a claim that was made for another Pod.
func testClaimOfAnotherPod(h *harness.H) {
	h.Scene("owner", "")
	h.CreatePod("owner", harness.NewPod("first", "owner", harness.FromTemplate))
	h.Running("owner", "first")
	claim := h.ClaimOf("owner", "first")
	second := harness.NewPod("second", "owner", harness.FromTemplate)
	second.Spec.SchedulerName = "nobody"
	second.Labels = map[string]string{"hold": "true"}
	h.CreatePod("owner", second)
	h.PodEventually("owner", "second", func(pod *corev1.Pod) bool { return len(pod.Status.ResourceClaimStatuses) == 1 })
	h.PatchPod("owner", "second", fmt.Sprintf(`{"status": {"resourceClaimStatuses": [{"name": "claim-0", "resourceClaimName": %q}]}}`, claim.Name), "status")
	h.Bind("owner", "second", "owner")
	h.PatchPod("owner", "second", `{"metadata": {"labels": {"hold": null}}}`)
	require.Contains(h, h.FailedPrepare("owner", "second").Message,
		fmt.Sprintf("prepare dynamic resources: ResourceClaim owner/%s was not created for Pod owner/second (Pod is not owner)", claim.Name))
}
