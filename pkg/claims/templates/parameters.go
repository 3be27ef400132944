package templates

import (
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/dynamic-resource-allocation/resourceclaim"

	"github.com/kwok-dra/kwok-dra/pkg/claims/plan"
)

// checkParameters fails where the driver of an allocated device cannot use the opaque
// parameters for it. What has no template is told of when the claim is rendered.
func (d *Driver) checkParameters(claim *resourcev1.ResourceClaim, result *resourcev1.DeviceRequestAllocationResult) error {
	if len(claim.Status.Allocation.Devices.Config) == 0 || !d.Has(result.Driver) || plan.SkipsPrepare(claim, result.Driver) {
		return nil
	}
	template, err := d.Lookup.Template(result)
	if err != nil || template.Parameters == nil {
		return nil //nolint:nilerr // Entries returns it
	}
	for _, parameters := range ParametersFor(claim, result) {
		if err := template.Parameters.Check(result.Driver, parameters.Raw); err != nil {
			return plan.Failed(plan.ReasonParameters, "NodePrepareResources failed for ResourceClaim %s: error preparing devices for claim %s: %w", claim.Name, claim.UID, err)
		}
	}
	return nil
}

// ParametersFor lists the opaque parameters for the driver of a result and its request.
func ParametersFor(claim *resourcev1.ResourceClaim, result *resourcev1.DeviceRequestAllocationResult) []runtime.RawExtension {
	return ParametersOf(resourceclaim.ConfigForResult(claim.Status.Allocation.Devices.Config, *result), result.Driver)
}

// ParametersOf lists opaque parameters for a driver. The scheduler puts those of the
// class before those of the claim (DeviceAllocationResult.Config); so does kwok-dra,
// whatever allocated.
func ParametersOf(configs []resourcev1.DeviceAllocationConfiguration, driver string) []runtime.RawExtension {
	parameters := []runtime.RawExtension{}
	for _, source := range []resourcev1.AllocationConfigSource{resourcev1.AllocationConfigSourceClass, resourcev1.AllocationConfigSourceClaim} {
		for _, config := range configs {
			if config.Source == source && config.Opaque != nil && config.Opaque.Driver == driver {
				parameters = append(parameters, config.Opaque.Parameters)
			}
		}
	}
	return parameters
}
