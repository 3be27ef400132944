// Package devices proves that everything a device can do works with fake devices:
// taints, health, sharing, counters, partitions, lists, and pools of several nodes.
package devices

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
	"github.com/kwok-dra/kwok-dra/test/e2e/harness"
)

// TestDevices has the stories of devices that are tainted, shared, or bound with
// conditions, on one cluster with the fast Stages.
func TestDevices(t *testing.T) {
	t.Parallel()
	h := harness.New(t, harness.AllFeatures(cluster.Options{Config: harness.FastStages(t), Audit: true}))
	h.Configure("configuration", strings.Replace(harness.Knobs, "retryInterval: 2s", "retryInterval: 2s\n  bindingDelay: 1s", 1))
	h.Sidecar()
	for name, test := range map[string]func(*harness.H){
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
			test(h.On(t))
		})
	}
}

const reportsHealth = "health: Report"

// taint sets the node's annotation for devices; "" removes it.
func taint(h *harness.H, node, taints string) {
	h.Helper()
	var value any
	if taints != "" {
		value = taints
	}
	h.PatchMetadata(node, "annotations", "dra.kwok.x-k8s.io/device-taints", value)
}

// healthy waits until the only device of a Pod's container has that health.
func healthy(h *harness.H, namespace, pod string, want corev1.ResourceHealthStatus) *corev1.Pod {
	h.Helper()
	return h.PodEventually(namespace, pod, func(pod *corev1.Pod) bool {
		statuses := pod.Status.ContainerStatuses
		return len(statuses) == 1 && len(statuses[0].AllocatedResourcesStatus) == 1 && statuses[0].AllocatedResourcesStatus[0].Resources[0].Health == want
	})
}

func testHealthFollowsTaints(h *harness.H) {
	h.SceneOf("health", harness.Driver, harness.GPUs(70), reportsHealth)
	require.Len(h, h.SlicesOf("health"), 1)
	h.CreatePod("health", harness.NewPod("sick", "health", harness.FromTemplate))
	h.CreatePod("health", harness.NewPod("well", "health", harness.FromTemplate))
	healthy(h, "health", "sick", corev1.ResourceHealthStatusHealthy)
	healthy(h, "health", "well", corev1.ResourceHealthStatusHealthy)

	device := h.ClaimOf("health", "sick").Status.Allocation.Devices.Results[0].Device
	taint(h, "health", device+":example.com/xid=79:NoSchedule")
	pod := healthy(h, "health", "sick", corev1.ResourceHealthStatusUnhealthy)
	require.Equal(h, []corev1.ResourceStatus{{
		Name:      "claim:claim-0",
		Resources: []corev1.ResourceHealth{{ResourceID: corev1.ResourceID(harness.Driver + "/health/" + device), Health: corev1.ResourceHealthStatusUnhealthy}},
	}}, pod.Status.ContainerStatuses[0].AllocatedResourcesStatus)
	healthy(h, "health", "well", corev1.ResourceHealthStatusHealthy)
	h.Eventually(harness.Patience, func() string {
		pool := h.SlicesOf("health")
		if len(pool) != 2 {
			return fmt.Sprintf("%d slices, want 2: the limit is 64 devices where one has a taint", len(pool))
		}
		return harness.CompletePool(pool, 70)
	})

	// KWOK writes whole lists of container statuses, without the health.
	pod.Status.ContainerStatuses[0].AllocatedResourcesStatus = nil
	statuses, err := json.Marshal(pod.Status.ContainerStatuses)
	require.NoError(h, err)
	h.PatchPod("health", "sick", fmt.Sprintf(`{"status": {"containerStatuses": %s}}`, statuses), "status")
	healthy(h, "health", "sick", corev1.ResourceHealthStatusUnhealthy)

	taint(h, "health", "")
	healthy(h, "health", "sick", corev1.ResourceHealthStatusHealthy)
	require.Empty(h, h.Events("sick", "FailedPrepareDynamicResources"))
}

