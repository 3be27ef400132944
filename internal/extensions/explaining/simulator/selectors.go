package simulator

import (
	"context"
	"fmt"
	"slices"
	"strings"

	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/dynamic-resource-allocation/cel"
)

// expressions is how many compiled expressions are cached.
const expressions = 1000

// matcher evaluates the selectors of requests and of their classes.
type matcher struct {
	classes classes
	cel     *cel.Cache
	matched map[match]bool
}

func newMatcher(of classes) *matcher {
	return &matcher{
		classes: of,
		cel:     cel.NewCache(expressions, cel.Features{EnableConsumableCapacity: true, EnableListTypeAttributes: true}),
		matched: map[match]bool{},
	}
}

// selector is an expression that a device must match, and its origin.
type selector struct {
	from, expression string
}

// fromRequest is the origin of selectors that are in the request itself.
const fromRequest = "request"

// selectorsOf returns the selectors of a request, those of its class first, in the order in which
// the allocator goes through them.
func (m *matcher) selectorsOf(request *alternative) []selector {
	var all []selector
	if class := m.classes[request.DeviceClassName]; class != nil {
		all = appendSelectors(all, "class "+class.Name, class.Spec.Selectors)
	}
	return appendSelectors(all, fromRequest, request.Selectors)
}

func appendSelectors(all []selector, from string, more []resourcev1.DeviceSelector) []selector {
	for i := range more {
		if more[i].CEL != nil {
			all = append(all, selector{from, more[i].CEL.Expression})
		}
	}
	return all
}

// match is a device and a selector that it may match. A selector that looks at the driver alone matches all
// devices of a driver or none, so device is nil for it.
type match struct {
	driver     string
	device     *resourcev1.Device
	expression string
}

// looksAtDriverOnly reports whether an expression uses none of the fields in which devices of a driver differ.
func looksAtDriverOnly(expression string) bool {
	return !strings.Contains(expression, "attributes") && !strings.Contains(expression, "capacity") && !strings.Contains(expression, "allowMultipleAllocations")
}

// matchesSelector reports whether a device matches a selector. Results are cached, since many
// Pods ask for the same.
func (m *matcher) matchesSelector(ctx context.Context, driver string, device *resourcev1.Device, by selector) (bool, error) {
	of := match{driver, device, by.expression}
	if looksAtDriverOnly(by.expression) {
		of.device = nil
	}
	if known, found := m.matched[of]; found {
		return known, nil
	}
	compiled := m.cel.GetOrCompile(by.expression)
	if compiled.Error != nil {
		return false, fmt.Errorf("%s: selector %s: %w", by.from, by.expression, compiled.Error)
	}
	matches, _, err := compiled.DeviceMatches(ctx, cel.Device{
		Driver: driver, AllowMultipleAllocations: device.AllowMultipleAllocations,
		Attributes: device.Attributes, Capacity: device.Capacity,
	})
	if err == nil {
		m.matched[of] = matches
	}
	return matches, cel.EnhanceRuntimeError(err)
}

// keepMatching returns the devices that match all selectors.
func (m *matcher) keepMatching(ctx context.Context, selectors []selector, devices []device) []device {
	return slices.DeleteFunc(slices.Clone(devices), func(d device) bool {
		return slices.ContainsFunc(selectors, func(by selector) bool {
			matches, _ := m.matchesSelector(ctx, d.driver, d.Device, by)
			return !matches
		})
	})
}

// failsForAny reports whether a selector of a request fails for any published device.
func (m *matcher) failsForAny(ctx context.Context, published *publications, request *alternative) bool {
	selectors := m.selectorsOf(request)
	for _, members := range published.slices {
		for _, slice := range members {
			for i := range slice.Spec.Devices {
				if m.failsForDevice(ctx, slice.Spec.Driver, &slice.Spec.Devices[i], selectors) {
					return true
				}
			}
		}
	}
	return false
}

// failsForDevice reports whether a selector fails for a device that matches the selectors before
// it.
func (m *matcher) failsForDevice(ctx context.Context, driver string, device *resourcev1.Device, selectors []selector) bool {
	for _, selector := range selectors {
		matches, err := m.matchesSelector(ctx, driver, device, selector)
		if err != nil || !matches {
			return err != nil
		}
	}
	return false
}
