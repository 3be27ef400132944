package plan

import (
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
)

// Driver answers what the kubelet asks of the DRA drivers of one node, in one look at a
// Pod. It never waits: where a driver is a process of its own, the plan says that it is to be
// asked, and a later look has its answer.
type Driver interface {
	// Has reports whether it answers for a driver. What is allocated of others is left alone.
	Has(driver string) bool
	// Registered reports whether a driver has registered with the node's kubelet. One
	// that it does not have always has. A *Need says what is to be read for that.
	Registered(driver string) (bool, error)
	// Prepare is how far NodePrepareResources is for claims. A *Failure is the drivers'
	// own answer.
	Prepare(claims []*resourcev1.ResourceClaim) (Answer, error)
	// Entries are what kwok-dra writes to the status of a claim in the name of drivers, when it is
	// prepared for those Pods.
	Entries(claim *resourcev1.ResourceClaim, pods []*corev1.Pod) (*Entries, error)
	// Unprepare is how far NodeUnprepareResources is for the Pod, which is the last user of those claims. After an error,
	// as of a driver that is not there, it is to be tried again.
	Unprepare(last []*resourcev1.ResourceClaim) (Answer, error)
	// ReportsHealth reports whether any driver reports the health of its devices.
	ReportsHealth() bool
	// Health is what the kubelet shows of an allocated device in a Pod, or nil of a
	// driver that it does not have.
	Health(pod *corev1.Pod, claim *resourcev1.ResourceClaim, result *resourcev1.DeviceRequestAllocationResult) (*Health, error)
}

// Answer is how far drivers are with what is asked of them.
type Answer int

// The answers of drivers.
const (
	// Answered says that no driver is left to be asked.
	Answered Answer = iota
	// NotAsked says that a driver is to be asked.
	NotAsked
	// Outstanding says that a driver has been asked and has not answered.
	Outstanding
)

// Call is what drivers are to be asked.
type Call struct {
	// Unprepare says to unprepare all claims of the Pod, and otherwise Claims are to be prepared.
	Unprepare bool
	Claims    []*resourcev1.ResourceClaim
}

// The calls of drivers, as failures name them.
const (
	callPrepare   = "NodePrepareResources"
	callUnprepare = "NodeUnprepareResources"
)

// Unavailable is the failure to prepare claims by a driver that has registered and cannot be reached.
func Unavailable(driver string) error { return unavailableFailure(callPrepare, driver) }

// UnavailableToUnprepare is the same failure to unprepare them.
func UnavailableToUnprepare(driver string) error { return unavailableFailure(callUnprepare, driver) }

func unavailableFailure(call, driver string) error {
	return Failed(ReasonUnavailable, "%s: rpc error: code = Unavailable desc = connection error: "+
		"desc = \"transport: Error while dialing: dial unix /var/lib/kubelet/plugins/%s/dra.sock: connect: connection refused\"", call, driver)
}

// NotRegistered is the failure of a driver that has not registered, or no longer is.
func NotRegistered(driver string) error {
	return Failed(ReasonNotRegistered, "DRA driver %s is not registered", driver)
}

// Health is what the kubelet shows of a device.
type Health struct {
	corev1.ResourceHealth

	// Reported says that the driver of the device reports health.
	Reported bool
}
