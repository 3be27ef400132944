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

	"github.com/kwok-dra/kwok-dra/pkg/claims"
	"github.com/kwok-dra/kwok-dra/pkg/observe/facts"
	"github.com/kwok-dra/kwok-dra/pkg/page"
)

// maxUnscheduled bounds how many Pods without a node are read.
const maxUnscheduled = 500

// waitingPods are the Pods with claims that wait. Those without a node are in no cache, since
// kwok-dra has nothing to do for them, so the API server is asked.
func waitingPods(ctx context.Context, client kubernetes.Interface, preparer *claims.Controller) ([]page.WaitingPod, error) {
	pods, err := unscheduledPods(ctx, client)
	if err != nil {
		return nil, err
	}
	var all []page.WaitingPod
	for _, pod := range pods {
		all = append(all, unscheduledPod(pod))
	}
	for _, w := range preparer.Waiting() {
		waits := waitingPod(w.Pod, scheduledAt(w.Pod))
		waits.Node, waits.Reason, waits.Retry = w.Pod.Spec.NodeName, cmp.Or(w.Failure, "its claims are not prepared yet"), w.Retry
		all = append(all, waits)
	}
	return all, nil
}

// unscheduledPods are the Pods with claims that have no node.
func unscheduledPods(ctx context.Context, client kubernetes.Interface) ([]*corev1.Pod, error) {
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

// unscheduledPod has the scheduler's own words.
func unscheduledPod(pod *corev1.Pod) page.WaitingPod {
	waits := waitingPod(pod, pod.CreationTimestamp.Time)
	waits.Reason = "no scheduler has tried it yet"
	if condition := facts.PodCondition(pod, corev1.PodScheduled); condition.Status == corev1.ConditionFalse {
		waits.Reason = cmp.Or(condition.Message, condition.Reason)
	}
	return waits
}

func waitingPod(pod *corev1.Pod, since time.Time) page.WaitingPod {
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

// scheduledAt is when a Pod was bound to its node.
func scheduledAt(pod *corev1.Pod) time.Time {
	if condition := facts.PodCondition(pod, corev1.PodScheduled); condition.Status == corev1.ConditionTrue {
		return condition.LastTransitionTime.Time
	}
	return pod.CreationTimestamp.Time
}
