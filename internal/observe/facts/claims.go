package facts

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// NodeOf is the name of the node that a claim is allocated on, or "" if it is not allocated or can be used on several
// nodes.
func NodeOf(claim *resourcev1.ResourceClaim) string {
	if claim.Status.Allocation == nil || claim.Status.Allocation.NodeSelector == nil {
		return ""
	}
	for _, term := range claim.Status.Allocation.NodeSelector.NodeSelectorTerms {
		for _, match := range term.MatchFields {
			if match.Key == "metadata.name" && match.Operator == corev1.NodeSelectorOpIn && len(match.Values) == 1 {
				return match.Values[0]
			}
		}
	}
	return ""
}

// HasBindingConditions reports whether a claim has devices with binding conditions.
func HasBindingConditions(claim *resourcev1.ResourceClaim) bool {
	return claim.Status.Allocation != nil && slices.ContainsFunc(claim.Status.Allocation.Devices.Results,
		func(result resourcev1.DeviceRequestAllocationResult) bool { return len(result.BindingConditions) > 0 })
}

// The field managers of kwok-dra in ResourceClaims. Binding conditions have their own: they are set before the claim is
// prepared, and stay after that.
const (
	Manager        = "kwok-dra"
	BindingManager = "kwok-dra-binding"
)

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

// EntryID is the identity of an entry of status.devices.
func EntryID(entry *resourcev1.AllocatedDeviceStatus) DeviceID {
	id := DeviceID{Driver: entry.Driver, Pool: entry.Pool, Device: entry.Device}
	if entry.ShareID != nil {
		id.Share = *entry.ShareID
	}
	return id
}

// EntryOf finds the entry of a device in status.devices, or nil.
func EntryOf(claim *resourcev1.ResourceClaim, id DeviceID) *resourcev1.AllocatedDeviceStatus {
	i := slices.IndexFunc(claim.Status.Devices, func(e resourcev1.AllocatedDeviceStatus) bool { return EntryID(&e) == id })
	if i < 0 {
		return nil
	}
	return &claim.Status.Devices[i]
}

// EntryFor makes an empty entry for an allocation result.
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
