package adapters

import (
	"encoding/json"
	"slices"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/kwok-dra/kwok-dra/internal/config"
	"github.com/kwok-dra/kwok-dra/internal/controller/installation"
	"github.com/kwok-dra/kwok-dra/internal/status"
	"github.com/kwok-dra/kwok-dra/pkg/api/v1alpha1"
)

// The types of the conditions of a DRAConfig, and the names of the other fields of its status.
const (
	conditionReady     = "Ready"
	conditionValidated = "ValidationSucceeded"

	nodeCountField  = "nodeCount"
	sliceCountField = "resourceSliceCount"
)

// draConfigStatus is the status of a DRAConfig.
type draConfigStatus struct {
	Conditions         []metav1.Condition `json:"conditions,omitempty"`
	NodeCount          *int32             `json:"nodeCount,omitempty"`
	ResourceSliceCount *int32             `json:"resourceSliceCount,omitempty"`
}

// without returns the status without some fields and conditions.
func (s draConfigStatus) without(names sets.Set[string]) draConfigStatus {
	s.Conditions = slices.DeleteFunc(slices.Clone(s.Conditions), func(c metav1.Condition) bool { return names.Has(c.Type) })
	if names.Has(nodeCountField) {
		s.NodeCount = nil
	}
	if names.Has(sliceCountField) {
		s.ResourceSliceCount = nil
	}
	return s
}

// planDRAConfigStatus plans the status of a DRAConfig. What another field manager has written of it
// stays as it is: two writers would overwrite each other forever.
func planDRAConfigStatus(_ installation.ID, object config.Acceptance, all status.Totals, now metav1.Time) *status.Patch {
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
	foreign := foreignFields(object.Source)
	planned, shown = planned.without(foreign), shown.without(foreign)
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

// foreignFields returns the fields and the types of conditions that kwok-dra would write, and
// another field manager has written.
func foreignFields(object *unstructured.Unstructured) sets.Set[string] {
	foreign := sets.New[string]()
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
		for _, name := range []string{nodeCountField, sliceCountField} {
			if fields.Status["f:"+name] != nil {
				foreign.Insert(name)
			}
		}
		conditions, hasConditions := fields.Status["f:conditions"]
		ownsList := hasConditions && len(conditions) == 0 // as in a definition with an atomic list
		for _, name := range []string{conditionReady, conditionValidated} {
			if ownsList || conditions[`k:{"type":"`+name+`"}`] != nil {
				foreign.Insert(name)
			}
		}
	}
	return foreign
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
