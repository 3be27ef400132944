package e2e

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kwok-dra/kwok-dra/test/cluster"
)

// TestDevices has the stories of devices that are tainted, shared, or bound with
// conditions, on one cluster with the fast Stages.
func TestDevices(t *testing.T) {
	t.Parallel()
	h := newHarness(t, allFeatures(cluster.Options{Config: fastStages(t), Audit: true}))
	h.configure("configuration", strings.Replace(knobs, "retryInterval: 2s", "retryInterval: 2s\n  bindingDelay: 1s", 1))
	h.sidecar()
	for name, test := range map[string]func(*harness){
		"HealthFollowsTaints": testHealthFollowsTaints,
		"HealthWithoutPlugin": testHealthWithoutPlugin,
		"HealthUnknown":       testHealthUnknown,
		"EvictedByTaint":      testEvictedByTaint,
		"SharedDevice":        testSharedDevice,
		"SharedByCapacity":    testSharedByCapacity,
		"BindingConditions":   testBindingConditions,
		"BindingFailure":      testBindingFailure,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(h.on(t))
		})
	}
}

const reportsHealth = "health: Report"

// taint sets the node's annotation for devices; "" removes it.
func (h *harness) taint(node, taints string) {
	h.Helper()
	var value any
	if taints != "" {
		value = taints
	}
	h.patchMetadata(node, "annotations", "dra.kwok.x-k8s.io/device-taints", value)
}

// healthy waits until the only device of a Pod's container has that health.
func (h *harness) healthy(namespace, pod string, want corev1.ResourceHealthStatus) *corev1.Pod {
	h.Helper()
	return h.podEventually(namespace, pod, func(pod *corev1.Pod) bool {
		statuses := pod.Status.ContainerStatuses
		return len(statuses) == 1 && len(statuses[0].AllocatedResourcesStatus) == 1 && statuses[0].AllocatedResourcesStatus[0].Resources[0].Health == want
	})
}

func testHealthFollowsTaints(h *harness) {
	h.sceneOf("health", driver, gpus(70), reportsHealth)
	require.Len(h, h.slicesOf("health"), 1)
	h.createPod("health", newPod("sick", "health", fromTemplate))
	h.createPod("health", newPod("well", "health", fromTemplate))
	h.healthy("health", "sick", corev1.ResourceHealthStatusHealthy)
	h.healthy("health", "well", corev1.ResourceHealthStatusHealthy)

	device := h.claimOf("health", "sick").Status.Allocation.Devices.Results[0].Device
	h.taint("health", device+":example.com/xid=79:NoSchedule")
	pod := h.healthy("health", "sick", corev1.ResourceHealthStatusUnhealthy)
	require.Equal(h, []corev1.ResourceStatus{{
		Name:      "claim:claim-0",
		Resources: []corev1.ResourceHealth{{ResourceID: corev1.ResourceID(driver + "/health/" + device), Health: corev1.ResourceHealthStatusUnhealthy}},
	}}, pod.Status.ContainerStatuses[0].AllocatedResourcesStatus)
	h.healthy("health", "well", corev1.ResourceHealthStatusHealthy)
	h.eventually(patience, func() string {
		pool := h.slicesOf("health")
		if len(pool) != 2 {
			return fmt.Sprintf("%d slices, want 2: the limit is 64 devices where one has a taint", len(pool))
		}
		return completePool(pool, 70)
	})

	// KWOK writes whole lists of container statuses, without the health.
	pod.Status.ContainerStatuses[0].AllocatedResourcesStatus = nil
	statuses, err := json.Marshal(pod.Status.ContainerStatuses)
	require.NoError(h, err)
	h.patchPod("health", "sick", fmt.Sprintf(`{"status": {"containerStatuses": %s}}`, statuses), "status")
	h.healthy("health", "sick", corev1.ResourceHealthStatusUnhealthy)

	h.taint("health", "")
	h.healthy("health", "sick", corev1.ResourceHealthStatusHealthy)
	require.Empty(h, h.events("sick", "FailedPrepareDynamicResources"))
}

func testHealthWithoutPlugin(h *harness) {
	h.sceneOf("plugin", driver, gpus(8), reportsHealth)
	h.createPod("plugin", newPod("pod", "plugin", fromTemplate))
	h.healthy("plugin", "pod", corev1.ResourceHealthStatusHealthy)
	h.pluginRegistered("plugin", "False")
	h.healthy("plugin", "pod", corev1.ResourceHealthStatusUnknown)
	h.pluginRegistered("plugin", "True")
	h.healthy("plugin", "pod", corev1.ResourceHealthStatusHealthy)
}

// testHealthUnknown has a driver that reports no health: with minimal status
// nothing is written about it.
func testHealthUnknown(h *harness) {
	h.scene("unknown", "")
	h.createPod("unknown", newPod("no-health", "unknown", fromTemplate))
	h.running("unknown", "no-health")
	h.taint("unknown", "gpu-0:example.com/bad:NoSchedule")
	h.eventually(patience, func() string {
		for _, device := range h.slicesOf("unknown")[0].Spec.Devices {
			if len(device.Taints) == 1 {
				return ""
			}
		}
		return "no device is tainted"
	})
	require.Empty(h, h.pod("unknown", "no-health").Status.ContainerStatuses[0].AllocatedResourcesStatus)
	require.Len(h, h.writesTo("pods", "no-health"), 1)
}

