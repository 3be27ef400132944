package plan

import (
	"encoding/json"
	"slices"
	"strings"

	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kwok-dra/kwok-dra/internal/observe/facts"
)

// NeedsUpdate reports whether the manager has written the claim by an update before. Server-side apply
// cannot withdraw what was written that way.
func (w *ClaimWrite) NeedsUpdate(claim *resourcev1.ResourceClaim) bool {
	return slices.ContainsFunc(claim.ManagedFields, func(field metav1.ManagedFieldsEntry) bool {
		return field.Manager == w.Manager && field.Operation == metav1.ManagedFieldsOperationUpdate
	})
}

// Replace changes a claim as a server-side apply of the write would. The claim must have all its managed
// fields, and the entries to write their times.
func (w *ClaimWrite) Replace(claim *resourcev1.ResourceClaim) {
	owned := w.ownedEntries(claim)
	wanted := func(id facts.DeviceID) bool {
		return slices.ContainsFunc(w.Entries, func(e resourcev1.AllocatedDeviceStatus) bool { return facts.EntryID(&e) == id })
	}
	for _, id := range owned {
		if entry := facts.EntryOf(claim, id); entry != nil {
			w.clearEntry(claim, entry)
		}
	}
	claim.Status.Devices = slices.DeleteFunc(claim.Status.Devices, func(entry resourcev1.AllocatedDeviceStatus) bool {
		id := facts.EntryID(&entry)
		return slices.Contains(owned, id) && !wanted(id) && len(entry.Conditions) == 0 && entry.Data == nil && entry.NetworkData == nil
	})
	for i := range w.Entries {
		want := &w.Entries[i]
		entry := facts.EntryOf(claim, facts.EntryID(want))
		if entry == nil {
			claim.Status.Devices = append(claim.Status.Devices, *want.DeepCopy())
			continue
		}
		for _, condition := range want.Conditions {
			entry.Conditions = slices.DeleteFunc(entry.Conditions, func(c metav1.Condition) bool { return c.Type == condition.Type })
			entry.Conditions = append(entry.Conditions, condition)
		}
		if want.Data != nil {
			entry.Data = want.Data.DeepCopy()
		}
		if want.NetworkData != nil {
			entry.NetworkData = want.NetworkData.DeepCopy()
		}
	}
}

// ownedEntries lists the entries that the manager has written.
func (w *ClaimWrite) ownedEntries(claim *resourcev1.ResourceClaim) []facts.DeviceID {
	var ids []facts.DeviceID
	for _, managed := range claim.ManagedFields {
		if managed.Manager != w.Manager || managed.Subresource != "status" || managed.FieldsV1 == nil {
			continue
		}
		var fields struct {
			Status struct {
				Devices map[string]any `json:"f:devices"`
			} `json:"f:status"`
		}
		if json.Unmarshal(managed.FieldsV1.GetRawBytes(), &fields) != nil {
			continue
		}
		for key := range fields.Status.Devices {
			entry := resourcev1.AllocatedDeviceStatus{}
			if key, ok := strings.CutPrefix(key, "k:"); ok && json.Unmarshal([]byte(key), &entry) == nil {
				ids = append(ids, facts.EntryID(&entry))
			}
		}
	}
	return ids
}

// clearEntry removes from an entry what belongs to the manager: binding conditions, or everything else.
func (w *ClaimWrite) clearEntry(claim *resourcev1.ResourceClaim, entry *resourcev1.AllocatedDeviceStatus) {
	ofBinding := func(kind string) bool {
		return slices.ContainsFunc(claim.Status.Allocation.Devices.Results, func(result resourcev1.DeviceRequestAllocationResult) bool {
			return facts.ResultID(&result) == facts.EntryID(entry) &&
				(slices.Contains(result.BindingConditions, kind) || slices.Contains(result.BindingFailureConditions, kind))
		})
	}
	entry.Conditions = slices.DeleteFunc(entry.Conditions, func(c metav1.Condition) bool {
		return ofBinding(c.Type) == (w.Manager == facts.BindingManager)
	})
	if w.Manager == facts.Manager {
		entry.Data, entry.NetworkData = nil, nil
	}
}
