package story

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// answerForDrivers sets the binding conditions for which Pods wait, until the scheduler has decided on all Pods. After
// a failure it may take other devices, of which the drivers say nothing. A scheduler that does not decide in time is the
// judge's business.
func (p *Player) answerForDrivers(ctx context.Context, s *Story, answer Answer) error {
	undecided := errors.New("the scheduler has not decided on all Pods")
	isSilent := false
	err := p.await(ctx, func(ctx context.Context) error {
		claims, err := p.client.ResourceV1().ResourceClaims(s.ID).List(ctx, metav1.ListOptions{})
		if err != nil {
			return finalError{err}
		}
		if !isSilent {
			hasAnswered, err := p.setConditions(ctx, claims.Items, answer)
			if hasAnswered || err != nil {
				isSilent = answer == Failed && err == nil
				return cmp.Or(err, undecided)
			}
		}
		pods, err := p.client.CoreV1().Pods(s.ID).List(ctx, metav1.ListOptions{})
		if err != nil {
			return finalError{err}
		}
		if slices.ContainsFunc(pods.Items, func(pod corev1.Pod) bool { return isUndecided(&pod, claims.Items) }) {
			return undecided
		}
		return nil
	})
	if errors.Is(err, undecided) && ctx.Err() == nil {
		return nil
	}
	return err
}

// setConditions sets the conditions of devices that wait for their drivers, and reports whether there are any.
func (p *Player) setConditions(ctx context.Context, claims []resourcev1.ResourceClaim, answer Answer) (hasAnswered bool, err error) {
	for i := range claims {
		claim := &claims[i]
		statuses := answerFor(claim, answer)
		if statuses == nil {
			continue
		}
		patch, err := json.Marshal(map[string]any{
			"metadata": map[string]any{"resourceVersion": claim.ResourceVersion}, "status": map[string]any{"devices": statuses},
		})
		if err != nil {
			return false, err
		}
		if _, err := p.client.ResourceV1().ResourceClaims(claim.Namespace).Patch(ctx, claim.Name, types.MergePatchType, patch, metav1.PatchOptions{}, "status"); err != nil {
			return false, fmt.Errorf("set the binding conditions of claim %s: %w", claim.Name, err)
		}
		hasAnswered = true
	}
	return hasAnswered, nil
}

// isUndecided reports whether the scheduler has something to do for a Pod: it has said nothing of it yet, and all its
// claims exist, or the drivers have answered for all that is reserved for it.
func isUndecided(pod *corev1.Pod, claims []resourcev1.ResourceClaim) bool {
	if pod.Spec.NodeName != "" || pod.DeletionTimestamp != nil || pod.Status.Phase != corev1.PodPending {
		return false
	}
	reserved := slices.DeleteFunc(slices.Clone(claims), func(claim resourcev1.ResourceClaim) bool {
		return !slices.ContainsFunc(claim.Status.ReservedFor, func(consumer resourcev1.ResourceClaimConsumerReference) bool { return consumer.UID == pod.UID })
	})
	if len(reserved) > 0 {
		return !slices.ContainsFunc(reserved, func(claim resourcev1.ResourceClaim) bool { return answerFor(&claim, Ready) != nil })
	}
	if slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool { return c.Type == corev1.PodScheduled }) {
		return false
	}
	return !slices.ContainsFunc(pod.Spec.ResourceClaims, func(reference corev1.PodResourceClaim) bool {
		if reference.ResourceClaimName == nil {
			return !slices.ContainsFunc(pod.Status.ResourceClaimStatuses, func(status corev1.PodResourceClaimStatus) bool { return status.Name == reference.Name })
		}
		return !slices.ContainsFunc(claims, func(claim resourcev1.ResourceClaim) bool { return claim.Name == *reference.ResourceClaimName })
	})
}

// answerFor returns the status of the devices of a claim, or nil if none waits for its driver.
func answerFor(claim *resourcev1.ResourceClaim, answer Answer) []resourcev1.AllocatedDeviceStatus {
	if claim.Status.Allocation == nil {
		return nil
	}
	var statuses []resourcev1.AllocatedDeviceStatus
	isWaiting := false
	for i := range claim.Status.Allocation.Devices.Results {
		result := &claim.Status.Allocation.Devices.Results[i]
		if len(result.BindingConditions) == 0 {
			continue
		}
		status := resourcev1.AllocatedDeviceStatus{Driver: result.Driver, Pool: result.Pool, Device: result.Device}
		if result.ShareID != nil {
			status.ShareID = new(string(*result.ShareID))
		}
		j := slices.IndexFunc(claim.Status.Devices, func(s resourcev1.AllocatedDeviceStatus) bool {
			return s.Driver == status.Driver && s.Pool == status.Pool && s.Device == status.Device
		})
		if j >= 0 && len(claim.Status.Devices[j].Conditions) > 0 {
			statuses = append(statuses, claim.Status.Devices[j])
			continue
		}
		isWaiting = true
		conditions := result.BindingConditions
		if answer == Failed {
			conditions = result.BindingFailureConditions
		}
		for _, condition := range conditions {
			status.Conditions = append(status.Conditions, metav1.Condition{Type: condition, Status: metav1.ConditionTrue, Reason: answerReason, LastTransitionTime: metav1.Now()})
		}
		statuses = append(statuses, status)
	}
	if !isWaiting {
		return nil
	}
	return statuses
}

// answerReason is the reason of the conditions.
const answerReason = "StoryAnswers"
