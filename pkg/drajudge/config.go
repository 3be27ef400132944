package drajudge

import (
	"encoding/json"
	"reflect"
	"slices"

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

// checkConfig checks that an allocation has the configuration for each request that got devices. It compares what
// applies to a request: schedulers may list that in several ways.
func (a *allocation) checkConfig() {
	for i := range a.requests {
		r := &a.requests[i]
		class := a.supply.class(r.DeviceClassName)
		if class == nil || !slices.ContainsFunc(a.results, func(given result) bool { return given.request == r }) {
			continue
		}
		var wanted, found []configuration
		for j := range class.Spec.Config {
			wanted = append(wanted, newConfiguration(resourcev1.AllocationConfigSourceClass, &class.Spec.Config[j].DeviceConfiguration))
		}
		specified := a.claim.Spec.Devices.Config
		for j := range specified {
			if r.isNamedIn(specified[j].Requests) {
				wanted = append(wanted, newConfiguration(resourcev1.AllocationConfigSourceClaim, &specified[j].DeviceConfiguration))
			}
		}
		allocated := a.claim.Status.Allocation.Devices.Config
		for j := range allocated {
			if r.isNamedIn(allocated[j].Requests) {
				found = append(found, newConfiguration(allocated[j].Source, &allocated[j].DeviceConfiguration))
			}
		}
		if !reflect.DeepEqual(wanted, found) {
			a.report(configCopied, "for request %s the class and the claim have %d entries, and the allocation has %d, or others", r.name, len(wanted), len(found))
		}
	}
}
