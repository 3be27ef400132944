package inventory

import (
	"cmp"

	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kwok-dra/kwok-dra/internal/observe/facts"
)

// Source is what inventories are taken from. All but IsNodeReady and TaintRules are
// required, and may be called at any time.
type Source struct {
	// Nodes names the fake nodes, also those that have no devices.
	Nodes func() []string
	// IsNodeReady reports whether Pods can run on a node, as the function IsNodeReady does.
	// Without it, all nodes are ready.
	IsNodeReady func(node string) bool
	// Slices are what is published.
	Slices func() []Slice
	// Allocations are the devices that claims have.
	Allocations func() []Allocation
	// TaintRules are those of the cluster, and what could not be read of them, if anything.
	TaintRules func() (rules []TaintRule, unseen string)
	// Changes counts, and at least once for all that changes what the others return.
	Changes func() uint64
}

// Slice is what an inventory needs of a ResourceSlice.
type Slice struct {
	// Node is empty where nodes share the pool.
	Node, Driver, Pool, Name string
	// Generation and Count are those of the pool, by what the slice says.
	Generation, Count int64
	Devices           facts.DeviceNames
	// Sharing is what devices have to share.
	Sharing Sharing
	// Facts are what devices are.
	Facts Facts
	// Taints are by device.
	Taints map[string][]Taint
}

// SliceOf returns what an inventory needs of a slice, without Facts and Taints.
func SliceOf(slice *resourcev1.ResourceSlice) Slice {
	spec := &slice.Spec
	kept := Slice{
		Driver: spec.Driver, Pool: spec.Pool.Name, Name: slice.Name, Generation: spec.Pool.Generation, Count: spec.Pool.ResourceSliceCount,
		Devices: facts.NamesOf(spec.Devices), Sharing: SharingOf(spec),
	}
	if spec.NodeName != nil {
		kept.Node = *spec.NodeName
	}
	return kept
}

// Allocation is a device that a claim has.
type Allocation struct {
	Driver, Pool, Device string
	// Node is where the claim is allocated, if that is one node.
	Node string
	// Covered says that Slices would have the device if anybody published it. Without it
	// the device may be in a slice that the source does not read.
	Covered bool
	Claim   Claim
}

// AllocationOf returns what a claim says of a device that it has. It leaves out whether the device
// is prepared, and for which Pods.
func AllocationOf(claim *resourcev1.ResourceClaim, result *resourcev1.DeviceRequestAllocationResult) Allocation {
	has := Claim{
		Namespace: claim.Namespace, Name: claim.Name, Consumed: result.ConsumedCapacity,
		AdminAccess: result.AdminAccess != nil && *result.AdminAccess,
	}
	if result.ShareID != nil {
		has.ShareID = string(*result.ShareID)
	}
	if ready := ReadyOf(claim, result); ready != nil && ready.Status == metav1.ConditionFalse {
		has.Failure = cmp.Or(ready.Message, ready.Reason)
	}
	return Allocation{Driver: result.Driver, Pool: result.Pool, Device: result.Device, Claim: has}
}

// ReadyOf returns the condition by which a driver says that a device is ready, or nil: many drivers
// write none.
func ReadyOf(claim *resourcev1.ResourceClaim, result *resourcev1.DeviceRequestAllocationResult) *metav1.Condition {
	for i := range claim.Status.Devices {
		d := &claim.Status.Devices[i]
		sameShare := (d.ShareID == nil) == (result.ShareID == nil) && (d.ShareID == nil || *d.ShareID == string(*result.ShareID))
		if sameShare && d.Driver == result.Driver && d.Pool == result.Pool && d.Device == result.Device {
			return meta.FindStatusCondition(d.Conditions, "Ready")
		}
	}
	return nil
}
