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

	"github.com/kwok-dra/kwok-dra/internal/config"
	"github.com/kwok-dra/kwok-dra/internal/controller/installation"
	"github.com/kwok-dra/kwok-dra/internal/resourceslice"
	"github.com/kwok-dra/kwok-dra/pkg/api/v1alpha1"
)

// The reasons of the conditions. docs/reference/conditions.md is made from these comments.
const (
	// `Accepted=True`. The newest version is in force.
	reasonValid = "Valid"
	// `Accepted=False`. The newest version is refused, and the message says why. The
	// last good one remains in force, if there was one.
	reasonInvalid = "Invalid"
	// `Accepted=False`. Nothing is in force yet, since a part of the configuration has had no
	// good version since kwok-dra began; the message says what is wrong with it.
	reasonPending = "Pending"
	// `Published=True`. The devices are published wherever they should be, and on one node at least.
	reasonPublished = "Published"
	// `Published=False`. Something cannot be published on a node; the message names the first such node and the problem.
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

// Plan returns the write that the status of an object needs, or nil. As is the installation that
// writes, and now becomes the time of transitions.
type Plan func(as installation.ID, object config.Acceptance, all Totals, now metav1.Time) *Patch

// plans has the plan of each kind with a status that kwok-dra writes.
var plans = map[string]Plan{v1alpha1.ResourcePoolTemplateKind: planTemplate}

// RegisterKind has the Writer write the status of another program's kind. Call it in an init function.
func RegisterKind(kind string, plan Plan) {
	plans[kind] = plan
}

// Patch is a patch of the status of an object.
type Patch struct {
	Type    types.PatchType
	Options metav1.PatchOptions
	Body    map[string]any
	// Content is the status without its times.
	Content any

	// owner is the installation whose status the object shows, or empty.
	owner installation.ID
	// isContested reports whether the owner is another installation.
	isContested bool
}

// Totals sums up the state of an object's templates on all nodes.
type Totals struct {
	// Outcome has the sums, and the template that hides them and the problem on the first node, by name, that has one.
	resourceslice.Outcome
	// Published, Waiting, Failing and Hidden count nodes, and pools that nodes share.
	Published, Waiting, Failing, Hidden int64

	// unselected is why the first template selects no node, or empty.
	unselected string
}

// Shown reads the status that an object shows. It is empty if the object has something else there.
func Shown[T any](object *unstructured.Unstructured) (status T) {
	if given, ok, err := unstructured.NestedMap(object.Object, "status"); ok && err == nil {
		_ = runtime.DefaultUnstructuredConverter.FromUnstructured(given, &status)
	}
	return status
}

// planTemplate plans the status of a ResourcePoolTemplate.
func planTemplate(as installation.ID, template config.Acceptance, all Totals, now metav1.Time) *Patch {
	shown := Shown[v1alpha1.ResourcePoolTemplateStatus](template.Source)
	if KeepsShown(template, shown.Conditions, v1alpha1.ConditionAccepted) {
		return nil
	}
	status, owner := shown, installation.ID(shown.Installation)
	status.Conditions = slices.Clone(shown.Conditions)
	wanted := []metav1.Condition{AcceptedCondition(v1alpha1.ConditionAccepted, template)}
	if !IsShownRefused(template, shown.Conditions, v1alpha1.ConditionAccepted) {
		status.Nodes, status.Slices, status.Devices = all.Published, int64(all.Slices), int64(all.Devices)
		wanted = append(wanted, PublishedCondition(v1alpha1.ConditionPublished, template, all))
	}
	SetConditions(&status.Conditions, template.Generation, now, wanted...)
	if owner != "" && apiequality.Semantic.DeepEqual(status, shown) {
		return nil // even if another installation counts the same
	}
	if as != "" {
		status.Installation = string(as)
	}
	if apiequality.Semantic.DeepEqual(status, shown) {
		return nil
	}
	timeless := status
	timeless.Conditions, timeless.Installation = WithoutTimes(status.Conditions), ""
	return &Patch{Type: types.MergePatchType, Body: map[string]any{"status": status}, Content: timeless, owner: owner, isContested: as.IsAnother(owner)}
}

// KeepsShown reports whether the status must stay as it is shown: nothing is in force here, and
// the condition is about the newest version already.
func KeepsShown(object config.Acceptance, shown []metav1.Condition, conditionType string) bool {
	condition := meta.FindStatusCondition(shown, conditionType)
	return object.Pending != nil && condition != nil && condition.ObservedGeneration == object.Generation
}

// IsShownRefused reports whether an object of which no version is in force here is shown as refused already. Another
// replica, or this one before a restart, wrote its counts then. They are right: a refused version does not retire anything.
func IsShownRefused(object config.Acceptance, shown []metav1.Condition, conditionType string) bool {
	condition := meta.FindStatusCondition(shown, conditionType)
	return object.Err != nil && len(object.Templates) == 0 && condition != nil &&
		condition.Status == metav1.ConditionFalse && condition.ObservedGeneration == object.Generation
}

// SetConditions sets conditions. The time of transition changes only with the status.
func SetConditions(conditions *[]metav1.Condition, generation int64, now metav1.Time, wanted ...metav1.Condition) {
	for _, condition := range wanted {
		condition.ObservedGeneration, condition.LastTransitionTime = generation, now
		if len(condition.Message) > maxMessage {
			condition.Message = strings.ToValidUTF8(condition.Message[:maxMessage], "")
		}
		meta.SetStatusCondition(conditions, condition)
	}
}

// WithoutTimes returns a copy of conditions without the times of their last transitions.
func WithoutTimes(conditions []metav1.Condition) []metav1.Condition {
	all := slices.Clone(conditions)
	for i := range all {
		all[i].LastTransitionTime = metav1.Time{}
	}
	return all
}

// AcceptedCondition says whether the newest version of an object is in force.
func AcceptedCondition(conditionType string, object config.Acceptance) metav1.Condition {
	condition := metav1.Condition{Type: conditionType, Status: metav1.ConditionTrue, Reason: reasonValid, Message: "the newest version is in force"}
	switch {
	case object.Err != nil:
		condition.Status, condition.Reason, condition.Message = metav1.ConditionFalse, reasonInvalid, object.Err.Error()
	case object.Pending != nil:
		condition.Status, condition.Reason = metav1.ConditionFalse, reasonPending
		condition.Message = "nothing is in force yet: " + object.Pending.Error()
	}
	return condition
}

// PublishedCondition says whether the devices of an object are published wherever they should be.
func PublishedCondition(conditionType string, object config.Acceptance, all Totals) metav1.Condition {
	condition := metav1.Condition{Type: conditionType, Status: metav1.ConditionFalse}
	switch {
	case all.Failing > 0:
		condition.Reason, condition.Message = reasonFailing, all.Problem.Error()
		if all.Failing > 1 {
			condition.Message += fmt.Sprintf(" (and so on %d more)", all.Failing-1)
		}
	case all.Published > 0:
		condition.Status, condition.Reason, condition.Message = metav1.ConditionTrue, reasonPublished, "published on "+countNodes(all.Published)
		if all.Waiting > 0 {
			condition.Message += fmt.Sprintf(", waiting on %d", all.Waiting)
		}
		if all.Hidden > 0 {
			condition.Message += fmt.Sprintf(", hidden on %d by template %s of a higher priority", all.Hidden, all.HiddenBy)
		}
	case all.Waiting > 0:
		orNoPod := ""
		if object.Source != nil {
			if _, needsPod, _ := unstructured.NestedMap(object.Source.Object, "spec", "driverPod"); needsPod {
				orNoPod = ", or no driver Pod is Ready,"
			}
		}
		condition.Reason, condition.Message = reasonWaiting, fmt.Sprintf("publishWhen does not match yet%s on %s that it selects", orNoPod, countNodes(all.Waiting))
	case all.Hidden > 0:
		condition.Reason = reasonHidden
		condition.Message = fmt.Sprintf("template %s has a higher priority on %s that this one selects", all.HiddenBy, countNodes(all.Hidden))
	case object.Err != nil || object.Pending != nil:
		condition.Reason, condition.Message = reasonNoVersion, "no version has been accepted"
	default:
		condition.Reason, condition.Message = reasonNoNode, cmp.Or(all.unselected, "no fake node is selected")
	}
	return condition
}

func countNodes(count int64) string {
	if count == 1 {
		return "1 node"
	}
	return fmt.Sprintf("%d nodes", count)
}
