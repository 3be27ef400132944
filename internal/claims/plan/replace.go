package plan

import (
	"encoding/json"
	"slices"
	"strings"

	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kwok-dra/kwok-dra/internal/observe/facts"
)

// Replace changes a claim as a server-side apply of the write would. The claim must have all its managed
// fields, and the entries to write their times.
func (w *ClaimWrite) Replace(claim *resourcev1.ResourceClaim) {
	owned, isBinding := w.ownedEntries(claim), w.Manager == facts.BindingManager
	wanted := func(id facts.DeviceID) bool {
		return slices.ContainsFunc(w.Entries, func(e resourcev1.AllocatedDeviceStatus) bool { return facts.EntryID(&e) == id })
	}
	for _, id := range owned {
		entry := facts.EntryOf(claim, id)
		if entry == nil {
			continue
		}
		isBindingCondition := func(kind string) bool {
			return slices.ContainsFunc(claim.Status.Allocation.Devices.Results, func(result resourcev1.DeviceRequestAllocationResult) bool {
				return facts.ResultID(&result) == id && (slices.Contains(result.BindingConditions, kind) || slices.Contains(result.BindingFailureConditions, kind))
			})
		}
		// Binding conditions belong to one manager, everything else to the other.
		entry.Conditions = slices.DeleteFunc(entry.Conditions, func(c metav1.Condition) bool { return isBindingCondition(c.Type) == isBinding })
		if !isBinding {
			entry.Data, entry.NetworkData = nil, nil
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
