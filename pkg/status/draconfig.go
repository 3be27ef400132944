package status

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/dynamic"
	"k8s.io/klog/v2"

	"github.com/kwok-dra/kwok-dra/pkg/api/v1alpha1"
	"github.com/kwok-dra/kwok-dra/pkg/config"
)

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

// formsOf are the forms of those of the kinds that have a status of ours.
func formsOf(kinds []config.Kind) []form {
	var forms []form
	for _, kind := range kinds {
		switch kind.Name {
		case v1alpha1.ResourcePoolTemplateKind:
			forms = append(forms, form{kind, planTemplate})
		case config.DRAConfigKind:
			forms = append(forms, form{kind, planDRAConfig})
		}
	}
	return forms
}

// planDRAConfig makes the write that the status of a DRAConfig needs. A status of
// which someone else has written any part that kwok-dra would write is theirs, and
// remains as it is: two writers would overwrite each other forever.
func planDRAConfig(object config.Acceptance, all totals, now metav1.Time) write {
	if isForeign(object.Source) {
		return nil
	}
	shown := statusOf[draConfigStatus](object.Source)
	status := draConfigStatus{
		Conditions:         ownConditions(shown.Conditions),
		NodeCount:          new(int32(all.published + all.waiting + all.failing)),
		ResourceSliceCount: new(int32(all.slices)),
	}
	before := draConfigStatus{slices.Clone(status.Conditions), shown.NodeCount, shown.ResourceSliceCount}
	set(&status.Conditions, object.Generation, now, validated(object), ready(object, all))
	if apiequality.Semantic.DeepEqual(status, before) {
		return nil
	}
	return func(ctx context.Context, client dynamic.ResourceInterface, _ string) error {
		return applyStatus(ctx, client, object.Source, status)
	}
}

// applyStatus applies a status and gives way to who has written one meanwhile.
func applyStatus(ctx context.Context, client dynamic.ResourceInterface, source *unstructured.Unstructured, status draConfigStatus) error {
	encoded, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&status)
	if err != nil {
		return fmt.Errorf("encode it: %w", err)
	}
	object := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": source.GetAPIVersion(), "kind": source.GetKind(), "metadata": map[string]any{"name": source.GetName()}, "status": encoded,
	}}
	_, err = client.ApplyStatus(ctx, source.GetName(), object, metav1.ApplyOptions{FieldManager: v1alpha1.ManagedByValue})
	if apierrors.IsConflict(err) {
		klog.FromContext(ctx).Info("Left the status of a DRAConfig to who writes it", "draConfig", source.GetName(), "err", err)
		return nil
	}
	return err
}

// ownConditions are those of kwok-dra's types.
func ownConditions(all []metav1.Condition) []metav1.Condition {
	return slices.DeleteFunc(slices.Clone(all), func(c metav1.Condition) bool {
		return c.Type != conditionReady && c.Type != conditionValidated
	})
}

// isForeign reports whether another field manager has written something that
// kwok-dra would write.
func isForeign(source *unstructured.Unstructured) bool {
	for _, entry := range source.GetManagedFields() {
		if entry.Manager == v1alpha1.ManagedByValue || entry.FieldsV1 == nil {
			continue
		}
		var fields struct {
			Status struct {
				Conditions         map[string]any `json:"f:conditions"`
				NodeCount          map[string]any `json:"f:nodeCount"`
				ResourceSliceCount map[string]any `json:"f:resourceSliceCount"`
			} `json:"f:status"`
		}
		if err := json.Unmarshal(entry.FieldsV1.GetRawBytes(), &fields); err != nil {
			continue
		}
		written := fields.Status
		whole := written.Conditions != nil && len(written.Conditions) == 0 // where the definition takes the list for one
		if whole || written.NodeCount != nil || written.ResourceSliceCount != nil ||
			written.Conditions[keyOf(conditionReady)] != nil || written.Conditions[keyOf(conditionValidated)] != nil {
			return true
		}
	}
	return false
}

// keyOf is how managed fields name a condition.
func keyOf(conditionType string) string {
	return fmt.Sprintf(`k:{"type":%q}`, conditionType)
}

func validated(object config.Acceptance) metav1.Condition {
	condition := accepted(object)
	condition.Type = conditionValidated
	return condition
}

// ready reports whether all that is to be there is there. That no node is there yet
// is none of the object's failings: Karpenter makes nodes when they are wanted.
func ready(object config.Acceptance, all totals) metav1.Condition {
	condition := published(object, all)
	condition.Type = conditionReady
	switch {
	case object.Err != nil && len(object.Templates) > 0:
		condition.Status, condition.Reason = metav1.ConditionFalse, reasonInvalid
		condition.Message = "the newest version is refused, and the last good one is in force"
	case object.Err == nil && all.failing == 0:
		condition.Status = metav1.ConditionTrue
	}
	return condition
}