func testHealthWithoutPlugin(h *harness.H) {
	h.SceneOf("plugin", harness.Driver, harness.GPUs(8), reportsHealth)
	h.CreatePod("plugin", harness.NewPod("pod", "plugin", harness.FromTemplate))
	healthy(h, "plugin", "pod", corev1.ResourceHealthStatusHealthy)
	h.PluginRegistered("plugin", "False")
	healthy(h, "plugin", "pod", corev1.ResourceHealthStatusUnknown)
	h.PluginRegistered("plugin", "True")
	healthy(h, "plugin", "pod", corev1.ResourceHealthStatusHealthy)
}

// testHealthUnknown has a driver that reports no health: with minimal status
// nothing is written about it.
func testHealthUnknown(h *harness.H) {
	h.Scene("unknown", "")
	h.CreatePod("unknown", harness.NewPod("no-health", "unknown", harness.FromTemplate))
	h.Running("unknown", "no-health")
	taint(h, "unknown", "gpu-0:example.com/bad:NoSchedule")
	h.Eventually(harness.Patience, func() string {
		for _, device := range h.SlicesOf("unknown")[0].Spec.Devices {
			if len(device.Taints) == 1 {
				return ""
			}
		}
		return "no device is tainted"
	})
	require.Empty(h, h.Pod("unknown", "no-health").Status.ContainerStatuses[0].AllocatedResourcesStatus)
	require.Len(h, h.WritesTo("pods", "no-health"), 1)
}

func testEvictedByTaint(h *harness.H) {
	h.Scene("evict", "")
	h.CreateClaim("evict", "mine", harness.ClaimSpec("evict"))
	h.CreatePod("evict", harness.NewPod("pod", "evict", "mine"))
	h.Running("evict", "pod")
	device := h.Entries("evict", "mine", 1).Status.Devices[0].Device
	taint(h, "evict", harness.Driver+"/"+device+":example.com/gone:NoExecute")
	h.Gone("evict", "pod")
	h.Entries("evict", "mine", 0)

	// What is left is healthy, so the next Pod gets another device.
	h.CreatePod("evict", harness.NewPod("next", "evict", "mine"))
	h.Running("evict", "next")
	require.NotEqual(h, device, h.Entries("evict", "mine", 1).Status.Devices[0].Device)
}

func testSharedDevice(h *harness.H) {
	h.SceneOf("share", harness.Driver, `[{name: nic, allowMultipleAllocations: true}]`, reportsHealth)
	ids := map[types.UID]bool{}
	for _, pod := range []string{"one", "two"} {
		h.CreateClaim("share", pod, harness.ClaimSpec("share"))
		h.CreatePod("share", harness.NewPod(pod, "share", pod))
		healthy(h, "share", pod, corev1.ResourceHealthStatusHealthy)
		claim := h.Entries("share", pod, 1)
		id := claim.Status.Allocation.Devices.Results[0].ShareID
		require.NotNil(h, id)
		require.Equal(h, string(*id), *claim.Status.Devices[0].ShareID)
		ids[*id] = true
	}
	require.Len(h, ids, 2, "two shares of one device")
	taint(h, "share", "nic:example.com/down:NoSchedule")
	for _, pod := range []string{"one", "two"} {
		healthy(h, "share", pod, corev1.ResourceHealthStatusUnhealthy)
	}
}

