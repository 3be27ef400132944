package why

import (
	"context"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kwok-dra/kwok-dra/internal/observe/facts"
)

// AnswerClaim says why a claim has no devices, or still has them. The Pods are those of its namespace.
func (c *Cluster) AnswerClaim(ctx context.Context, claim *resourcev1.ResourceClaim, pods []*corev1.Pod) *Answer {
	answer := &Answer{Subject: Subject{Namespace: claim.Namespace, Claim: claim.Name}}
	if owner := metav1.GetControllerOf(claim); owner != nil {
		answer.Owner = owner.Kind + " " + owner.Name
	}
	users := map[string]*corev1.Pod{}
	var names []string
	for _, pod := range pods {
		if facts.NamesClaim(pod, claim) {
			users[pod.Name] = pod
			names = append(names, pod.Name)
		}
	}
	switch {
	case claim.DeletionTimestamp != nil:
		return answer.setState(Terminating, *claim.DeletionTimestamp, c.describeKept(ctx, claim, users))
	case claim.Status.Allocation != nil:
		answer.Node = facts.NodeOf(claim)
		answer.Details = c.describeConsumers(ctx, claim, users)
		var since metav1.Time
		if at := claim.Status.Allocation.AllocationTimestamp; at != nil {
			since = *at
		}
		return answer.setState(Allocated, since, describeAllocation(claim))
	case len(names) == 0:
		return answer.setState(Unallocated, claim.CreationTimestamp, "no Pod uses it, and a claim gets devices only with a Pod that uses it")
	}
	first := c.Answer(ctx, users[names[0]])
	answer.Evidence, answer.Details, answer.Fits = first.Evidence, first.Details, first.Fits
	return answer.setState(Unallocated, claim.CreationTimestamp, fmt.Sprintf("Pod %s, which uses it, %s", first.Pod, first.predicate()))
}

// predicate says what the Pod waits for and why, or what else it does.
func (a *Answer) predicate() string {
	if a.Waits() {
		return "waits " + waits[a.State] + ": " + a.Reason
	}
	return "does not wait: " + a.Reason
}

// describeAllocation says which devices a claim has, and for whom.
func describeAllocation(claim *resourcev1.ResourceClaim) string {
	var devices []string
	for i := range claim.Status.Allocation.Devices.Results {
		result := &claim.Status.Allocation.Devices.Results[i]
		devices = append(devices, result.Driver+"/"+result.Pool+"/"+result.Device)
	}
	text := "it has " + strings.Join(devices, ", ")
	if len(devices) == 0 {
		text = "it is allocated, without devices"
	}
	if len(claim.Status.ReservedFor) == 0 {
		return text + ", and no Pod uses it: a claim that is not made for a Pod keeps its devices until it is deleted"
	}
	return text + ", reserved for " + strings.Join(consumersOf(claim), ", ")
}

func consumersOf(claim *resourcev1.ResourceClaim) []string {
	var names []string
	for _, consumer := range claim.Status.ReservedFor {
		kind := consumer.Resource
		if facts.IsPod(consumer) {
			kind = "Pod"
		}
		names = append(names, kind+" "+consumer.Name)
	}
	return names
}

// describeConsumers says what each Pod does for which a claim is reserved.
func (c *Cluster) describeConsumers(ctx context.Context, claim *resourcev1.ResourceClaim, users map[string]*corev1.Pod) []string {
	var lines []string
	for _, consumer := range claim.Status.ReservedFor {
		pod := users[consumer.Name]
		switch {
		case !facts.IsPod(consumer) || c.isUnread("pods"):
		case pod == nil || pod.UID != consumer.UID:
			lines = append(lines, fmt.Sprintf("Pod %s does not exist: kube-controller-manager removes it from status.reservedFor", consumer.Name))
		default:
			answer := c.Answer(ctx, pod)
			lines = append(lines, fmt.Sprintf("Pod %s is %s: %s", pod.Name, answer.State, answer.Reason))
		}
	}
	return lines
}

// describeKept says what keeps a claim that is being deleted.
func (c *Cluster) describeKept(ctx context.Context, claim *resourcev1.ResourceClaim, users map[string]*corev1.Pod) string {
	const protection = "resource.kubernetes.io/delete-protection"
	if len(claim.Status.ReservedFor) > 0 {
		text := "it stays until it is no longer reserved for " + strings.Join(consumersOf(claim), ", ")
		return joinNonEmpty("; ", append([]string{text}, c.describeConsumers(ctx, claim, users)...)...)
	}
	var others []string
	for _, finalizer := range claim.Finalizers {
		if finalizer != protection {
			others = append(others, finalizer)
		}
	}
	switch {
	case len(others) > 0:
		return "it stays until its finalizers are removed: " + strings.Join(others, ", ")
	case len(claim.Finalizers) > 0:
		return "kube-controller-manager takes its devices back, and removes the finalizer " + protection
	}
	return "nothing is known that keeps it"
}
