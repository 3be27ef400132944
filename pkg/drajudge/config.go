package drajudge

import (
	"encoding/json"

	resourcev1 "k8s.io/api/resource/v1"
)

// configuration is an entry that applies to a request. Parameters are decoded, since the API server may write them
// in another form.
type configuration struct {
	source     resourcev1.AllocationConfigSource
	driver     string
	parameters any
}

func newConfiguration(source resourcev1.AllocationConfigSource, config *resourcev1.DeviceConfiguration) configuration {
	c := configuration{source: source}
	if config.Opaque == nil {
		return c
	}
	c.driver = config.Opaque.Driver
	if err := json.Unmarshal(config.Opaque.Parameters.Raw, &c.parameters); err != nil {
		c.parameters = string(config.Opaque.Parameters.Raw)
	}
	return c
}

// configurationsFor returns the entries for a request in the class and the claim, and those in the allocation.
func configurationsFor(claim *resourcev1.ResourceClaim, r *request, class *resourcev1.DeviceClass) (wanted, found []configuration) {
	for i := range class.Spec.Config {
		wanted = append(wanted, newConfiguration(resourcev1.AllocationConfigSourceClass, &class.Spec.Config[i].DeviceConfiguration))
	}
	specified := claim.Spec.Devices.Config
	for i := range specified {
		if r.isNamedIn(specified[i].Requests) {
			wanted = append(wanted, newConfiguration(resourcev1.AllocationConfigSourceClaim, &specified[i].DeviceConfiguration))
		}
	}
	allocated := claim.Status.Allocation.Devices.Config
	for i := range allocated {
		if r.isNamedIn(allocated[i].Requests) {
			found = append(found, newConfiguration(allocated[i].Source, &allocated[i].DeviceConfiguration))
		}
	}
	return wanted, found
}
