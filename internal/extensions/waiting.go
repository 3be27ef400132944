package extensions

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/kwok-dra/kwok-dra/internal/claims"
	"github.com/kwok-dra/kwok-dra/internal/extensions/webpage/page"
	"github.com/kwok-dra/kwok-dra/internal/observe/facts"
)

// maxUnscheduled bounds how many Pods without a node are read.
const maxUnscheduled = 500

// listWaitingPods lists the Pods with claims that wait. No cache holds Pods without a node, for
// which kwok-dra has nothing to do, so these are read from the API server.
func listWaitingPods(ctx context.Context, client kubernetes.Interface, preparer *claims.Controller) ([]page.WaitingPod, error) {
	pods, err := listUnscheduledPods(ctx, client)
	if err != nil {
		return nil, err
	}
	var all []page.WaitingPod
	for _, pod := range pods {
		all = append(all, describeUnscheduled(pod))
	}
	for _, w := range preparer.Waiting() {
		waits := describeWaiting(w.Pod, scheduledAt(w.Pod))
		waits.Node, waits.Reason, waits.Retry = w.Pod.Spec.NodeName, cmp.Or(w.Failure, "its claims are not prepared yet"), w.Retry
		all = append(all, waits)
	}
	return all, nil
}

// listUnscheduledPods lists the Pods with claims that have no node.
func listUnscheduledPods(ctx context.Context, client kubernetes.Interface) ([]*corev1.Pod, error) {
	list, err := client.CoreV1().Pods(metav1.NamespaceAll).List(ctx, metav1.ListOptions{
		FieldSelector: "spec.nodeName=,status.phase=Pending", Limit: maxUnscheduled,
	})
	if err != nil {
		return nil, fmt.Errorf("list pods without a node: %w", err)
	}
	var pods []*corev1.Pod
	for i := range list.Items {
		if pod := &list.Items[i]; facts.UsesClaims(pod) && pod.DeletionTimestamp == nil {
			pods = append(pods, pod)
		}
	}
	return pods, nil
}

// describeUnscheduled describes a Pod without a node in the scheduler's own words.
func describeUnscheduled(pod *corev1.Pod) page.WaitingPod {
	waits := describeWaiting(pod, pod.CreationTimestamp.Time)
	waits.Reason = "no scheduler has tried it yet"
	if condition := facts.PodCondition(pod, corev1.PodScheduled); condition.Status == corev1.ConditionFalse {
		waits.Reason = cmp.Or(condition.Message, condition.Reason)
	}
	return waits
}

// describeWaiting describes a Pod without the reason why it waits.
func describeWaiting(pod *corev1.Pod, since time.Time) page.WaitingPod {
	waits := page.WaitingPod{Namespace: pod.Namespace, Name: pod.Name, Since: since}
	var asks []string
	for i := range pod.Spec.ResourceClaims {
		claim := &pod.Spec.ResourceClaims[i]
		if template := claim.ResourceClaimTemplateName; template != nil {
			asks = append(asks, "template "+*template)
		} else if claim.ResourceClaimName != nil {
			asks = append(asks, "claim "+*claim.ResourceClaimName)
		}
	}
	waits.Asks = strings.Join(asks, ", ")
	if owner := metav1.GetControllerOf(pod); owner != nil {
		waits.Owner = owner.Kind + "/" + owner.Name
	}
	return waits
}

// scheduledAt returns when a Pod was bound to its node, or else when it was created.
func scheduledAt(pod *corev1.Pod) time.Time {
	if condition := facts.PodCondition(pod, corev1.PodScheduled); condition.Status == corev1.ConditionTrue {
		return condition.LastTransitionTime.Time
	}
	return pod.CreationTimestamp.Time
}
