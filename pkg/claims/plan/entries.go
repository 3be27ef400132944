package plan

import (
	"encoding/json"
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
	id := DeviceID{Driver: result.Driver, Pool: result.Pool, Device: result.Device}
	if result.ShareID != nil {
		id.Share = string(*result.ShareID)
	}
	return id
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
	if len(e.Devices) == 0 {
		return true
	}
	if !ManagedBy(e.Claim, Manager) {
		return false
	}
	for i := range e.Devices {
		entry := EntryOf(e.Claim, EntryID(&e.Devices[i]))
		if entry == nil || e.NamePods && !sameReport(entry, &e.Devices[i]) {
			return false
		}
	}
	return true
}

func sameReport(a, b *resourcev1.AllocatedDeviceStatus) bool {
	return sameData(a.Data, b.Data) && apiequality.Semantic.DeepEqual(a.NetworkData, b.NetworkData)
}

// sameData compares JSON, since the API server does not keep the order of keys.
func sameData(a, b *runtime.RawExtension) bool {
	if a == nil || b == nil {
		return a == b
	}
	return canonical(a.Raw) == canonical(b.Raw)
}

// canonical is JSON with its keys in order.
func canonical(data []byte) string {
	var value any
	if err := json.Unmarshal(data, &value); err != nil {
		return string(data)
	}
	encoded, err := json.Marshal(value)
	if err != nil {
		return string(data)
	}
	return string(encoded)
}
