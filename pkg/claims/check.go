package claims

import (
	"errors"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/dynamic-resource-allocation/resourceclaim"

	"github.com/kwok-dra/kwok-dra/pkg/api/v1alpha1"
)

// The reasons of prepare failures, as kwok_dra_prepare_failures_total has them.
// docs/reference/metrics.md is made from these comments.
const (
	// the claim does not exist, or has not been created from its template yet.
	reasonNoClaim = "no_claim"
	// the claim was made for another Pod.
	reasonNotOwner = "not_owner"
	// the claim is not reserved for the Pod, which was bound without the scheduler.
	reasonNotReserved = "not_reserved"
	// the claim is not allocated.
	reasonNotAllocated = "not_allocated"
	// a template names the driver, and it has no pool on the node.
	reasonNotRegistered = "not_registered"
	// the Stages say that the driver's plugin has crashed.
	reasonUnavailable = "unavailable"
	// `failWhen` selects the Pod.
	reasonSimulated = "simulated"
	// a template in `claimStatus` cannot be rendered, or yields what the API server does not accept.
	reasonTemplate = "template"
	// no document in force makes a device that is published, and a document that may is refused since before kwok-dra started.
	reasonUnsettled = "unsettled"
	// `prepareWhen` or `failWhen` cannot be evaluated for the Pod.
	reasonSelector = "selector"
	// the API server refuses a write, or does not answer.
	reasonAPI = "api"
)

// prepareError is a failure that the kubelet would have as well: only time, or a
// change of the Pod, can help.
type prepareError struct {
	reason string
	err    error
}

func (e *prepareError) Error() string { return e.err.Error() }
func (e *prepareError) Unwrap() error { return e.err }

func failed(reason, format string, arguments ...any) error {
	return &prepareError{reason: reason, err: fmt.Errorf(format, arguments...)}
}

// view is what the kubelet's checks look at.
type view struct {
	// claim gets a claim of the Pod's namespace.
	claim func(name string) (*resourcev1.ResourceClaim, error)
	// registered reports whether a driver has registered with the node's kubelet.
	registered func(driver string) (bool, error)
}

// check performs the kubelet's checks in its order and with its error texts
// (Manager.prepareResources in pkg/kubelet/cm/dra), and returns the claims to be
// prepared.
func check(pod *corev1.Pod, v view) ([]*resourcev1.ResourceClaim, error) {
	var claims []*resourcev1.ResourceClaim
	for _, podClaim := range podClaims(pod) {
		claim, err := checkClaim(pod, &podClaim, v)
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
func checkClaim(pod *corev1.Pod, podClaim *corev1.PodResourceClaim, v view) (*resourcev1.ResourceClaim, error) {
	name, mustCheckOwner, err := resourceclaim.Name(pod, podClaim)
	if err != nil {
		return nil, &prepareError{reasonNoClaim, err}
	}
	if name == nil {
		return nil, nil
	}
	claim, err := v.claim(*name)
	if apierrors.IsNotFound(err) {
		return nil, failed(reasonNoClaim, "fetch ResourceClaim %s: %w", *name, err)
	}
	if err != nil {
		return nil, fmt.Errorf("fetch ResourceClaim %s: %w", *name, err)
	}
	if mustCheckOwner {
		if err := resourceclaim.IsForPod(pod, claim, true); err != nil {
			return nil, &prepareError{reasonNotOwner, err}
		}
	}
	if !resourceclaim.IsReservedForPod(pod, claim, true) {
		return nil, failed(reasonNotReserved, "pod %s (%s) is not allowed to use ResourceClaim %s (%s)", pod.Name, pod.UID, *name, claim.UID)
	}
	if claim.Status.Allocation == nil {
		return nil, failed(reasonNotAllocated, "ResourceClaim %s: %w", claim.Name, errNotAllocated)
	}
	return claim, checkDrivers(claim, v)
}

var errNotAllocated = errors.New("not allocated")

func checkDrivers(claim *resourcev1.ResourceClaim, v view) error {
	for _, result := range claim.Status.Allocation.Devices.Results {
		if skipsPrepare(claim, result.Driver) {
			continue
		}
		registered, err := v.registered(result.Driver)
		if err != nil {
			return err
		}
		if !registered {
			return failed(reasonNotRegistered, "DRA driver %s is not registered", result.Driver)
		}
	}
	return nil
}

// skipsPrepare reports whether the kubelet leaves a claim's driver alone: all of
// its devices in the claim say so (computeDriverStates in pkg/kubelet/cm/dra).
func skipsPrepare(claim *resourcev1.ResourceClaim, driver string) bool {
	return !slices.ContainsFunc(claim.Status.Allocation.Devices.Results, func(result resourcev1.DeviceRequestAllocationResult) bool {
		return result.Driver == driver && !slices.ContainsFunc(result.SkipNodeOperations, func(operation resourcev1.SkipNodeOperation) bool {
			return operation == resourcev1.SkipNodeOperationAll || operation == resourcev1.SkipNodeOperationNodePrepareResources
		})
	})
}

// plugin is the state of a node's DRA plugins by its condition PluginRegistered.
type plugin int

const (
	pluginUp plugin = iota
	// pluginSilent has not unregistered, but does not answer.
	pluginSilent
	pluginGone
)

// pluginOf reads the condition. A node that does not have it has its plugins up.
func pluginOf(node *corev1.Node) plugin {
	for _, condition := range node.Status.Conditions {
		switch {
		case condition.Type != v1alpha1.PluginRegistered:
		case condition.Status == corev1.ConditionTrue:
			return pluginUp
		case condition.Reason == v1alpha1.PluginCrashed && condition.Status == corev1.ConditionUnknown:
			return pluginSilent
		default:
			return pluginGone
		}
	}
	return pluginUp
}

// unavailable is the kubelet's error for a plugin that does not answer.
func unavailable(driver string) error {
	return failed(reasonUnavailable, "NodePrepareResources: rpc error: code = Unavailable desc = connection error: "+
		"desc = \"transport: Error while dialing: dial unix /var/lib/kubelet/plugins/%s/dra.sock: connect: connection refused\"", driver)
}
