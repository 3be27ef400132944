package faults

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kwok-dra/kwok-dra/internal/observe/facts"
	"github.com/kwok-dra/kwok-dra/pkg/api/v1alpha1"
)

// due reports whether a Pod has claims to be prepared on a node that the sidecars act for.
func (s *state) due(pod *corev1.Pod) bool {
	return s.node(pod.Spec.NodeName) != nil && len(pod.Spec.ResourceClaims) > 0 &&
		!startable(pod) && !ended(pod) && pod.DeletionTimestamp == nil
}

// waiting reports whether a Pod waits for its claims, and nobody has told it to.
func (s *state) waiting(pod *corev1.Pod) bool { return s.due(pod) && pod.Labels[holdLabel] == "" }

// untold reports whether the status of a Pod does not say yet that it waits for its claims.
func (s *state) untold(pod *corev1.Pod) bool {
	return s.due(pod) && pod.Status.Phase == corev1.PodPending && facts.ReadyToStart(pod) == ""
}

// wrongWaits says which Pods wait and do not say why.
func (s *state) wrongWaits() []string {
	var wrong []string
	for uid, pod := range s.pods {
		if s.waiting(pod) && !s.explained[uid] {
			wrong = append(wrong, fmt.Sprintf("waits: pod %s on %s waits, and no event says why", pod.Name, pod.Spec.NodeName))
		}
	}
	slices.Sort(wrong)
	return wrong
}

// explain finds the Pods whose events say why their claims are not prepared.
func (c clients) explain(ctx context.Context, s *state) error {
	s.explained = map[types.UID]bool{}
	waits := false
	for _, pod := range s.pods {
		waits = waits || s.waiting(pod)
	}
	if !waits {
		return nil
	}
	events, err := c.client.CoreV1().Events(namespace).List(ctx, metav1.ListOptions{FieldSelector: "reason=" + v1alpha1.ReasonFailedPrepare})
	if err != nil {
		return fmt.Errorf("list events: %w", err)
	}
	for i := range events.Items {
		s.explained[events.Items[i].InvolvedObject.UID] = true
	}
	return nil
}
