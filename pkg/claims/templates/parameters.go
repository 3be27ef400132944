package templates

import (
	resourcev1 "k8s.io/api/resource/v1"

	"github.com/kwok-dra/kwok-dra/pkg/claims/plan"
)

// checkParameters fails where the driver of an allocated device cannot use the opaque
// parameters for it. What has no template is told of when the claim is rendered.
func (d *Driver) checkParameters(claim *resourcev1.ResourceClaim, result *resourcev1.DeviceRequestAllocationResult) error {
	if len(claim.Status.Allocation.Devices.Config) == 0 || !d.Has(result.Driver) || plan.SkipsPrepare(claim, result.Driver) {
		return nil
	}
	template, err := d.lookup.Template(result)
	if err != nil || template.Parameters == nil {
		return nil //nolint:nilerr // Entries returns it
	}
	for _, parameters := range configOf(claim, result) {
		if err := template.Parameters.Check(result.Driver, parameters.Raw); err != nil {
			return plan.Failed(plan.ReasonParameters, "NodePrepareResources failed for ResourceClaim %s: error preparing devices for claim %s: %w", claim.Name, claim.UID, err)
		}
	}
	return nil
}
