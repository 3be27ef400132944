package facts

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/dynamic-resource-allocation/resourceclaim"
)

// UsesClaims reports whether the kubelet would prepare anything for the Pod.
func UsesClaims(pod *corev1.Pod) bool {
	return len(pod.Spec.ResourceClaims) > 0 || pod.Status.ExtendedResourceClaimStatus != nil
}

// PodClaims lists the claims of a Pod in the kubelet's order: those that the Pod names, then the one for its extended
// resources.
func PodClaims(pod *corev1.Pod) []corev1.PodResourceClaim {
	extended := pod.Status.ExtendedResourceClaimStatus
	if extended == nil {
		return pod.Spec.ResourceClaims
	}
	return append(slices.Clone(pod.Spec.ResourceClaims), corev1.PodResourceClaim{ResourceClaimName: &extended.ResourceClaimName})
}

// ClaimKeys lists the claims of a Pod that exist according to its status.
func ClaimKeys(pod *corev1.Pod) []types.NamespacedName {
	var keys []types.NamespacedName
	for _, podClaim := range PodClaims(pod) {
		if name, _, err := resourceclaim.Name(pod, &podClaim); err == nil && name != nil {
			keys = append(keys, types.NamespacedName{Namespace: pod.Namespace, Name: *name})
		}
	}
	return keys
}

// KeepClaimNames restores the names of claims that the status of a Pod had before. They never change, but a client that
// does not know the field drops it when it updates the status (kubernetes#139772).
func KeepClaimNames(pod, before *corev1.Pod) {
	if pod.Status.ExtendedResourceClaimStatus == nil {
		pod.Status.ExtendedResourceClaimStatus = before.Status.ExtendedResourceClaimStatus
	}
	for _, known := range before.Status.ResourceClaimStatuses {
		if !slices.ContainsFunc(pod.Status.ResourceClaimStatuses, func(s corev1.PodResourceClaimStatus) bool { return s.Name == known.Name }) {
			pod.Status.ResourceClaimStatuses = append(pod.Status.ResourceClaimStatuses, known)
		}
	}
}

// NamesClaim reports whether a Pod has a claim according to its status.
func NamesClaim(pod *corev1.Pod, claim *resourcev1.ResourceClaim) bool {
	return slices.Contains(ClaimKeys(pod), types.NamespacedName{Namespace: claim.Namespace, Name: claim.Name})
}

// PodCondition finds a condition of a Pod by its type. If there is none, its status is "".
func PodCondition(pod *corev1.Pod, kind corev1.PodConditionType) (found corev1.PodCondition) {
	for _, condition := range pod.Status.Conditions {
		if condition.Type == kind {
			return condition
		}
	}
	return found
}

// ReadyToStart is the status of PodReadyToStartContainers, or "".
func ReadyToStart(pod *corev1.Pod) corev1.ConditionStatus {
	return PodCondition(pod, corev1.PodReadyToStartContainers).Status
}

// IsTerminal reports whether the phase of a Pod is final.
func IsTerminal(pod *corev1.Pod) bool {
	return pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
}

// IsEnding reports whether the kubelet would no longer start any container of the Pod.
func IsEnding(pod *corev1.Pod) bool {
	if pod.DeletionTimestamp != nil || IsTerminal(pod) {
		return true
	}
	statuses, policy := pod.Status.ContainerStatuses, pod.Spec.RestartPolicy
	if len(statuses) == 0 || len(statuses) < len(pod.Spec.Containers) {
		return false
	}
	mayRun := func(status corev1.ContainerStatus) bool { // now, or after a restart
		ended := status.State.Terminated
		return ended == nil || policy != corev1.RestartPolicyNever && (policy != corev1.RestartPolicyOnFailure || ended.ExitCode != 0)
	}
	return !slices.ContainsFunc(statuses, mayRun)
}

// IsPod reports whether a consumer of a claim is a Pod.
func IsPod(consumer resourcev1.ResourceClaimConsumerReference) bool {
	return consumer.APIGroup == "" && consumer.Resource == "pods"
}
