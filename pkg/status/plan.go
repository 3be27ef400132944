package status

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kwok-dra/kwok-dra/pkg/api/v1alpha1"
	"github.com/kwok-dra/kwok-dra/pkg/config"
	"github.com/kwok-dra/kwok-dra/pkg/installation"
	"github.com/kwok-dra/kwok-dra/pkg/resourceslice"
)

// The reasons of the conditions. docs/reference/conditions.md is made from these
// comments.
const (
	// `Accepted=True`. The newest version is in force.
	reasonValid = "Valid"
	// `Accepted=False`. The newest version is refused, and the message says why. The
	// last good one remains in force, if there was one.
	reasonInvalid = "Invalid"
	// `Accepted=False`. Nothing is in force yet, since a part of the configuration has had no
	// good version since kwok-dra began; the message says what is wrong with it.
	reasonPending = "Pending"
	// `Published=True`. The devices are published wherever they should be, and on one
	// node at least.
	reasonPublished = "Published"
	// `Published=False`. Something cannot be published on a node; the message names the
	// first such node and the problem.
	reasonFailing = "Failing"
	// `Published=False`. Nodes are selected, and `publishWhen` matches none of them yet, or
	// none has a driver Pod that is Ready, where the template needs one.
	reasonWaiting = "Waiting"
	// `Published=False`. On all nodes that the template selects, another one of its
	// driver has a higher priority; the message names the first of them.
	reasonHidden = "Hidden"
	// `Published=False`. The template selects no fake node.
	reasonNoNode = "NoNode"
	// `Published=False`. No version of the template has been accepted.
	reasonNoVersion = "NotAccepted"
)

// maxMessage is the API's limit on the message of a condition.
const maxMessage = 32768

// totals are the state of an object's templates on all nodes.
type totals struct {
	// Outcome has the sums, and the template and the problem of the first node, by
	// name, on which it is hidden or has one.
	resourceslice.Outcome

	published, waiting, failing, hidden int64
	// unselected is why the first template selects no node, if that is known.
	unselected string
}

// plus adds their state on one more node, or of a pool that nodes share.
func (t totals) plus(of string, here resourceslice.Outcome) totals {
	t.Slices += here.Slices
	t.Devices += here.Devices
	switch {
	case here.Problem != nil:
		t.failing++
		t.Problem = cmp.Or(t.Problem, fmt.Errorf("%s: %w", of, here.Problem))
	case here.Slices > 0:
		t.published++
	case here.HiddenBy != "":
		t.hidden++
		t.HiddenBy = cmp.Or(t.HiddenBy, here.HiddenBy)
	default:
		t.waiting++
	}
	return t
}

// statusOf reads the status that an object has, or none where it has something else
// there.
func statusOf[T any](source *unstructured.Unstructured) (status T) {
	if given, ok, err := unstructured.NestedMap(source.Object, "status"); ok && err == nil {
		_ = runtime.DefaultUnstructuredConverter.FromUnstructured(given, &status)
	}
	return status
}

// planTemplate makes the write that the status of a ResourcePoolTemplate needs.
func planTemplate(as installation.ID, template config.Acceptance, all totals, now metav1.Time) *patch {
	shown := statusOf[v1alpha1.ResourcePoolTemplateStatus](template.Source)
	if leaves(template, shown.Conditions, v1alpha1.ConditionAccepted) {
		return nil
	}
	status, owner := plan(template, shown, all, now), installation.ID(shown.Installation)
	if owner != "" && apiequality.Semantic.DeepEqual(status, shown) {
		return nil // also where another installation counts the same
	}
	if as != "" {
		status.Installation = string(as)
	}
	if apiequality.Semantic.DeepEqual(status, shown) {
		return nil
	}
	timeless := status
	timeless.Conditions, timeless.Installation = withoutTimes(status.Conditions), ""
	return &patch{as: types.MergePatchType, body: map[string]any{"status": status}, content: timeless, contested: as.IsAnother(owner), owner: owner}
}

// withoutTimes are conditions without the times of their last transitions.
func withoutTimes(conditions []metav1.Condition) []metav1.Condition {
	all := slices.Clone(conditions)
	for i := range all {
		all[i].LastTransitionTime = metav1.Time{}
	}
	return all
}

