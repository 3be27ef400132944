package nodeload

import (
	"net/url"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/fields"
)

// kubeletWatches lists the watches that a kubelet has as long as it runs.
func kubeletWatches(node string) []watchOf {
	return []watchOf{
		{"nodes", coreAPI + "/nodes", fields.OneTermEqualSelector("metadata.name", node).String(), watchTimeout},
		{"pods", coreAPI + "/pods", fields.OneTermEqualSelector("spec.nodeName", node).String(), watchTimeout},
		{"services", coreAPI + "/services", fields.OneTermNotEqualSelector("spec.clusterIP", corev1.ClusterIPNone).String(), watchTimeout},
		{"csidrivers", storageAPI + "/csidrivers", "", watchTimeout},
		{"runtimeclasses", nodeAPI + "/runtimeclasses", "", watchTimeout},
	}
}

// driverWatch is the watch that a driver has for its own slices on a node.
func driverWatch(driver, node string) watchOf {
	selector := fields.Set{"spec.driver": driver, "spec.nodeName": node}
	return watchOf{"resourceslices", resourceAPI + "/resourceslices", selector.String(), watchTimeout}
}

// startRequests lists what a kubelet sends when it starts on a node that exists, in its order. Its attempt to create the
// Node is missing: were the Node deleted just then, it would come back.
func startRequests(node *corev1.Node, now time.Time) []*request {
	about := corev1.ObjectReference{Kind: "Node", Name: node.Name, UID: node.UID}
	event := func(reason, message string) *request { return createEvent(node.Name, about, reason, message, now) }
	state := func(reason string) *request {
		return event(reason, "Node "+node.Name+" status is now: "+reason)
	}
	requests := []*request{
		getCSINode(node.Name, url.Values{"resourceVersion": {"0"}}),
		event("Starting", "Starting kubelet."),
		getNode(node.Name),
		getCSINode(node.Name, nil),
		deleteStaleSlices(node.Name),
		state("NodeHasSufficientMemory"),
		getNode(node.Name),
		state("NodeHasNoDiskPressure"),
		state("NodeHasSufficientPID"),
	}
	if len(node.Status.Conditions) > 0 { // else kwok has not written any yet
		requests = append(requests, patchNodeStatus(node, now))
	}
	return requests
}
