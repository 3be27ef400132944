package plan

import (
	"bytes"
	"encoding/json"
	"reflect"
	"slices"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/kwok-dra/kwok-dra/internal/observe/facts"
)

// Driver is what is known of the DRA drivers of one node in one look at a Pod. Asking it changes nothing, and it never
// waits: if a driver that is a process has to be asked, the plan has a Call, and a later look has the answer.
type Driver interface {
	// Has reports whether the Driver answers for the driver of that name. Plans ignore all others.
	Has(driver string) bool
	// Registered reports whether a driver has registered with the node's kubelet. A driver that the
	// Driver does not have counts as registered. A *Need names what has to be read first.
	Registered(driver string) (bool, error)
	// Prepare reports how far NodePrepareResources is for claims. A *Failure is the answer of a driver, a *Pending that of
	// one that still tries.
	Prepare(claims []*resourcev1.ResourceClaim) (Answer, error)
	// Entries returns what kwok-dra writes to the status of a claim for its drivers, when the claim is
	// prepared for these Pods.
	Entries(claim *resourcev1.ResourceClaim, pods []*corev1.Pod) (*Entries, error)
	// Unprepare reports how far NodeUnprepareResources is for the Pod, the last user of these claims.
	// After an error, such as from a driver that is gone, it is retried.
	Unprepare(last []*resourcev1.ResourceClaim) (Answer, error)
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
	CallPrepare   = "NodePrepareResources"
	CallUnprepare = "NodeUnprepareResources"
)

// Unavailable returns the failure of a call of a driver that has registered but cannot be reached.
func Unavailable(call, driver string) error {
	return Failed(ReasonUnavailable, "%s: rpc error: code = Unavailable desc = connection error: "+
		"desc = \"transport: Error while dialing: dial unix /var/lib/kubelet/plugins/%s/dra.sock: connect: connection refused\"", call, driver)
}

// NotRegistered returns the failure of a driver that is not registered.
func NotRegistered(driver string) error {
	return Failed(ReasonNotRegistered, "DRA driver %s is not registered", driver)
}

// Health is what Pods show of the health of their devices. An extension provides it.
type Health interface {
	// ContainerStatuses are those that the view's Pod gets as its claims are prepared. They are nil if it shows nothing more.
	ContainerStatuses(v *PodView) []corev1.ContainerStatus
	// Patch is what a Pod lacks whose claims are prepared, or nil.
	Patch(v *PodView) *Patch
}

// Entries are the entries of status.devices that a claim should show.
type Entries struct {
	Claim   *resourcev1.ResourceClaim
	Devices []resourcev1.AllocatedDeviceStatus
	// NamePods says that the entries name the claim's Pods, and change with them.
	NamePods bool
}

// Shown reports whether the claim shows the entries. An entry that exists is not written again, unless it
// names Pods: a driver prepares a claim once.
func (e *Entries) Shown() bool {
	lacks := func(want resourcev1.AllocatedDeviceStatus) bool {
		entry := facts.EntryOf(e.Claim, facts.EntryID(&want))
		return entry == nil ||
			e.NamePods && (!sameData(entry.Data, want.Data) || !apiequality.Semantic.DeepEqual(entry.NetworkData, want.NetworkData))
	}
	return len(e.Devices) == 0 || facts.ManagedBy(e.Claim, facts.Manager) && !slices.ContainsFunc(e.Devices, lacks)
}

// sameData compares JSON by content, since the API server does not keep the order of keys.
func sameData(a, b *runtime.RawExtension) bool {
	if a == nil || b == nil {
		return a == b
	}
	var before, after any
	return bytes.Equal(a.Raw, b.Raw) ||
		json.Unmarshal(a.Raw, &before) == nil && json.Unmarshal(b.Raw, &after) == nil && reflect.DeepEqual(before, after)
}
