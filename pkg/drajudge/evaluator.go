package drajudge

import (
	"context"
	"fmt"
	"strings"

	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/dynamic-resource-allocation/cel"
)

// evaluator evaluates what classes and requests say of devices.
type evaluator struct {
	ctx context.Context //nolint:containedctx // it lasts for one call
	cel *cel.Cache
}

// whyUnselected says which selector a device does not match, or returns "".
func (e *evaluator) whyUnselected(offer *poolDevice, selectors []resourcev1.DeviceSelector) string {
	for i := range selectors {
		if selectors[i].CEL == nil {
			return fmt.Sprintf("selector %d is of an unknown kind", i)
		}
		expression := selectors[i].CEL.Expression
		compiled := e.cel.GetOrCompile(expression)
		if compiled.Error != nil {
			return fmt.Sprintf("selector `%s` does not compile: %s", expression, compiled.Error)
		}
		matches, _, err := compiled.DeviceMatches(e.ctx, celDevice(offer))
		if err != nil {
			return fmt.Sprintf("selector `%s` fails: %s", expression, err)
		}
		if !matches {
			return fmt.Sprintf("selector `%s` is false", expression)
		}
	}
	return ""
}

func celDevice(offer *poolDevice) cel.Device {
	device := offer.device
	return cel.Device{
		Driver: offer.id.driver, AllowMultipleAllocations: device.AllowMultipleAllocations,
		Attributes: device.Attributes, Capacity: device.Capacity,
	}
}

// valuesOf returns the values of an attribute of a device, or says why it has none. Values of different types
// differ.
func (e *evaluator) valuesOf(r *result, name resourcev1.FullyQualifiedName) (values sets.Set[string], why string) {
	attribute, why := e.attributeOf(r, name)
	if why != "" {
		return nil, why
	}
	values = sets.New[string]()
	addValues(values, "int", attribute.IntValue, attribute.IntValues)
	addValues(values, "bool", attribute.BoolValue, attribute.BoolValues)
	addValues(values, "string", attribute.StringValue, attribute.StringValues)
	addValues(values, "version", attribute.VersionValue, attribute.VersionValues)
	if len(values) == 0 {
		return nil, fmt.Sprintf("its %s has no value", name)
	}
	return values, ""
}

// attributeOf returns the attribute that the request derives, or else that of the slice.
func (e *evaluator) attributeOf(r *result, name resourcev1.FullyQualifiedName) (attribute *resourcev1.DeviceAttribute, why string) {
	for i := range r.request.DerivedAttributes {
		derived := &r.request.DerivedAttributes[i]
		if derived.Name != name {
			continue
		}
		compiled := e.cel.GetOrCompileDerivedAttribute(derived.Expression)
		if compiled.Error != nil {
			return nil, fmt.Sprintf("derived attribute %s does not compile: %s", name, compiled.Error)
		}
		attribute, _, err := compiled.EvaluateDerivedAttribute(e.ctx, celDevice(r.offer))
		if err != nil {
			return nil, fmt.Sprintf("derived attribute %s fails: %s", name, err)
		}
		return attribute, ""
	}
	attributes := r.offer.device.Attributes
	if attribute, found := attributes[resourcev1.QualifiedName(name)]; found {
		return &attribute, ""
	}
	// A driver may leave out its own domain.
	if own, isOwn := strings.CutPrefix(string(name), r.id.driver+"/"); isOwn {
		if attribute, found := attributes[resourcev1.QualifiedName(own)]; found {
			return &attribute, ""
		}
	}
	return nil, fmt.Sprintf("it has no attribute %s", name)
}

func addValues[T any](values sets.Set[string], kind string, single *T, list []T) {
	if single != nil {
		list = append(list, *single)
	}
	for _, value := range list {
		values.Insert(fmt.Sprintf("%s %v", kind, value))
	}
}

func listValues(values sets.Set[string]) string { return strings.Join(sets.List(values), ", ") }
