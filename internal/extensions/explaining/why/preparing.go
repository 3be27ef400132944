package why

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/dynamic-resource-allocation/resourceclaim"

	"github.com/kwok-dra/kwok-dra/internal/extensions/explaining/history"
	"github.com/kwok-dra/kwok-dra/internal/observe/facts"
	"github.com/kwok-dra/kwok-dra/pkg/api/v1alpha1"
)

// failedCreation is the reason of the event about a claim that is not created.
const failedCreation = "FailedResourceClaimCreation"

// retryJitter is the most that a kubelet, and kwok-dra, add to the time until the next try,
// as a share of it.
const retryJitter = 0.5

// explainPreparing says why the claims of a Pod on a node are not prepared.
func (c *Cluster) explainPreparing(ctx context.Context, answer *Answer) *Answer {
	pod := answer.pod
	missing := c.describeUnpreparable(pod)
	failure := c.PrepareFailure(pod)
	var now, cause string
	var details []string
	if c.Sidecar != nil {
		now, cause, details = c.Sidecar.ForecastPreparation(ctx, pod)
	} else {
		cause, details = c.explainOnNode(pod, failure)
	}
	if strings.Contains(cmp.Or(failure, now), now) { // the event is of what would fail now
		failure = joinNonEmpty(": ", cmp.Or(failure, now), cause)
	} else {
		details = append([]string{"now: " + joinNonEmpty(": ", now, cause)}, details...)
	}
	answer.Reason = joinNonEmpty("; ", strings.Join(missing, "; "), failure)
	if answer.Reason == "" {
		var names []string
		for _, key := range facts.ClaimKeys(pod) {
			names = append(names, key.Name)
		}
		answer.Reason = "not prepared yet: " + strings.Join(names, ", ")
		if c.Sidecar == nil {
			answer.Reason += "; the kubelet of node " + pod.Spec.NodeName + " has reported no failure"
		}
	}
	answer.Details = append(answer.Details, details...)
	answer.Details = append(answer.Details, c.describeTries(pod)...)
	return answer
}

// explainOnNode says what is known of a Pod on a node whose own kubelet prepares its claims.
func (c *Cluster) explainOnNode(pod *corev1.Pod, failure string) (cause string, details []string) {
	warning := c.Warnings[pod.UID]
	if failed := c.Failures[pod.UID]; warning != nil && (failure == "" || history.LastSeen(warning).After(history.LastSeen(failed))) {
		details = append(details, describeEvent(warning))
	}
	if cause = c.describeNode(pod.Spec.NodeName); cause != "" {
		cause += ", so its kubelet prepares nothing"
	} else {
		if silent := c.silentDrivers(pod); len(silent) > 0 {
			cause, details = silent[0], append(details, silent[1:]...)
		}
	}
	if cause == "" && failure == "" && len(details) > 0 {
		cause, details = details[0], details[1:]
	}
	return cause, append(details, c.describeUnhealthy(pod)...)
}

// describeUnpreparable says which claims of a Pod cannot be prepared as they are.
func (c *Cluster) describeUnpreparable(pod *corev1.Pod) []string {
	var missing []string
	past := "" // a scheduler allocates claims before it gives the Pod its node
	if c.Sidecar == nil {
		past = ": the Pod came with spec.nodeName, past the scheduler, which allocates them"
	}
	for _, key := range facts.ClaimKeys(pod) {
		switch claim := c.Claims[key]; {
		case claim == nil:
			missing = append(missing, fmt.Sprintf("claim %s does not exist", key.Name))
		case claim.Status.Allocation == nil:
			missing = append(missing, fmt.Sprintf("claim %s has no devices%s", key.Name, past))
		case !resourceclaim.IsReservedForPod(pod, claim, true):
			missing = append(missing, fmt.Sprintf("claim %s is not reserved for the Pod", key.Name))
		}
	}
	return missing
}

// PrepareFailure returns the newest message of the kubelet about preparing the claims of a Pod.
func (c *Cluster) PrepareFailure(pod *corev1.Pod) string {
	if event := c.Failures[pod.UID]; event != nil && event.Reason == v1alpha1.ReasonFailedPrepare {
		return event.Message
	}
	return ""
}

// ExplainPrepareFailure returns PrepareFailure and what is known of its cause, where the kubelet of the node prepares.
func (c *Cluster) ExplainPrepareFailure(pod *corev1.Pod) string {
	failure := c.PrepareFailure(pod)
	if failure == "" {
		return ""
	}
	cause, _ := c.explainOnNode(pod, failure)
	return joinNonEmpty(": ", failure, cause)
}

// describeTries says since when preparing fails, how often, and when it is tried again.
func (c *Cluster) describeTries(pod *corev1.Pod) []string {
	event := c.Failures[pod.UID]
	if event == nil || event.Reason != v1alpha1.ReasonFailedPrepare {
		return nil
	}
	last := history.LastSeen(event)
	first := event.FirstTimestamp.Time
	if first.IsZero() {
		first = last
	}
	lines := []string{fmt.Sprintf("it has failed once, at %s", formatTime(last))}
	if event.Count > 1 {
		lines[0] = fmt.Sprintf("it has failed %d times since %s, the last time at %s", event.Count, formatTime(first), formatTime(last))
	}
	if c.Sidecar == nil {
		return lines
	}
	interval := c.Sidecar.RetryInterval()
	latest := last.Add(interval + time.Duration(float64(interval)*retryJitter))
	if c.Now.After(latest) {
		return append(lines, fmt.Sprintf("the next try was due at %s: does kwok-dra run, and act for node %s?", formatTime(latest), pod.Spec.NodeName))
	}
	return append(lines, fmt.Sprintf("the next try is between %s and %s (retryInterval %s), or at once when the Pod is edited", formatTime(last.Add(interval)), formatTime(latest), interval))
}
