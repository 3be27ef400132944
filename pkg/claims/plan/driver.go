package plan

import (
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
)

// Driver is what is known of the DRA drivers of one node in one look at a Pod. Asking it changes nothing,
// and it never waits: if a driver that is a process has to be asked, the plan has a Call, and a later
// look has the answer.
type Driver interface {
	// Has reports whether the Driver answers for the driver of that name. Plans ignore all others.
	Has(driver string) bool
	// Registered reports whether a driver has registered with the node's kubelet. A driver that the
	// Driver does not have counts as registered. A *Need names what has to be read first.
	Registered(driver string) (bool, error)
	// Prepare reports how far NodePrepareResources is for claims. A *Failure is the answer of a driver.
	Prepare(claims []*resourcev1.ResourceClaim) (Answer, error)
	// Entries returns what kwok-dra writes to the status of a claim for its drivers, when the claim is
	// prepared for these Pods.
	Entries(claim *resourcev1.ResourceClaim, pods []*corev1.Pod) (*Entries, error)
	// Unprepare reports how far NodeUnprepareResources is for the Pod, the last user of these claims.
	// After an error, such as from a driver that is gone, it is retried.
	Unprepare(last []*resourcev1.ResourceClaim) (Answer, error)
	// ReportsHealth reports whether any driver reports the health of its devices.
	ReportsHealth() bool
	// Health returns what the kubelet shows of an allocated device in a Pod. It is nil for a driver that
	// the Driver does not have.
	Health(pod *corev1.Pod, claim *resourcev1.ResourceClaim, result *resourcev1.DeviceRequestAllocationResult) (*Health, error)
}

// Answer says how far drivers are with a call.
type Answer int

// The answers of drivers.
const (
	// Answered says that all drivers have answered.
	Answered Answer = iota
	// NotAsked says that a driver has to be asked.
	NotAsked
	// Outstanding says that a driver has been asked and has not answered yet.
	Outstanding
)

// Call is a call of drivers to make.
type Call struct {
	// Unprepare says to unprepare all claims of the Pod. Otherwise Claims are prepared.
	Unprepare bool
	Claims    []*resourcev1.ResourceClaim
}

// The calls of drivers, as failures name them.
const (
	callPrepare   = "NodePrepareResources"
	callUnprepare = "NodeUnprepareResources"
)

// Unavailable returns the failure of a call to prepare claims whose driver has registered but cannot be reached.
func Unavailable(driver string) error { return unavailableFailure(callPrepare, driver) }

// UnavailableToUnprepare is Unavailable for a call to unprepare claims.
func UnavailableToUnprepare(driver string) error { return unavailableFailure(callUnprepare, driver) }

func unavailableFailure(call, driver string) error {
	return Failed(ReasonUnavailable, "%s: rpc error: code = Unavailable desc = connection error: "+
		"desc = \"transport: Error while dialing: dial unix /var/lib/kubelet/plugins/%s/dra.sock: connect: connection refused\"", call, driver)
}

// NotRegistered returns the failure of a driver that is not registered.
func NotRegistered(driver string) error {
	return Failed(ReasonNotRegistered, "DRA driver %s is not registered", driver)
}

// Health is the health of a device as the kubelet shows it.
type Health struct {
	corev1.ResourceHealth

	// Reported says that the driver of the device reports health.
	Reported bool
}
