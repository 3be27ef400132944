package why

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/dynamic-resource-allocation/resourceclaim"

	"github.com/kwok-dra/kwok-dra/internal/extensions/explaining/simulator"
	"github.com/kwok-dra/kwok-dra/internal/observe/facts"
	"github.com/kwok-dra/kwok-dra/internal/util/suggest"
)

// bindingTimeout is how long kube-scheduler waits for binding conditions by default, from
// the allocation on (DynamicResourcesArgs).
const bindingTimeout = 10 * time.Minute

// explainUnbound says why a Pod has no node.
func (c *Cluster) explainUnbound(ctx context.Context, answer *Answer) *Answer {
	pod := answer.pod
	condition := facts.PodCondition(pod, corev1.PodScheduled)
	since := pod.CreationTimestamp
	if condition.Status == corev1.ConditionFalse {
		answer.Scheduler = joinNonEmpty(": ", condition.Reason, condition.Message)
		since = condition.LastTransitionTime
	}
	outlook := c.outlookOf(ctx, pod)
	if conditions := c.bindingConditions(pod); len(conditions) > 0 {
		answer.Details = c.bindingTimes(pod)
		return answer.setState(Binding, c.allocatedAt(pod), "binding conditions of its devices are not True: "+strings.Join(conditions, ", "))
	}
	reason := joinNonEmpty("; ", describeGates(pod), c.describeMissingClaims(pod, outlook.Err), describeScheduler(pod), c.verdictOn(outlook, condition.Message))
	withoutOutlook := fmt.Sprintf("%s has not looked at it yet", cmp.Or(pod.Spec.SchedulerName, corev1.DefaultSchedulerName))
	if c.Scheduler != nil && !c.isUnread("nodes") {
		withoutOutlook = "there are no nodes"
	}
	answer.setState(Unscheduled, since, cmp.Or(reason, answer.Scheduler, withoutOutlook))
	c.addDetails(answer, outlook)
	answer.Fits = outlook.Fits()
	if !facts.UsesClaims(pod) && len(outlook.Claims) == 0 {
		answer.Details = append(answer.Details, noClaims)
	}
	return answer
}

// verdictOn is what keeps a Pod from all nodes, as far as what could be read tells it. The message is
// the scheduler's own.
func (c *Cluster) verdictOn(outlook *simulator.Outlook, message string) string {
	missing, isMissing := errors.AsType[*simulator.Missing](outlook.Err)
	switch {
	case c.Scheduler == nil:
		return ""
	case isMissing && missing.Kind != "deviceclass": // it is among the missing claims
		return ""
	case isMissing && c.isUnread("deviceclasses"):
		return ""
	case outlook.Err == nil && (c.isUnread("nodes") || c.isUnread("resourceslices")):
		return ""
	case !outlook.Fits():
		return outlook.Verdict()
	case c.isUnread("resourceclaims") || c.isUnread("resourceclaims of other namespaces") || c.isUnread("pods"): // others may have what seems to be free
		return ""
	}
	text := outlook.Verdict()
	if others := otherReasons(message); len(others) > 0 {
		text = strings.Join(others, ", ") + ", says the scheduler; " + text
	}
	return text
}

// outlookOf asks the Scheduler about a Pod as if it had no scheduling gates.
func (c *Cluster) outlookOf(ctx context.Context, pod *corev1.Pod) *simulator.Outlook {
	if c.Scheduler == nil {
		return &simulator.Outlook{}
	}
	if len(pod.Spec.SchedulingGates) > 0 {
		pod = pod.DeepCopy()
		pod.Spec.SchedulingGates = nil
	}
	return c.Scheduler.Outlook(ctx, pod)
}

// describeGates names the scheduling gates that keep a Pod from being scheduled.
func describeGates(pod *corev1.Pod) string {
	var names []string
	for _, gate := range pod.Spec.SchedulingGates {
		names = append(names, gate.Name)
	}
	if len(names) == 0 {
		return ""
	}
	return "spec.schedulingGates keep it from being scheduled: " + strings.Join(names, ", ")
}

// describeSimilar names the claim that may be meant by one that does not exist.
func (c *Cluster) describeSimilar(namespace, name string) string {
	var names []string
	elsewhere := ""
	for key := range c.Claims {
		switch {
		case key.Namespace == namespace:
			names = append(names, key.Name)
		case key.Name == name && (elsewhere == "" || key.Namespace < elsewhere):
			elsewhere = key.Namespace
		}
	}
	slices.Sort(names)
	if nearest := suggest.Nearest(name, names); nearest != "" {
		return " (there is " + nearest + ")"
	}
	if elsewhere != "" {
		return " (there is one in namespace " + elsewhere + ", and a Pod uses those of its own)"
	}
	return ""
}

