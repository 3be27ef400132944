package slices

import (
	"errors"
	"maps"
	"slices"

	"github.com/kwok-dra/kwok-dra/pkg/devices"
)

// Outcome is the state of a template on a node, or of its pool that nodes
// share.
type Outcome struct {
	// Slices is the number of slices that have devices or counter sets of the
	// template, and Devices that of its devices. Both are 0 where nothing is
	// published.
	Slices, Devices int
	// HiddenBy is the template of a higher priority that counts in its place, if one
	// does.
	HiddenBy string
	// Problem is why nothing is published, or not what the template says now. It is
	// nil where the node does not let the pool be published yet.
	Problem error
}

// result is the state of a driver's pools in a scope.
type result struct {
	wrote bool
	// behind says that the slices are not yet what they should be: another replica
	// writes them, or others have undone the writes too often to repeat them at once.
	behind bool
	pools  []devices.Pool
	layout devices.Layout
	err    error
}

// results are those of a scope, by driver.
type results map[string]result

func (r results) wrote() bool {
	for _, one := range r {
		if one.wrote {
			return true
		}
	}
	return false
}

// settled reports whether there was nothing to write.
func (r results) settled() bool {
	for _, one := range r {
		if one.wrote || one.behind || one.err != nil {
			return false
		}
	}
	return true
}

func (r results) err() error {
	var errs []error
	for _, driver := range slices.Sorted(maps.Keys(r)) {
		errs = append(errs, r[driver].err)
	}
	return errors.Join(errs...)
}

// errDropped is the problem of a pool that is not published because a field is dropped.
var errDropped = errors.New("the API server drops a field without which the pool would be wrong; an event FieldsDropped on a Node names it")

// outcome returns the state of a template.
func (d *desired) outcome(t *devices.Template, r results) Outcome {
	has := func(p devices.Pool) bool { return slices.Contains(p.Templates, t) }
	driver := r[t.Driver]
	for _, refusal := range d.refused {
		if slices.Contains(refusal.Templates, t) {
			return Outcome{Problem: refusal.Err}
		}
	}
	switch i := slices.IndexFunc(driver.pools, has); {
	case d.held[t.Driver] != nil:
		return Outcome{Problem: d.held[t.Driver]}
	case driver.err != nil:
		return Outcome{Problem: driver.err}
	case driver.behind:
		return Outcome{}
	case i >= 0:
		pool := &driver.pools[i]
		made, err := pool.Slices(driver.layout)
		made = slices.DeleteFunc(made, func(s devices.Slice) bool { return !pool.Holds(&s, t) })
		return Outcome{Slices: len(made), Devices: pool.DevicesOf(t), Problem: err}
	case slices.ContainsFunc(d.pools, has):
		return Outcome{Problem: errDropped}
	}
	return Outcome{}
}

// report passes on the state of each template in a scope.
func (p *Publisher) report(of scope, want *desired, templates []*devices.Template, r results) {
	if p.outcomes == nil {
		return
	}
	all := map[string]Outcome{}
	for _, t := range templates {
		all[t.Name] = want.outcome(t, r)
	}
	for t, by := range want.hidden {
		all[t.Name] = Outcome{HiddenBy: by.Name}
	}
	p.outcomes(of.String(), all)
}
