package e2e

import (
	"fmt"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// testReports has a driver that tells much, from its class's and its claim's
// parameters too.
func testReports(h *harness) {
	h.scene("reports", `claimStatus:
    data: |
      device: {{ .Result.device }}
      node: {{ .Node.metadata.name }}
      claim: {{ .Claim.name }}
      config: {{ .Config | toJson }}
    networkData: {interfaceName: "eth{{ .Device.attributes.index.int }}", ips: ["10.0.0.{{ .Device.attributes.index.int }}/24"], hardwareAddress: 00:00:5e:00:53:01}`)
	parameters := func(text string) *resourcev1.OpaqueDeviceConfiguration {
		return &resourcev1.OpaqueDeviceConfiguration{Driver: driver, Parameters: runtime.RawExtension{Raw: []byte(text)}}
	}
	class, err := h.client.ResourceV1().DeviceClasses().Get(h.Context(), "reports", metav1.GetOptions{})
	require.NoError(h, err)
	class.Spec.Config = []resourcev1.DeviceClassConfiguration{{DeviceConfiguration: resourcev1.DeviceConfiguration{Opaque: parameters(`{"from":"class"}`)}}}
	_, err = h.client.ResourceV1().DeviceClasses().Update(h.Context(), class, metav1.UpdateOptions{})
	require.NoError(h, err)
	spec := claimSpec("reports")
	spec.Devices.Requests = append(spec.Devices.Requests, spec.Devices.Requests[0])
	spec.Devices.Requests[1].Name = "plain"
	spec.Devices.Config = []resourcev1.DeviceClaimConfiguration{{
		Requests: []string{"reports"}, DeviceConfiguration: resourcev1.DeviceConfiguration{Opaque: parameters(`{"from":"claim"}`)},
	}}
	h.createClaim("reports", "claim", spec)
	h.createPod("reports", newPod("pod", "reports", "claim"))
	h.running("reports", "pod")

	claim := h.entries("reports", "claim", 2)
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
func testNamesItsPods(h *harness) {
	h.scene("names", `claimStatus: {data: {pods: "{{ range .Pods }}{{ .name }} {{ end }}"}}`)
	h.createClaim("names", "naming", claimSpec("names"))
	pods := func(want string) {
		h.Helper()
		h.eventually(patience, func() string {
			claim := h.claim("names", "naming")
			if len(claim.Status.Devices) == 1 && string(claim.Status.Devices[0].Data.Raw) == fmt.Sprintf(`{"pods":%q}`, want) {
				return ""
			}
			return fmt.Sprintf("want pods %q, have %+v", want, claim.Status.Devices)
		})
	}
	h.createPod("names", newPod("b", "names", "naming"))
	pods("b ")
	h.running("names", "b")
	h.createPod("names", newPod("a", "names", "naming"))
	pods("a b ")
	h.running("names", "a")
	h.deletePod("names", "b", 0)
	pods("a ")
	require.Len(h, h.writesTo("resourceclaims", "naming"), 3, "one write per change")
}

// testModeNone has a driver that reports nothing, and one that only has data.
func testModeNone(h *harness) {
	h.scene("silent", "claimStatus: {mode: None}")
	h.createClaim("silent", "silent-claim", claimSpec("silent"))
	h.createPod("silent", newPod("pod", "silent", "silent-claim"))
	require.True(h, isReady(h.running("silent", "pod")))
	require.Empty(h, h.writesTo("resourceclaims", "silent-claim"))

	h.scene("data", "claimStatus: {mode: None, data: {model: {string: H100}}}")
	h.createClaim("data", "data-claim", claimSpec("data"))
	h.createPod("data", newPod("pod", "data", "data-claim"))
	h.running("data", "pod")
	require.Empty(h, h.entries("data", "data-claim", 1).Status.Devices[0].Conditions)
}

// testClaimOfAnotherPod has a claim that was made for another Pod.
func testClaimOfAnotherPod(h *harness) {
	h.scene("owner", "")
	h.createPod("owner", newPod("first", "owner", fromTemplate))
	h.running("owner", "first")
	claim := h.claimOf("owner", "first")
	second := newPod("second", "owner", fromTemplate)
	second.Spec.SchedulerName = "nobody"
	second.Labels = map[string]string{"hold": "true"}
	h.createPod("owner", second)
	h.podEventually("owner", "second", func(pod *corev1.Pod) bool { return len(pod.Status.ResourceClaimStatuses) == 1 })
	h.patchPod("owner", "second", fmt.Sprintf(`{"status": {"resourceClaimStatuses": [{"name": "claim-0", "resourceClaimName": %q}]}}`, claim.Name), "status")
	h.bind("owner", "second", "owner")
	h.patchPod("owner", "second", `{"metadata": {"labels": {"hold": null}}}`)
	require.Contains(h, h.failedPrepare("owner", "second").Message,
		fmt.Sprintf("prepare dynamic resources: ResourceClaim owner/%s was not created for Pod owner/second (Pod is not owner)", claim.Name))
}
