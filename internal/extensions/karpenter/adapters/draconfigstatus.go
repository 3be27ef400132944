package adapters

import (
	"encoding/json"
	"slices"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kwok-dra/kwok-dra/internal/config"
	"github.com/kwok-dra/kwok-dra/internal/controller/installation"
	"github.com/kwok-dra/kwok-dra/internal/status"
	"github.com/kwok-dra/kwok-dra/pkg/api/v1alpha1"
)

// The types of the conditions of a DRAConfig.
const (
	conditionReady     = "Ready"
	conditionValidated = "ValidationSucceeded"
)

// draConfigStatus is the status of a DRAConfig.
type draConfigStatus struct {
	Conditions         []metav1.Condition `json:"conditions,omitempty"`
	NodeCount          *int32             `json:"nodeCount,omitempty"`
	ResourceSliceCount *int32             `json:"resourceSliceCount,omitempty"`
}

// planDRAConfigStatus plans the status of a DRAConfig. If another field manager has written any
// part that kwok-dra would write, the status stays as it is: two writers would overwrite each
// other forever.
func planDRAConfigStatus(_ installation.ID, object config.Acceptance, all status.Totals, now metav1.Time) *status.Patch {
	if hasForeignStatus(object.Source) {
		return nil
	}
	shown := status.Shown[draConfigStatus](object.Source)
	shown.Conditions = slices.DeleteFunc(shown.Conditions, func(c metav1.Condition) bool {
		return c.Type != conditionReady && c.Type != conditionValidated
	})
	if status.KeepsShown(object, shown.Conditions, conditionValidated) {
		return nil
	}
	planned, wanted := shown, []metav1.Condition{status.AcceptedCondition(conditionValidated, object)}
	planned.Conditions = slices.Clone(shown.Conditions)
	if !status.IsShownRefused(object, shown.Conditions, conditionValidated) {
		wanted = append(wanted, readyCondition(object, all))
		// Karpenter expects no counts on a new DRAConfig, so there are none before the first node.
		if nodes := all.Published + all.Waiting + all.Failing; nodes > 0 || shown.NodeCount != nil {
			planned.NodeCount, planned.ResourceSliceCount = new(int32(nodes)), new(int32(all.Slices))
		}
	}
	status.SetConditions(&planned.Conditions, object.Generation, now, wanted...)
	if apiequality.Semantic.DeepEqual(planned, shown) {
		return nil
	}
	timeless := planned
	timeless.Conditions = status.WithoutTimes(planned.Conditions)
	return &status.Patch{Type: types.ApplyPatchType, Options: metav1.PatchOptions{FieldManager: v1alpha1.ManagedByValue, Force: new(false)}, Body: map[string]any{
		"apiVersion": object.Source.GetAPIVersion(), "kind": object.Source.GetKind(),
		"metadata": map[string]any{"name": object.Source.GetName()}, "status": planned,
	}, Content: timeless}
}

// hasForeignStatus reports whether another field manager has written a part of the status that
// kwok-dra would write.
func hasForeignStatus(object *unstructured.Unstructured) bool {
	for _, entry := range object.GetManagedFields() {
		if entry.Manager == v1alpha1.ManagedByValue || entry.FieldsV1 == nil {
			continue
		}
		var fields struct {
			Status map[string]map[string]any `json:"f:status"`
		}
		if err := json.Unmarshal(entry.FieldsV1.GetRawBytes(), &fields); err != nil {
			continue
		}
		conditions, hasConditions := fields.Status["f:conditions"]
		ownsList := hasConditions && len(conditions) == 0 // as in a definition with an atomic list
		if ownsList || fields.Status["f:nodeCount"] != nil || fields.Status["f:resourceSliceCount"] != nil ||
			conditions[`k:{"type":"`+conditionReady+`"}`] != nil ||
			conditions[`k:{"type":"`+conditionValidated+`"}`] != nil {
			return true
		}
	}
	return false
}

// readyCondition says whether everything is published that should be. A DRAConfig without nodes is
// Ready: Karpenter makes nodes only when Pods need them.
func readyCondition(object config.Acceptance, all status.Totals) metav1.Condition {
	condition := status.PublishedCondition(conditionReady, object, all)
	switch {
	case object.Err != nil && len(object.Templates) > 0:
		condition = status.AcceptedCondition(conditionReady, object)
		condition.Message = "the newest version is refused, and the last good one is in force"
	case object.Err == nil && object.Pending == nil && all.Failing == 0:
		condition.Status = metav1.ConditionTrue
	}
	return condition
}