// testSharedByCapacity has Pods share a device as long as there is enough of it.
func testSharedByCapacity(h *harness.H) {
	h.SceneOf("capacity", harness.Driver, sharedNIC, "")
	asks := func(name, bandwidth string) {
		spec := harness.ClaimSpec("capacity")
		spec.Devices.Requests[0].Exactly.Capacity = &resourcev1.CapacityRequirements{
			Requests: map[resourcev1.QualifiedName]resource.Quantity{"bandwidth": resource.MustParse(bandwidth)},
		}
		h.CreateClaim("capacity", name, spec)
		h.CreatePod("capacity", harness.NewPod(name, "capacity", name))
	}
	shares := map[string]bool{}
	for _, name := range []string{"one", "two"} {
		asks(name, "4500M")
		h.Running("capacity", name)
		claim := h.Entries("capacity", name, 1)
		result := claim.Status.Allocation.Devices.Results[0]
		bandwidth := result.ConsumedCapacity["bandwidth"]
		require.Equal(h, "5G", bandwidth.String(), "the policy rounds up to its step")
		require.Equal(h, string(*result.ShareID), *claim.Status.Devices[0].ShareID)
		shares[*claim.Status.Devices[0].ShareID] = true
	}
	require.Len(h, shares, 2)
	asks("three", "1G")
	h.Unschedulable("capacity", "three")
	frees(h, "capacity", "one")
	h.Running("capacity", "three")
}

const boundDevice = `[{name: fpga, count: 2, bindsToNode: true, bindingConditions: [example.com/attached], bindingFailureConditions: [example.com/broken]}]`

func testBindingConditions(h *harness.H) {
	h.SceneOf("binding", harness.Driver, boundDevice, "")
	h.CreateClaim("binding", "bound", harness.ClaimSpec("binding"))
	h.CreatePod("binding", harness.NewPod("pod", "binding", "bound"))
	h.Running("binding", "pod")
	claim := h.Entries("binding", "bound", 1)
	require.ElementsMatch(h, []string{"example.com/attached=True", "Ready=True"}, conditionsOf(claim.Status.Devices[0]))
	writes := h.WritesTo("resourceclaims", "bound")
	require.Len(h, writes, 2)
	require.Contains(h, writes[0].RequestURI, "fieldManager=kwok-dra-binding")
	h.DeletePod("binding", "pod", 0)
	h.Entries("binding", "bound", 0)
}

func conditionsOf(entry resourcev1.AllocatedDeviceStatus) []string {
	var all []string
	for _, condition := range entry.Conditions {
		all = append(all, condition.Type+"="+string(condition.Status))
	}
	return all
}

// testBindingFailure has a device that does not get ready, until it does.
func testBindingFailure(h *harness.H) {
	h.SceneOf("broken", harness.Driver, boundDevice, "")
	pod := harness.NewPod("pod", "broken", harness.FromTemplate)
	pod.Labels = map[string]string{"fail": "true"}
	h.CreatePod("broken", pod)
	h.Eventually(harness.Patience, func() string {
		messages := h.Messages("broken", "pod", "FailedScheduling")
		if strings.Contains(messages, "binding failed") && strings.Contains(messages, "BindingFailed") {
			return ""
		}
		return "the scheduler has not been told: " + messages
	})
	h.PatchPod("broken", "pod", `{"metadata": {"labels": {"fail": null}}}`)
	h.Running("broken", "pod")
}

// TestHealthGateOff has an API server that does not keep the health of devices:
// it is not written again and again.
func TestHealthGateOff(t *testing.T) {
	t.Parallel()
	options := cluster.Options{Config: harness.FastStages(t), Audit: true}
	if !harness.AlphaDevices() {
		options.FeatureGates = map[string]bool{"ResourceHealthStatus": false, "ResourceHealthStatusMessage": false}
	}
	h := harness.New(t, options)
	h.Sidecar()
	h.SceneOf("gateless", harness.Driver, harness.GPUs(8), reportsHealth)
	for i := range 3 {
		h.CreatePod("gateless", harness.NewPod(fmt.Sprint("pod-", i), "gateless", harness.FromTemplate))
		h.Running("gateless", fmt.Sprint("pod-", i))
	}
	taint(h, "gateless", "gpu-0:example.com/bad:NoSchedule")
	h.CreatePod("gateless", harness.NewPod("last", "gateless", harness.FromTemplate))
	require.Empty(t, h.Running("gateless", "last").Status.ContainerStatuses[0].AllocatedResourcesStatus)
	require.LessOrEqual(t, len(h.Writes("pods")), 4+3, "the first Pods may have found out side by side")
}
