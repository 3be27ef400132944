package plan

import (
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
)

// Driver answers what the kubelet asks of the DRA drivers of one node. It stands in
// for all drivers that it has; what is allocated of others is left alone.
type Driver interface {
	// Has reports whether it stands in for a driver.
	Has(driver string) bool
	// Registered reports whether a driver has registered with the node's kubelet. One
	// that it does not have always has.
	Registered(driver string) (bool, error)
	// Prepare answers NodePrepareResources for a claim. A *Failure is the drivers'
	// own answer.
	Prepare(claim *resourcev1.ResourceClaim) error
	// Entries are what the drivers write to the status of a claim that is prepared for
	// those Pods.
	Entries(claim *resourcev1.ResourceClaim, pods []*corev1.Pod) (*Entries, error)
	// Unprepare answers NodeUnprepareResources for a claim.
	Unprepare(claim *resourcev1.ResourceClaim) error
	// ReportsHealth reports whether any driver reports the health of its devices.
	ReportsHealth() bool
	// Health is what the kubelet shows of an allocated device in a Pod, or nil of a
	// driver that it does not have.
	Health(pod *corev1.Pod, claim *resourcev1.ResourceClaim, result *resourcev1.DeviceRequestAllocationResult) (*Health, error)
}

// Health is what the kubelet shows of a device.
type Health struct {
	corev1.ResourceHealth

	// Reported says that the driver of the device reports health.
	Reported bool
}