func testEvictedByTaint(h *harness) {
	h.scene("evict", "")
	h.createClaim("evict", "mine", claimSpec("evict"))
	h.createPod("evict", newPod("pod", "evict", "mine"))
	h.running("evict", "pod")
	device := h.entries("evict", "mine", 1).Status.Devices[0].Device
	h.taint("evict", driver+"/"+device+":example.com/gone:NoExecute")
	h.gone("evict", "pod")
	h.entries("evict", "mine", 0)

	// What is left is healthy, so the next Pod gets another device.
	h.createPod("evict", newPod("next", "evict", "mine"))
	h.running("evict", "next")
	require.NotEqual(h, device, h.entries("evict", "mine", 1).Status.Devices[0].Device)
}

func testSharedDevice(h *harness) {
	h.sceneOf("share", driver, `[{name: nic, allowMultipleAllocations: true}]`, reportsHealth)
	ids := map[types.UID]bool{}
	for _, pod := range []string{"one", "two"} {
		h.createClaim("share", pod, claimSpec("share"))
		h.createPod("share", newPod(pod, "share", pod))
		h.healthy("share", pod, corev1.ResourceHealthStatusHealthy)
		claim := h.entries("share", pod, 1)
		id := claim.Status.Allocation.Devices.Results[0].ShareID
		require.NotNil(h, id)
		require.Equal(h, string(*id), *claim.Status.Devices[0].ShareID)
		ids[*id] = true
	}
	require.Len(h, ids, 2, "two shares of one device")
	h.taint("share", "nic:example.com/down:NoSchedule")
	for _, pod := range []string{"one", "two"} {
		h.healthy("share", pod, corev1.ResourceHealthStatusUnhealthy)
	}
}

// testSharedByCapacity has Pods share a device as long as there is enough of it.
func testSharedByCapacity(h *harness) {
	h.sceneOf("capacity", driver, sharedNIC, "")
	asks := func(name, bandwidth string) {
		spec := claimSpec("capacity")
		spec.Devices.Requests[0].Exactly.Capacity = &resourcev1.CapacityRequirements{
			Requests: map[resourcev1.QualifiedName]resource.Quantity{"bandwidth": resource.MustParse(bandwidth)},
		}
		h.createClaim("capacity", name, spec)
		h.createPod("capacity", newPod(name, "capacity", name))
	}
	shares := map[string]bool{}
	for _, name := range []string{"one", "two"} {
		asks(name, "4500M")
		h.running("capacity", name)
		claim := h.entries("capacity", name, 1)
		result := claim.Status.Allocation.Devices.Results[0]
		bandwidth := result.ConsumedCapacity["bandwidth"]
		require.Equal(h, "5G", bandwidth.String(), "the policy rounds up to its step")
		require.Equal(h, string(*result.ShareID), *claim.Status.Devices[0].ShareID)
		shares[*claim.Status.Devices[0].ShareID] = true
	}
	require.Len(h, shares, 2)
	asks("three", "1G")
	h.unschedulable("capacity", "three")
	h.frees("capacity", "one")
	h.running("capacity", "three")
}

const boundDevice = `[{name: fpga, count: 2, bindsToNode: true, bindingConditions: [example.com/attached], bindingFailureConditions: [example.com/broken]}]`

func testBindingConditions(h *harness) {
	h.sceneOf("binding", driver, boundDevice, "")
	h.createClaim("binding", "bound", claimSpec("binding"))
	h.createPod("binding", newPod("pod", "binding", "bound"))
	h.running("binding", "pod")
	claim := h.entries("binding", "bound", 1)
	require.ElementsMatch(h, []string{"example.com/attached=True", "Ready=True"}, conditionsOf(claim.Status.Devices[0]))
	writes := h.writesTo("resourceclaims", "bound")
	require.Len(h, writes, 2)
	require.Contains(h, writes[0].RequestURI, "fieldManager=kwok-dra-binding")
	h.deletePod("binding", "pod", 0)
	h.entries("binding", "bound", 0)
}

func conditionsOf(entry resourcev1.AllocatedDeviceStatus) []string {
	var all []string
	for _, condition := range entry.Conditions {
		all = append(all, condition.Type+"="+string(condition.Status))
	}
	return all
}

// testBindingFailure has a device that does not get ready, until it does.
func testBindingFailure(h *harness) {
	h.sceneOf("broken", driver, boundDevice, "")
	pod := newPod("pod", "broken", fromTemplate)
	pod.Labels = map[string]string{"fail": "true"}
	h.createPod("broken", pod)
	h.eventually(patience, func() string {
		messages := h.messages("broken", "pod", "FailedScheduling")
		if strings.Contains(messages, "binding failed") && strings.Contains(messages, "BindingFailed") {
			return ""
		}
		return "the scheduler has not been told: " + messages
	})
	h.patchPod("broken", "pod", `{"metadata": {"labels": {"fail": null}}}`)
	h.running("broken", "pod")
}

// TestHealthGateOff has an API server that does not keep the health of devices:
// it is not written again and again.
func TestHealthGateOff(t *testing.T) {
	t.Parallel()
	options := cluster.Options{Config: fastStages(t), Audit: true}
	if !alphaDevices() {
		options.FeatureGates = map[string]bool{"ResourceHealthStatus": false, "ResourceHealthStatusMessage": false}
	}
	h := newHarness(t, options)
	h.sidecar()
	h.sceneOf("gateless", driver, gpus(8), reportsHealth)
	for i := range 3 {
		h.createPod("gateless", newPod(fmt.Sprint("pod-", i), "gateless", fromTemplate))
		h.running("gateless", fmt.Sprint("pod-", i))
	}
	h.taint("gateless", "gpu-0:example.com/bad:NoSchedule")
	h.createPod("gateless", newPod("last", "gateless", fromTemplate))
	require.Empty(t, h.running("gateless", "last").Status.ContainerStatuses[0].AllocatedResourcesStatus)
	require.LessOrEqual(t, len(h.writes("pods")), 4+3, "the first Pods may have found out side by side")
}
