package simulator

import (
	"errors"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/dynamic-resource-allocation/resourceclaim"
)

// podClaimAnnotation is how the claim controller records the name that a Pod has for its claim.
const podClaimAnnotation = "resource.kubernetes.io/pod-claim-name"

// Missing is the error for an object that a Pod needs and that does not exist.
type Missing struct {
	Kind, Name string
	// Nearest is the name of one that exists and may be meant, or empty.
	Nearest string
}

// Error names the object.
func (m *Missing) Error() string { return fmt.Sprintf("%s %q not found", m.Kind, m.Name) }

// objectKey returns the key of an object with a namespace.
func objectKey(namespace, name string) string { return namespace + "/" + name }

// claimsOf returns the claims of a Pod, and makes those that the controller would make for it. The
// claim for extended resources, if there is one, is the last.
func (c *catalog) claimsOf(pod *corev1.Pod) ([]*resourcev1.ResourceClaim, error) {
	var claims []*resourcev1.ResourceClaim
	for i := range pod.Spec.ResourceClaims {
		claim, err := c.claimOf(pod, &pod.Spec.ResourceClaims[i])
		if err != nil {
			return claims, err
		}
		if slices.Contains(claims, claim) {
			return claims, fmt.Errorf("spec.resourceClaims[%d]: resourceclaim %q is there twice, and the scheduler fails to reserve it twice: leave one out", i, claim.Name)
		}
		if claim != nil {
			claims = append(claims, claim)
		}
	}
	extended, err := c.extendedClaim(pod)
	if extended != nil {
		claims = append(claims, extended)
	}
	return claims, err
}

// claimOf returns a claim of a Pod, or nil if the controller has found it unnecessary.
func (c *catalog) claimOf(pod *corev1.Pod, podClaim *corev1.PodResourceClaim) (*resourcev1.ResourceClaim, error) {
	name, owned, err := resourceclaim.Name(pod, podClaim)
	switch {
	case errors.Is(err, resourceclaim.ErrClaimNotFound):
		return c.makeClaim(pod, podClaim)
	case err != nil:
		return nil, err
	case name == nil:
		return nil, nil
	}
	claim := c.claims[objectKey(pod.Namespace, *name)]
	switch {
	case claim == nil:
		return nil, &Missing{Kind: "resourceclaim", Name: *name}
	case claim.DeletionTimestamp != nil:
		if len(claim.Status.ReservedFor) > 0 {
			return nil, fmt.Errorf("resourceclaim %q is being deleted, and %s still uses it", *name, holderOf(claim))
		}
		return nil, fmt.Errorf("resourceclaim %q is being deleted", *name)
	case owned:
		return claim, resourceclaim.IsForPod(pod, claim, false)
	}
	return claim, nil
}

// makeClaim makes a claim from its template, as the controller does, under a name that is always
// the same.
func (c *catalog) makeClaim(pod *corev1.Pod, podClaim *corev1.PodResourceClaim) (*resourcev1.ResourceClaim, error) {
	name := pod.Name + "-" + podClaim.Name
	if made := c.claims[objectKey(pod.Namespace, name)]; made != nil {
		if made.Annotations[podClaimAnnotation] == podClaim.Name {
			return made, nil
		}
		return nil, fmt.Errorf("resourceclaim %q, which would be made for the Pod, is there already: rename one", name)
	}
	template := c.templates[objectKey(pod.Namespace, *podClaim.ResourceClaimTemplateName)]
	if template == nil {
		return nil, &Missing{Kind: "resourceclaimtemplate", Name: *podClaim.ResourceClaimTemplateName}
	}
	claim := &resourcev1.ResourceClaim{ObjectMeta: *template.Spec.ObjectMeta.DeepCopy(), Spec: *template.Spec.Spec.DeepCopy()}
	claim.Name, claim.Namespace = name, pod.Namespace
	metav1.SetMetaDataAnnotation(&claim.ObjectMeta, podClaimAnnotation, podClaim.Name)
	c.addOwned(pod, claim)
	return claim, nil
}

// addOwned adds a claim that is made for a Pod.
func (c *catalog) addOwned(pod *corev1.Pod, claim *resourcev1.ResourceClaim) {
	if pod.UID != "" { // or the API server would refuse the claim
		claim.OwnerReferences = []metav1.OwnerReference{{
			APIVersion: "v1", Kind: "Pod", Name: pod.Name, UID: pod.UID, Controller: new(true), BlockOwnerDeletion: new(true),
		}}
	}
	setDefaults(&claim.Spec)
	c.claims[objectKey(claim.Namespace, claim.Name)] = claim
}

// setDefaults sets the defaults of the API server.
func setDefaults(spec *resourcev1.ResourceClaimSpec) {
	for i := range spec.Devices.Requests {
		request := &spec.Devices.Requests[i]
		if exactly := request.Exactly; exactly != nil {
			setCount(&exactly.AllocationMode, &exactly.Count)
			setOperators(exactly.Tolerations)
		}
		for j := range request.FirstAvailable {
			sub := &request.FirstAvailable[j]
			setCount(&sub.AllocationMode, &sub.Count)
			setOperators(sub.Tolerations)
		}
	}
}

func setCount(mode *resourcev1.DeviceAllocationMode, count *int64) {
	if *mode == "" {
		*mode = resourcev1.DeviceAllocationModeExactCount
	}
	if *mode == resourcev1.DeviceAllocationModeExactCount && *count == 0 {
		*count = 1
	}
}

func setOperators(tolerations []resourcev1.DeviceToleration) {
	for i := range tolerations {
		if tolerations[i].Operator == "" {
			tolerations[i].Operator = resourcev1.DeviceTolerationOpEqual
		}
	}
}

func isReservedFor(claim *resourcev1.ResourceClaim, pod *corev1.Pod) bool {
	return slices.ContainsFunc(claim.Status.ReservedFor, func(c resourcev1.ResourceClaimConsumerReference) bool {
		return c.Resource == "pods" && c.Name == pod.Name && c.UID == pod.UID
	})
}