// describeMissingClaims says which claims of a Pod do not exist, and why.
func (c *Cluster) describeMissingClaims(pod *corev1.Pod, err error) string {
	var missing []string
	for i := range pod.Spec.ResourceClaims {
		podClaim := &pod.Spec.ResourceClaims[i]
		name, _, nameErr := resourceclaim.Name(pod, podClaim)
		switch {
		case errors.Is(nameErr, resourceclaim.ErrClaimNotFound):
			missing = append(missing, fmt.Sprintf("claim %s is not created yet from ResourceClaimTemplate %s", podClaim.Name, *podClaim.ResourceClaimTemplateName))
		case nameErr == nil && name != nil && !c.isUnread("resourceclaims") && c.Claims[types.NamespacedName{Namespace: pod.Namespace, Name: *name}] == nil:
			missing = append(missing, fmt.Sprintf("claim %s does not exist%s", *name, c.describeSimilar(pod.Namespace, *name)))
		}
	}
	event := c.Failures[pod.UID]
	absent, isAbsent := errors.AsType[*simulator.Missing](err)
	switch {
	case isAbsent && absent.Kind == "resourceclaimtemplate" && !c.isUnread("resourceclaimtemplates"):
		missing = append([]string{fmt.Sprintf("there is no ResourceClaimTemplate %q: create it", absent.Name)}, missing...)
	case event != nil && event.Reason == failedCreation && len(missing) > 0:
		missing = append([]string{event.Message}, missing...)
	}
	return strings.Join(missing, "; ")
}

// addDetails adds what is known beyond the reason: other requests that get no devices, and what each
// node lacks if nodes differ.
func (c *Cluster) addDetails(a *Answer, outlook *simulator.Outlook) {
	if slices.ContainsFunc([]string{"nodes", "resourceslices", "deviceclasses"}, c.isUnread) {
		return
	}
	a.Requests = outlook.Supplies
	for i := range outlook.Supplies {
		if driver := outlook.Supplies[i].Silent; driver != "" && c.Sidecar != nil {
			a.Details = append(a.Details, c.Sidecar.DescribeSilence(driver)...)
		}
	}
	for i := range outlook.Refusals {
		a.Nodes = append(a.Nodes, Refusal{outlook.Refusals[i].Nodes, outlook.Refusals[i].String()})
	}
	a.Details = append(a.Details, outlook.Lines()...)
	if outlook.Fits() && outlook.Failing() == nil && a.Scheduler != "" {
		a.Details = append(a.Details, "the scheduler has not tried again since, or something keeps the Pod away that is not considered here, such as volumes")
	}
	said := map[string]bool{}
	a.Details = slices.DeleteFunc(a.Details, func(line string) bool {
		isSaid := said[line]
		said[line] = true
		return isSaid
	})
}

// bindingConditions returns the binding conditions that are not True, of devices with which a Pod
// is being bound.
func (o *Objects) bindingConditions(pod *corev1.Pod) []string {
	var pending []string
	for claim, result := range o.toBeBound(pod) {
		entry := facts.EntryOf(claim, facts.ResultID(result))
		is := func(kind string) bool { return entry != nil && meta.IsStatusConditionTrue(entry.Conditions, kind) }
		device := result.Driver + "/" + result.Pool + "/" + result.Device
		for _, kind := range result.BindingConditions {
			if !is(kind) {
				pending = append(pending, fmt.Sprintf("%s of device %s (claim %s)", kind, device, claim.Name))
			}
		}
		for _, kind := range result.BindingFailureConditions {
			if is(kind) {
				failed := meta.FindStatusCondition(entry.Conditions, kind)
				pending = append(pending, fmt.Sprintf("%s of device %s (claim %s) is True, so it is given back: %s", kind, device, claim.Name, failed.Message))
			}
		}
	}
	return pending
}

// toBeBound yields the devices with binding conditions of the allocated claims that are reserved for a Pod.
func (o *Objects) toBeBound(pod *corev1.Pod) iter.Seq2[*resourcev1.ResourceClaim, *resourcev1.DeviceRequestAllocationResult] {
	return func(yield func(*resourcev1.ResourceClaim, *resourcev1.DeviceRequestAllocationResult) bool) {
		for _, key := range facts.ClaimKeys(pod) {
			claim := o.Claims[key]
			if claim == nil || claim.Status.Allocation == nil || !resourceclaim.IsReservedForPod(pod, claim, true) {
				continue
			}
			for i := range claim.Status.Allocation.Devices.Results {
				result := &claim.Status.Allocation.Devices.Results[i]
				if len(result.BindingConditions) > 0 && !yield(claim, result) {
					return
				}
			}
		}
	}
}

// allocatedAt returns when the devices with which a Pod is being bound were allocated.
func (o *Objects) allocatedAt(pod *corev1.Pod) metav1.Time {
	var at metav1.Time
	for claim := range o.toBeBound(pod) {
		if known := claim.Status.Allocation.AllocationTimestamp; known != nil && at.Before(known) {
			at = *known
		}
	}
	return at
}

// bindingTimes says when the conditions are due, and how long the scheduler waits.
func (c *Cluster) bindingTimes(pod *corev1.Pod) []string {
	at := c.allocatedAt(pod)
	if at.IsZero() {
		return []string{"it is not known when the devices were allocated"}
	}
	var lines []string
	seen := map[string]bool{}
	for _, result := range c.toBeBound(pod) {
		if seen[result.Driver] {
			continue
		}
		seen[result.Driver] = true
		if c.Sidecar != nil {
			lines = append(lines, c.Sidecar.DescribeSetter(result.Driver, at.Time))
		} else {
			lines = append(lines, fmt.Sprintf("driver %s, or its controller, has to set them", result.Driver))
		}
	}
	return append(lines, fmt.Sprintf("kube-scheduler gives the devices back at %s, by its default bindingTimeout of %s; another one is in its configuration",
		formatTime(at.Add(bindingTimeout)), bindingTimeout))
}

func formatTime(at time.Time) string { return at.UTC().Format(time.RFC3339) }
