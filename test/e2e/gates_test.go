package e2e

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kwok-dra/kwok-dra/test/cluster"
)

// gateBound is how long the sidecar may take to find out that the API server
// keeps what it dropped: it asks every half minute.
const gateBound = 45 * time.Second

// sharedNIC may be allocated in parts.
const sharedNIC = `[{name: nic, allowMultipleAllocations: true, capacity: {bandwidth: {value: 10G, requestPolicy: {default: 1G, validRange: {min: 1G, step: 1G}}}}}]`

// TestGates has an API server that drops what devices can do: what would be
// wrong without it is not published, the rest is. Then the gates are turned on.
func TestGates(t *testing.T) {
	t.Parallel()
	options := cluster.Options{Config: fastStages(t), Audit: true}
	if !alphaDevices() {
		options.FeatureGates = map[string]bool{"DRAPartitionableDevices": false, "DRAConsumableCapacity": false}
	}
	h := newHarness(t, options)
	h.sidecar()
	const nic, plain, lists = "nic.example.com", "plain.example.com", "lists.example.com"
	h.configure("gates", template("gates-mig", driver, "gates", sevenths(1))+
		template("gates-nic", nic, "gates", sharedNIC)+
		template("gates-plain", plain, "gates", gpus(8))+
		withSpec(template("gates-lists", lists, "gates", `[{name: gpu, count: 70, attributes: {model: H100, roots: [a, b]}}]`), `skipNodeOperations: ["*"]`)+
		template("gates-cpu", "cpu.example.com", "gates", `[{name: socket, nodeAllocatableResources: {cpu: {mapping: {deviceMultiplier: "2"}}}}]`)+
		withSpec(template("gates-each", fabric("gates-each"), "gates", `[{name: any, allNodes: true}]`), "sharedWith: {perDeviceNodeSelection: true}"))
	h.createNode("gates", "gates")
	h.eventually(patience, func() string { return h.complete("gates", map[string]int{nic: 1, plain: 8, lists: 70}) })
	h.requireDropped(nic, lists)
	h.looked("gates")
	require.Empty(t, h.pool("gates", driver), "partitions would exclude nothing")
	require.Empty(t, h.pool("gates", "cpu.example.com"))
	require.Empty(t, h.slicesBy(fabric("gates-each")))

	require.NoError(t, h.cluster.SetFeatureGates(t.Context(), map[string]bool{"DRAPartitionableDevices": true, "DRAConsumableCapacity": true}))
	h.eventually(gateBound, func() string {
		return h.complete("gates", map[string]int{driver: 8, nic: 1, plain: 8, lists: 70})
	})
	h.sharedPool("gates-each", 1)
	h.eventually(gateBound, func() string {
		device := h.pool("gates", nic)[0].Spec.Devices[0]
		if device.AllowMultipleAllocations == nil || device.Capacity["bandwidth"].RequestPolicy == nil {
			return "the device can still not be shared"
		}
		return ""
	})
	h.namespace("gates", driver)
	h.gets("gates", "whole", whole)
	h.getsNone("gates", "part", seventh)
}

// requireDropped looks at what is published without a field, and at what the
// events say.
func (h *harness) requireDropped(nic, lists string) {
	h.Helper()
	device := h.pool("gates", nic)[0].Spec.Devices[0]
	require.Nil(h, device.AllowMultipleAllocations)
	bandwidth := device.Capacity["bandwidth"]
	require.Equal(h, "10G", bandwidth.Value.String())
	require.Nil(h, bandwidth.RequestPolicy)
	pool := h.pool("gates", lists)
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
		require.Contains(h, h.dropped("gates", want.template, want.gate), want.field)
	}
}

// dropped waits for the event that tells which field of a template is dropped
// for want of a gate, and returns its message.
func (h *harness) dropped(node, template, gate string) string {
	h.Helper()
	message := ""
	h.eventually(patience, func() string {
		list, err := h.client.CoreV1().Events("").List(h.Context(), metav1.ListOptions{FieldSelector: "involvedObject.name=" + node + ",reason=FieldsDropped"})
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
