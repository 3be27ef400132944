package resourceslice

import (
	"cmp"
	"errors"
	"slices"

	"github.com/kwok-dra/kwok-dra/internal/devices"
	"github.com/kwok-dra/kwok-dra/internal/resourceslice/features"
	"github.com/kwok-dra/kwok-dra/internal/resourceslice/plan"
)

// Outcome is the state of a template on a node, or of its pool that nodes share.
type Outcome struct {
	// Slices counts the slices that have devices or counter sets of the template, and Devices its devices. Both are 0
	// if nothing is published.
	Slices, Devices int
	// HiddenBy is the template of a higher priority that takes its place, or empty.
	HiddenBy string
	// Problem is why nothing is published, or not what the template says now. It is nil if the node's state does not
	// let the pool be published yet.
	Problem error
}

// Add returns the state of two templates together: their sums, and otherwise what the first of them has.
func (o Outcome) Add(other Outcome) Outcome {
	return Outcome{
		Slices: o.Slices + other.Slices, Devices: o.Devices + other.Devices,
		HiddenBy: cmp.Or(o.HiddenBy, other.HiddenBy), Problem: cmp.Or(o.Problem, other.Problem),
	}
}

// result is what has become of a driver's pools.
type result struct {
	wrote bool
	// isBehind says that the slices are not yet what they should be: another replica writes them, or others have undone
	// the writes too often to repeat them at once.
	isBehind bool
	// isPending says that they are behind because a probe of the API server is in progress.
	isPending bool
	fitted    features.Fitted
	err       error
}

// results are the results of all drivers, and their sum.
type results struct {
	result
	drivers map[string]result
}

// errDropped is the problem of a pool that would be wrong without a field.
var errDropped = errors.New("the API server drops a field without which the pool would be wrong; an event FieldsDropped on a Node names it")

// templateOutcomes are the states of the templates, each for all driver Pods on the node.
func (r *results) templateOutcomes(desired *plan.Desired) map[string]Outcome {
	all := map[string]Outcome{}
	for _, t := range desired.Templates {
		all[t.Name] = all[t.Name].Add(r.outcomeOf(desired, t))
	}
	for t, by := range desired.Hidden {
		all[t.Name] = all[t.Name].Add(Outcome{HiddenBy: by.Name})
	}
	for t, err := range desired.Failed {
		all[t.Name] = all[t.Name].Add(Outcome{Problem: err})
	}
	return all
}

// outcomeOf is the state of a template that makes pools.
func (r *results) outcomeOf(desired *plan.Desired, t *devices.Template) Outcome {
	for _, refusal := range desired.Refused {
		if slices.Contains(refusal.Templates, t) {
			return Outcome{Problem: refusal.Err}
		}
	}
	if retained, ok := desired.Retained[t]; ok { // they stay as they are
		o := Outcome{Slices: len(retained)}
		for _, slice := range retained {
			o.Devices += len(slice.Devices.List())
		}
		return o
	}
	has := func(p devices.Pool) bool { return slices.Contains(p.Templates, t) }
	driver := r.drivers[t.Driver]
	switch i := slices.IndexFunc(driver.fitted.Pools, has); {
	case desired.Suspended[t.Driver] != nil:
		return Outcome{Problem: desired.Suspended[t.Driver]}
	case driver.err != nil:
		return Outcome{Problem: driver.err}
	case driver.isBehind:
		return Outcome{}
	case i >= 0:
		pool := &driver.fitted.Pools[i]
		made, err := pool.Slices(driver.fitted.Layout)
		made = slices.DeleteFunc(made, func(s devices.Slice) bool { return !pool.Holds(&s, t) })
		return Outcome{Slices: len(made), Devices: t.Size(), Problem: err}
	case slices.ContainsFunc(desired.Pools, has):
		return Outcome{Problem: errDropped}
	}
	return Outcome{}
}
