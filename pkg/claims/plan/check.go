package plan

import (
	"errors"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/dynamic-resource-allocation/resourceclaim"
)

// The reasons of prepare failures, as kwok_dra_prepare_failures_total has them.
// docs/reference/metrics.md is made from these comments.
const (
	// the claim does not exist, or has not been created from its template yet.
	ReasonNoClaim = "no_claim"
	// the claim was made for another Pod.
	ReasonNotOwner = "not_owner"
	// the claim is not reserved for the Pod, which was bound without the scheduler.
	ReasonNotReserved = "not_reserved"
	// the claim is not allocated.
	ReasonNotAllocated = "not_allocated"
	// a template names the driver, and it has no pool on the node.
	ReasonNotRegistered = "not_registered"
	// the Stages say that the driver's plugin has crashed.
	ReasonUnavailable = "unavailable"
	// `failWhen` selects the Pod.
	ReasonSimulated = "simulated"
	// a template in `claimStatus` cannot be rendered, or yields what the API server does not accept.
	ReasonTemplate = "template"
	// no document in force makes a device that is published, and a document that may is refused since before kwok-dra started.
	ReasonUnsettled = "unsettled"
	// `prepareWhen` or `failWhen` cannot be evaluated for the Pod.
	ReasonSelector = "selector"
	// the API server refuses a write, or does not answer.
	ReasonAPI = "api"
)

// Failure is a failure to prepare that the kubelet would have as well: only time, or a
// change of the Pod, can help.
type Failure struct {
	Reason string
	Err    error
}

// Error is the kubelet's text.
func (f *Failure) Error() string { return f.Err.Error() }

// Unwrap returns the cause.
func (f *Failure) Unwrap() error { return f.Err }

// Failed makes a Failure.
func Failed(reason, format string, arguments ...any) error {
	return &Failure{Reason: reason, Err: fmt.Errorf(format, arguments...)}
}

// check performs the kubelet's checks in its order and with its error texts
// (Manager.prepareResources in pkg/kubelet/cm/dra), and returns the claims to be
// prepared.
func (v *PodView) check() ([]*resourcev1.ResourceClaim, error) {
	var claims []*resourcev1.ResourceClaim
	for _, podClaim := range podClaims(v.Pod) {
		claim, err := v.checkClaim(&podClaim)
		if err != nil {
			return nil, err
		}
		if claim != nil {
			claims = append(claims, claim)
		}
	}
	return claims, nil
}

// checkClaim returns nil where no claim was made for the Pod, on purpose.
func (v *PodView) checkClaim(podClaim *corev1.PodResourceClaim) (*resourcev1.ResourceClaim, error) {
	pod := v.Pod
	name, mustCheckOwner, err := resourceclaim.Name(pod, podClaim)
	if err != nil {
		return nil, &Failure{ReasonNoClaim, err}
	}
	if name == nil {
		return nil, nil
	}
	claim, err := v.Claim(*name)
	if apierrors.IsNotFound(err) {
		return nil, Failed(ReasonNoClaim, "fetch ResourceClaim %s: %w", *name, err)
	}
	if err != nil {
		return nil, fmt.Errorf("fetch ResourceClaim %s: %w", *name, err)
	}
	if mustCheckOwner {
		if err := resourceclaim.IsForPod(pod, claim, true); err != nil {
			return nil, &Failure{ReasonNotOwner, err}
		}
	}
	if !resourceclaim.IsReservedForPod(pod, claim, true) {
		return nil, Failed(ReasonNotReserved, "pod %s (%s) is not allowed to use ResourceClaim %s (%s)", pod.Name, pod.UID, *name, claim.UID)
	}
	if claim.Status.Allocation == nil {
		return nil, Failed(ReasonNotAllocated, "ResourceClaim %s: %w", claim.Name, errNotAllocated)
	}
	return claim, v.checkDrivers(claim)
}

var errNotAllocated = errors.New("not allocated")

func (v *PodView) checkDrivers(claim *resourcev1.ResourceClaim) error {
	for _, result := range claim.Status.Allocation.Devices.Results {
		if SkipsPrepare(claim, result.Driver) {
			continue
		}
		registered, err := v.Driver.Registered(result.Driver)
		if err != nil {
			return err
		}
		if !registered {
			return Failed(ReasonNotRegistered, "DRA driver %s is not registered", result.Driver)
		}
	}
	return nil
}

// SkipsPrepare reports whether the kubelet leaves a claim's driver alone: all of
// its devices in the claim say so (computeDriverStates in pkg/kubelet/cm/dra).
func SkipsPrepare(claim *resourcev1.ResourceClaim, driver string) bool {
	return !slices.ContainsFunc(claim.Status.Allocation.Devices.Results, func(result resourcev1.DeviceRequestAllocationResult) bool {
		return result.Driver == driver && !slices.ContainsFunc(result.SkipNodeOperations, func(operation resourcev1.SkipNodeOperation) bool {
			return operation == resourcev1.SkipNodeOperationAll || operation == resourcev1.SkipNodeOperationNodePrepareResources
		})
	})
}
