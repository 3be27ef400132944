package drajudge

import (
	"fmt"
	"strings"

	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/util/sets"
)

// checkConstraints checks the constraints of a claim, across its requests and their drivers.
func (a *allocation) checkConstraints() {
	constraints := a.claim.Spec.Devices.Constraints
	for i := range constraints {
		switch constraint := &constraints[i]; {
		case constraint.MatchAttribute != nil:
			a.checkMatchAttribute(*constraint.MatchAttribute, a.coveredBy(constraint))
		case constraint.DistinctAttribute != nil:
			a.checkDistinctAttribute(*constraint.DistinctAttribute, a.coveredBy(constraint))
		}
	}
}

// coveredBy returns the devices that a constraint covers. A device that is in no slice has no attributes to
// compare, and checkPools reports it.
func (a *allocation) coveredBy(constraint *resourcev1.DeviceConstraint) []*result {
	var covered []*result
	for i := range a.results {
		if r := &a.results[i]; r.offer != nil && r.request != nil && r.request.isNamedIn(constraint.Requests) {
			covered = append(covered, r)
		}
	}
	return covered
}

func (a *allocation) checkMatchAttribute(name resourcev1.FullyQualifiedName, covered []*result) {
	var common sets.Set[string]
	for _, r := range covered {
		values, why := a.valuesOf(r, name)
		if why != "" {
			a.reportOn(r, matchAttribute, "%s", why)
			return
		}
		if common == nil {
			common = values
		}
		if common = common.Intersection(values); len(common) == 0 {
			a.reportOn(r, matchAttribute, "its %s is %s, which the devices before it do not have", name, listValues(values))
			return
		}
	}
}

func (a *allocation) checkDistinctAttribute(name resourcev1.FullyQualifiedName, covered []*result) {
	taken := map[string]*result{}
	for _, r := range covered {
		values, why := a.valuesOf(r, name)
		if why != "" {
			a.reportOn(r, distinctAttribute, "%s", why)
			return
		}
		for value := range values {
			if other := taken[value]; other != nil {
				a.reportOn(r, distinctAttribute, "its %s is %s, as that of device %s", name, listValues(values), other.id)
				return
			}
			taken[value] = r
		}
	}
}

// valuesOf returns the values of an attribute of a device, or says why it has none. Values of different types
// differ.
func (a *allocation) valuesOf(r *result, name resourcev1.FullyQualifiedName) (values sets.Set[string], why string) {
	attribute, why := a.attributeOf(r, name)
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
func (a *allocation) attributeOf(r *result, name resourcev1.FullyQualifiedName) (attribute *resourcev1.DeviceAttribute, why string) {
	for i := range r.request.DerivedAttributes {
		derived := &r.request.DerivedAttributes[i]
		if derived.Name != name {
			continue
		}
		compiled := a.cel.GetOrCompileDerivedAttribute(derived.Expression)
		if compiled.Error != nil {
			return nil, fmt.Sprintf("derived attribute %s does not compile: %s", name, compiled.Error)
		}
		attribute, _, err := compiled.EvaluateDerivedAttribute(a.ctx, celDevice(r.offer))
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
