package status

import (
	"fmt"
	"slices"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kwok-dra/kwok-dra/pkg/api/v1alpha1"
	"github.com/kwok-dra/kwok-dra/pkg/config"
)

// The reasons of the conditions.
const (
	reasonValid     = "Valid"
	reasonInvalid   = "Invalid"
	reasonPublished = "Published"
	reasonFailing   = "Failing"
	reasonWaiting   = "Waiting"
	reasonNoNode    = "NoNode"
	reasonNoVersion = "NotAccepted"
)

// maxMessage is the API's limit on the message of a condition.
const maxMessage = 32768

// totals are what became of a template on all nodes.
type totals struct {
	published, waiting, failing, slices, devices int64
	// problem is that of the first node, by name, that has one.
	problem string
}

// plan works out the status that a template should have, and tells whether it
// differs from the one that it has.
func plan(template config.Acceptance, all totals, now metav1.Time) (v1alpha1.ResourcePoolTemplateStatus, bool) {
	status := v1alpha1.ResourcePoolTemplateStatus{
		Conditions: slices.Clone(template.Status.Conditions),
		Nodes:      all.published,
		Slices:     all.slices,
		Devices:    all.devices,
	}
	for _, condition := range []metav1.Condition{accepted(template), published(template, all)} {
		condition.ObservedGeneration, condition.LastTransitionTime = template.Generation, now
		if len(condition.Message) > maxMessage {
			condition.Message = condition.Message[:maxMessage]
		}
		meta.SetStatusCondition(&status.Conditions, condition)
	}
	return status, !apiequality.Semantic.DeepEqual(status, template.Status)
}

func accepted(template config.Acceptance) metav1.Condition {
	condition := metav1.Condition{Type: v1alpha1.ConditionAccepted, Status: metav1.ConditionTrue, Reason: reasonValid, Message: "the newest version is in force"}
	if template.Err != nil {
		condition.Status, condition.Reason, condition.Message = metav1.ConditionFalse, reasonInvalid, template.Err.Error()
	}
	return condition
}

func published(template config.Acceptance, all totals) metav1.Condition {
	condition := metav1.Condition{Type: v1alpha1.ConditionPublished, Status: metav1.ConditionFalse}
	switch {
	case all.failing > 0:
		condition.Reason, condition.Message = reasonFailing, all.problem
		if all.failing > 1 {
			condition.Message = fmt.Sprintf("%s (and so on %d more)", all.problem, all.failing-1)
		}
	case all.published > 0:
		condition.Status, condition.Reason, condition.Message = metav1.ConditionTrue, reasonPublished, "published on "+nodes(all.published)
		if all.waiting > 0 {
			condition.Message += fmt.Sprintf(", waiting on %d", all.waiting)
		}
	case all.waiting > 0:
		condition.Reason, condition.Message = reasonWaiting, fmt.Sprintf("publishWhen does not match yet on %s that the template selects", nodes(all.waiting))
	case template.Err != nil:
		condition.Reason, condition.Message = reasonNoVersion, "no version has been accepted"
	default:
		condition.Reason, condition.Message = reasonNoNode, "no fake node is selected"
	}
	return condition
}

func nodes(count int64) string {
	if count == 1 {
		return "1 node"
	}
	return fmt.Sprintf("%d nodes", count)
}
