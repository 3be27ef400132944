package status

import (
	"encoding/json"
	"slices"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kwok-dra/kwok-dra/pkg/api/v1alpha1"
	"github.com/kwok-dra/kwok-dra/pkg/config"
	"github.com/kwok-dra/kwok-dra/pkg/installation"
)

// draConfigKind is a kind of Karpenter.
const draConfigKind = "DRAConfig"

// The types of the conditions of a DRAConfig.
const (
	conditionReady     = "Ready"
	conditionValidated = "ValidationSucceeded"
)

// draConfigStatus is what the status of a DRAConfig has.
type draConfigStatus struct {
	Conditions         []metav1.Condition `json:"conditions,omitempty"`
	NodeCount          *int32             `json:"nodeCount,omitempty"`
	ResourceSliceCount *int32             `json:"resourceSliceCount,omitempty"`
}

// planDRAConfig makes the write that the status of a DRAConfig needs. A status of
// which someone else has written any part that kwok-dra would write is theirs, and
// remains as it is: two writers would overwrite each other forever.
func planDRAConfig(_ installation.ID, object config.Acceptance, all totals, now metav1.Time) *patch {
	if isForeign(object.Source) {
		return nil
	}
	shown := statusOf[draConfigStatus](object.Source)
	shown.Conditions = slices.DeleteFunc(shown.Conditions, func(c metav1.Condition) bool {
		return c.Type != conditionReady && c.Type != conditionValidated // another's
	})
	if leaves(object, shown.Conditions, conditionValidated) {
		return nil
	}
	status, wanted := shown, []metav1.Condition{accepted(conditionValidated, object)}
	status.Conditions = slices.Clone(shown.Conditions)
	if !othersKnow(object, shown.Conditions, conditionValidated) {
		wanted = append(wanted, ready(object, all))
		// Before the first node there are no counts: Karpenter expects none of a DRAConfig
		// that is new.
		if nodes := all.published + all.waiting + all.failing; nodes > 0 || shown.NodeCount != nil {
			status.NodeCount, status.ResourceSliceCount = new(int32(nodes)), new(int32(all.Slices))
		}
	}
	set(&status.Conditions, object.Generation, now, wanted...)
	if apiequality.Semantic.DeepEqual(status, shown) {
		return nil
	}
	timeless := status
	timeless.Conditions = withoutTimes(status.Conditions)
	return &patch{as: types.ApplyPatchType, options: metav1.PatchOptions{FieldManager: v1alpha1.ManagedByValue, Force: new(false)}, body: map[string]any{
		"apiVersion": object.Source.GetAPIVersion(), "kind": object.Source.GetKind(),
		"metadata": map[string]any{"name": object.Source.GetName()}, "status": status,
	}, content: timeless}
}

// isForeign reports whether another field manager has written something that
// kwok-dra would write.
func isForeign(source *unstructured.Unstructured) bool {
	for _, entry := range source.GetManagedFields() {
		if entry.Manager == v1alpha1.ManagedByValue || entry.FieldsV1 == nil {
			continue
		}
		var fields struct {
			Status map[string]map[string]any `json:"f:status"`
		}
		if err := json.Unmarshal(entry.FieldsV1.GetRawBytes(), &fields); err != nil {
			continue
		}
		conditions, written := fields.Status["f:conditions"]
		whole := written && len(conditions) == 0 // where the definition takes the list for one
		if whole || fields.Status["f:nodeCount"] != nil || fields.Status["f:resourceSliceCount"] != nil ||
			conditions[`k:{"type":"`+conditionReady+`"}`] != nil ||
			conditions[`k:{"type":"`+conditionValidated+`"}`] != nil {
			return true
		}
	}
	return false
}

// ready reports whether all that is to be there is there. That no node is there yet
// is none of the object's failings: Karpenter makes nodes when they are wanted.
func ready(object config.Acceptance, all totals) metav1.Condition {
	condition := published(conditionReady, object, all)
	switch {
	case object.Err != nil && len(object.Templates) > 0:
		condition.Status, condition.Reason = metav1.ConditionFalse, reasonInvalid
		condition.Message = "the newest version is refused, and the last good one is in force"
	case object.Err == nil && object.Pending == nil && all.failing == 0:
		condition.Status = metav1.ConditionTrue
	}
	return condition
}
