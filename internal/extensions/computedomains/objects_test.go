package computedomains

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kwok-dra/kwok-dra/internal/testing/claimstest"
)

// driverNamespace is where NVIDIA's driver is installed.
const driverNamespace = "nvidia"

// newTray is a Ready node of a rack.
func newTray(name, fabric string) *corev1.Node {
	node := claimstest.NewNode(name)
	node.Labels = map[string]string{fabricLabel: fabric}
	node.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}
	return node
}

// newClaim has a device for a ComputeDomain, by parameters of a kind.
func newClaim(pod *corev1.Pod, kind, domain string) *resourcev1.ResourceClaim {
	claim := claimstest.Allocated("of-"+pod.Name, pod)
	claim.Namespace = pod.Namespace
	claimstest.Allocate(claim, claimstest.Device(driverName, "device-0"))
	claim.Status.Allocation.NodeSelector.NodeSelectorTerms[0].MatchFields[0].Values = []string{pod.Spec.NodeName}
	claim.Status.Allocation.Devices.Config = []resourcev1.DeviceAllocationConfiguration{{
		Source: resourcev1.AllocationConfigSourceClaim,
		DeviceConfiguration: resourcev1.DeviceConfiguration{Opaque: &resourcev1.OpaqueDeviceConfiguration{
			Driver: driverName, Parameters: runtime.RawExtension{Raw: fmt.Appendf(nil, `{"apiVersion": %q, "kind": %q, "domainID": %q}`, apiVersion, kind, domain)},
		}},
	}}
	return claim
}

// newWorker is a Pod on a node, with a claim for a channel.
func newWorker(name, node string) *corev1.Pod {
	pod := claimstest.NewPod(name, "of-"+name)
	pod.Spec.NodeName = node
	return pod
}

// newDaemon is a daemon Pod that runs on a node, with a claim for a daemon.
func newDaemon(node, ip string, ready corev1.ConditionStatus) *corev1.Pod {
	pod := newWorker("daemon-on-"+node, node)
	pod.Namespace = driverNamespace
	pod.Status.Phase, pod.Status.PodIP = corev1.PodRunning, ip
	setReady(pod, ready, ready)
	return pod
}

// setReady sets what a Pod's conditions say of the Pod, and of its containers.
func setReady(pod *corev1.Pod, ready, containers corev1.ConditionStatus) {
	pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: ready}, {Type: corev1.ContainersReady, Status: containers}}
}

// newDomain is a ComputeDomain as the controller leaves it, whose status lists nodes that are ready.
func newDomain(uid string, ready ...string) *unstructured.Unstructured {
	object := &unstructured.Unstructured{}
	object.SetGroupVersionKind(apiVersion.WithKind("ComputeDomain"))
	object.SetNamespace("default")
	object.SetName("domain-" + uid)
	object.SetUID(types.UID(uid))
	nodes := []any{}
	for _, node := range ready {
		nodes = append(nodes, map[string]any{"name": node, "status": statusReady})
	}
	object.Object["status"] = map[string]any{"status": statusNotReady, "nodes": nodes}
	return object
}
