package devices

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kwok-dra/kwok-dra/test/cluster"
	"github.com/kwok-dra/kwok-dra/test/e2e/harness"
)

// sharedNIC may be allocated in parts.
const sharedNIC = `[{name: nic, allowMultipleAllocations: true, capacity: {bandwidth: {value: 10G, requestPolicy: {default: 1G, validRange: {min: 1G, step: 1G}}}}}]`

// TestGates has an API server that drops what devices can do: what would be
// wrong without it is not published, the rest is. Then the gates are turned on.
func TestGates(t *testing.T) {
	t.Parallel()
	options := cluster.Options{Config: harness.FastStages(t), Audit: true}
	if !harness.AlphaDevices() {
		options.FeatureGates = map[string]bool{"DRAPartitionableDevices": false, "DRAConsumableCapacity": false}
	}
	h := harness.New(t, options)
	h.Sidecar()
	const nic, plain, lists = "nic.example.com", "plain.example.com", "lists.example.com"
	h.Configure("gates", harness.Template("gates-mig", harness.Driver, "gates", sevenths(1))+
		harness.Template("gates-nic", nic, "gates", sharedNIC)+
		harness.Template("gates-plain", plain, "gates", harness.GPUs(8))+
		harness.WithSpec(harness.Template("gates-lists", lists, "gates", `[{name: gpu, count: 70, attributes: {model: H100, roots: [a, b]}}]`), `skipNodeOperations: ["*"]`)+
		harness.Template("gates-cpu", "cpu.example.com", "gates", `[{name: socket, nodeAllocatableResources: {cpu: {mapping: {deviceMultiplier: "2"}}}}]`)+
		harness.WithSpec(harness.Template("gates-each", harness.Fabric("gates-each"), "gates", `[{name: any, allNodes: true}]`), "sharedWith: {perDeviceNodeSelection: true}"))
	h.CreateNode("gates", "gates")
	h.Eventually(harness.Patience, func() string { return h.Complete("gates", map[string]int{nic: 1, plain: 8, lists: 70}) })
	requireDropped(h, nic, lists)
	h.Looked("gates")
	require.Empty(t, h.Pool("gates", harness.Driver), "partitions would exclude nothing")
	require.Empty(t, h.Pool("gates", "cpu.example.com"))
	require.Empty(t, h.SlicesBy(harness.Fabric("gates-each")))

	require.NoError(t, h.Cluster.SetFeatureGates(t.Context(), map[string]bool{"DRAPartitionableDevices": true, "DRAConsumableCapacity": true}))
	h.Eventually(harness.Patience, func() string {
		return h.Complete("gates", map[string]int{harness.Driver: 8, nic: 1, plain: 8, lists: 70})
	})
	sharedPool(h, "gates-each", 1)
	h.Eventually(harness.Patience, func() string {
		device := h.Pool("gates", nic)[0].Spec.Devices[0]
		if device.AllowMultipleAllocations == nil || device.Capacity["bandwidth"].RequestPolicy == nil {
			return "the device can still not be shared"
		}
		return ""
	})
	h.Namespace("gates", harness.Driver)
	gets(h, "gates", "whole", whole)
	getsNone(h, "gates", "part", seventh)
}

// requireDropped looks at what is published without a field, and at what the
// events say.
func requireDropped(h *harness.H, nic, lists string) {
	h.Helper()
	device := h.Pool("gates", nic)[0].Spec.Devices[0]
	require.Nil(h, device.AllowMultipleAllocations)
	bandwidth := device.Capacity["bandwidth"]
	require.Equal(h, "10G", bandwidth.Value.String())
	require.Nil(h, bandwidth.RequestPolicy)
	pool := h.Pool("gates", lists)
	require.Len(h, pool, 1, "without lists a slice holds 128 devices")
	require.Len(h, pool[0].Spec.Devices[0].Attributes, 1)
	require.Empty(h, pool[0].Spec.SkipNodeOperations)
	for _, want := range []struct{ template, field, gate string }{
		{"gates-mig", "consumesCounters", "DRAPartitionableDevices"},
		{"gates-each", "perDeviceNodeSelection", "DRAPartitionableDevices"},
		{"gates-nic", "allowMultipleAllocations", "DRAConsumableCapacity"},
		{"gates-lists", "list attributes", "DRAListTypeAttributes"},
		{"gates-lists", "skipNodeOperations", "DRAOptionalNodeOperations"},
		{"gates-cpu", "nodeAllocatableResources", "DRANodeAllocatableResources"},
	} {
		require.Contains(h, dropped(h, "gates", want.template, want.gate), want.field)
	}
}

// dropped waits for the event that tells which field of a template is dropped
// for want of a gate, and returns its message.
func dropped(h *harness.H, node, template, gate string) string {
	h.Helper()
	message := ""
	h.Eventually(harness.Patience, func() string {
		list, err := h.Client.CoreV1().Events("").List(h.Context(), metav1.ListOptions{FieldSelector: "involvedObject.name=" + node + ",reason=FieldsDropped"})
		require.NoError(h, err)
		for _, event := range list.Items {
			if event.Type == corev1.EventTypeWarning && strings.Contains(event.Message, template) && strings.Contains(event.Message, gate) {
				message = event.Message
				return ""
			}
		}
		return "no event tells of template " + template + " and gate " + gate
	})
	return message
}
