package drajudge

import (
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/util/sets"
)

// checkConstraints checks the constraints of a claim, across its requests and their drivers.
func (a *allocation) checkConstraints() {
	constraints := a.claim.Spec.Devices.Constraints
	for i := range constraints {
		constraint := &constraints[i]
		var covered []*result // a device that is in no slice has no attributes to compare, and checkPools reports it
		for j := range a.results {
			if r := &a.results[j]; r.offer != nil && r.request != nil && r.request.isNamedIn(constraint.Requests) {
				covered = append(covered, r)
			}
		}
		switch {
		case constraint.MatchAttribute != nil:
			a.checkMatchAttribute(*constraint.MatchAttribute, covered)
		case constraint.DistinctAttribute != nil:
			a.checkDistinctAttribute(*constraint.DistinctAttribute, covered)
		}
	}
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
