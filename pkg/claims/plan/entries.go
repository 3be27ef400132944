package plan

import (
	"bytes"
	"encoding/json"
	"reflect"
	"slices"

	resourcev1 "k8s.io/api/resource/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// The field managers of kwok-dra in ResourceClaims. Binding conditions have one
// of their own: they are set before the claim is prepared, and stay then.
const (
	Manager        = "kwok-dra"
	BindingManager = "kwok-dra-binding"
)

// Entries are what a claim is to show of its devices.
type Entries struct {
	Claim   *resourcev1.ResourceClaim
	Devices []resourcev1.AllocatedDeviceStatus
	// NamePods says that they name the Pods, and change with them.
	NamePods bool
}

// DeviceID identifies an entry of status.devices.
type DeviceID struct {
	Driver, Pool, Device string
	Share                string
}

// ResultID is the identity of an allocated device.
func ResultID(result *resourcev1.DeviceRequestAllocationResult) DeviceID {
	entry := EntryFor(result)
	return EntryID(&entry)
}

// EntryID is the identity of an entry.
func EntryID(entry *resourcev1.AllocatedDeviceStatus) DeviceID {
	id := DeviceID{Driver: entry.Driver, Pool: entry.Pool, Device: entry.Device}
	if entry.ShareID != nil {
		id.Share = *entry.ShareID
	}
	return id
}

// EntryOf finds what a claim shows of a device, or nil.
func EntryOf(claim *resourcev1.ResourceClaim, id DeviceID) *resourcev1.AllocatedDeviceStatus {
	i := slices.IndexFunc(claim.Status.Devices, func(e resourcev1.AllocatedDeviceStatus) bool { return EntryID(&e) == id })
	if i < 0 {
		return nil
	}
	return &claim.Status.Devices[i]
}

// EntryFor is an entry for a result that says nothing yet.
func EntryFor(result *resourcev1.DeviceRequestAllocationResult) resourcev1.AllocatedDeviceStatus {
	entry := resourcev1.AllocatedDeviceStatus{Driver: result.Driver, Pool: result.Pool, Device: result.Device}
	if result.ShareID != nil {
		entry.ShareID = new(string(*result.ShareID))
	}
	return entry
}

// ManagedBy reports whether a field manager has entries in the claim.
func ManagedBy(claim *resourcev1.ResourceClaim, manager string) bool {
	return len(claim.Status.Devices) > 0 && slices.ContainsFunc(claim.ManagedFields, func(entry metav1.ManagedFieldsEntry) bool {
		return entry.Manager == manager
	})
}

// Shown reports whether the claim shows what is wanted. Once an entry is there it
// is not written again, unless it names Pods: a driver prepares a claim once.
func (e *Entries) Shown() bool {
	lacks := func(want resourcev1.AllocatedDeviceStatus) bool {
		entry := EntryOf(e.Claim, EntryID(&want))
		return entry == nil ||
			e.NamePods && (!sameData(entry.Data, want.Data) || !apiequality.Semantic.DeepEqual(entry.NetworkData, want.NetworkData))
	}
	return len(e.Devices) == 0 || ManagedBy(e.Claim, Manager) && !slices.ContainsFunc(e.Devices, lacks)
}

// sameData compares JSON, since the API server does not keep the order of keys.
func sameData(a, b *runtime.RawExtension) bool {
	if a == nil || b == nil {
		return a == b
	}
	var before, after any
	return bytes.Equal(a.Raw, b.Raw) ||
		json.Unmarshal(a.Raw, &before) == nil && json.Unmarshal(b.Raw, &after) == nil && reflect.DeepEqual(before, after)
}
