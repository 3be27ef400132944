package schedule

import (
	"context"
	"fmt"

	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/dynamic-resource-allocation/cel"
)

// selector is one that a device must match, and its origin.
type selector struct {
	from, expression string
}

// selectorsOf are the selectors of a request, those of its class first, in the
// order in which the allocator goes through them.
func (s *Scheduler) selectorsOf(request *alternative) []selector {
	var all []selector
	if class := s.classes[request.DeviceClassName]; class != nil {
		all = appendSelectors(all, "class "+class.Name, class.Spec.Selectors)
	}
	return appendSelectors(all, "request", request.Selectors)
}

func appendSelectors(all []selector, from string, more []resourcev1.DeviceSelector) []selector {
	for i := range more {
		if more[i].CEL != nil {
			all = append(all, selector{from, more[i].CEL.Expression})
		}
	}
	return all
}

// match is a device with a selector that it may match.
type match struct {
	device     *resourcev1.Device
	expression string
}

// matches reports whether a device matches a selector. It is remembered, since many
// Pods ask for the same.
func (s *Scheduler) matches(ctx context.Context, driver string, device *resourcev1.Device, by selector) (bool, error) {
	of := match{device, by.expression}
	if known, found := s.matched[of]; found {
		return known, nil
	}
	matches, err := s.evaluate(ctx, driver, device, by)
	if err == nil {
		s.matched[of] = matches
	}
	return matches, err
}

func (s *Scheduler) evaluate(ctx context.Context, driver string, device *resourcev1.Device, by selector) (bool, error) {
	compiled := s.cel.GetOrCompile(by.expression)
	if compiled.Error != nil {
		return false, fmt.Errorf("%s: selector %s: %w", by.from, by.expression, compiled.Error)
	}
	matches, _, err := compiled.DeviceMatches(ctx, cel.Device{
		Driver: driver, AllowMultipleAllocations: device.AllowMultipleAllocations,
		Attributes: device.Attributes, Capacity: device.Capacity,
	})
	return matches, cel.EnhanceRuntimeError(err)
}