// plan works out the status that a template should have, from the one that it shows.
func plan(template config.Acceptance, shown v1alpha1.ResourcePoolTemplateStatus, all totals, now metav1.Time) v1alpha1.ResourcePoolTemplateStatus {
	status, wanted := shown, []metav1.Condition{accepted(v1alpha1.ConditionAccepted, template)}
	status.Conditions = slices.Clone(shown.Conditions)
	if !othersKnow(template, shown.Conditions, v1alpha1.ConditionAccepted) {
		status.Nodes, status.Slices, status.Devices = all.published, int64(all.Slices), int64(all.Devices)
		wanted = append(wanted, published(v1alpha1.ConditionPublished, template, all))
	}
	set(&status.Conditions, template.Generation, now, wanted...)
	return status
}

// set sets conditions. Only another status is a transition.
func set(conditions *[]metav1.Condition, generation int64, now metav1.Time, wanted ...metav1.Condition) {
	for _, condition := range wanted {
		condition.ObservedGeneration, condition.LastTransitionTime = generation, now
		if len(condition.Message) > maxMessage {
			condition.Message = strings.ToValidUTF8(condition.Message[:maxMessage], "")
		}
		meta.SetStatusCondition(conditions, condition)
	}
}

func accepted(conditionType string, template config.Acceptance) metav1.Condition {
	condition := metav1.Condition{Type: conditionType, Status: metav1.ConditionTrue, Reason: reasonValid, Message: "the newest version is in force"}
	switch {
	case template.Err != nil:
		condition.Status, condition.Reason, condition.Message = metav1.ConditionFalse, reasonInvalid, template.Err.Error()
	case template.Pending != nil:
		condition.Status, condition.Reason = metav1.ConditionFalse, reasonPending
		condition.Message = "nothing is in force yet: " + template.Pending.Error()
	}
	return condition
}

// leaves reports whether a condition stays as it is shown: of the newest version, while
// nothing is in force here.
func leaves(object config.Acceptance, shown []metav1.Condition, conditionType string) bool {
	condition := meta.FindStatusCondition(shown, conditionType)
	return object.Pending != nil && condition != nil && condition.ObservedGeneration == object.Generation
}

// othersKnow reports whether an object is shown as refused already, and no version of it is
// in force here. What is shown of its devices is from another replica then, or from before a
// restart, and right: what is refused loses nothing.
func othersKnow(object config.Acceptance, shown []metav1.Condition, conditionType string) bool {
	condition := meta.FindStatusCondition(shown, conditionType)
	return object.Err != nil && len(object.Templates) == 0 && condition != nil &&
		condition.Status == metav1.ConditionFalse && condition.ObservedGeneration == object.Generation
}

func published(conditionType string, template config.Acceptance, all totals) metav1.Condition {
	condition := metav1.Condition{Type: conditionType, Status: metav1.ConditionFalse}
	switch {
	case all.failing > 0:
		condition.Reason, condition.Message = reasonFailing, all.Problem.Error()
		if all.failing > 1 {
			condition.Message += fmt.Sprintf(" (and so on %d more)", all.failing-1)
		}
	case all.published > 0:
		condition.Status, condition.Reason, condition.Message = metav1.ConditionTrue, reasonPublished, "published on "+nodes(all.published)
		if all.waiting > 0 {
			condition.Message += fmt.Sprintf(", waiting on %d", all.waiting)
		}
		if all.hidden > 0 {
			condition.Message += fmt.Sprintf(", hidden on %d by template %s of a higher priority", all.hidden, all.HiddenBy)
		}
	case all.waiting > 0:
		condition.Reason, condition.Message = reasonWaiting, fmt.Sprintf("publishWhen does not match yet%s on %s that it selects", orNoPod(template), nodes(all.waiting))
	case all.hidden > 0:
		condition.Reason = reasonHidden
		condition.Message = fmt.Sprintf("template %s has a higher priority on %s that this one selects", all.HiddenBy, nodes(all.hidden))
	case template.Err != nil || template.Pending != nil:
		condition.Reason, condition.Message = reasonNoVersion, "no version has been accepted"
	default:
		condition.Reason, condition.Message = reasonNoNode, cmp.Or(all.unselected, "no fake node is selected")
	}
	return condition
}

// orNoPod is why else the pools of a template may wait.
func orNoPod(template config.Acceptance) string {
	if template.Source == nil {
		return ""
	}
	if _, needsPod, _ := unstructured.NestedMap(template.Source.Object, "spec", "driverPod"); !needsPod {
		return ""
	}
	return ", or no driver Pod is Ready,"
}

func nodes(count int64) string {
	if count == 1 {
		return "1 node"
	}
	return fmt.Sprintf("%d nodes", count)
}
