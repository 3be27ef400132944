package config

import (
	"cmp"
	"errors"
	"slices"
)

// decision says which version of each source is in force.
type decision struct {
	set *Set
	// chosen has the version in force of each source that has one.
	chosen map[*source]*Documents
	// refused says why the newest version of a source is not in force.
	refused map[*source]error
	// pending is why nothing may be in force: a required source has no good version. It is nil
	// otherwise.
	pending error
}

// errNoVersion is why nothing is in force although no version was refused.
var errNoVersion = errors.New("not all of the configuration is there yet")

// decideVersions chooses the version of each source that is in force: the newest, or else the one that
// was good last. Where two sources contradict each other, the earlier one in the list wins. The
// decision depends on nothing but the sources.
func decideVersions(sources []*source) decision {
	d := decision{chosen: map[*source]*Documents{}, refused: map[*source]error{}}
	var all []*Documents
	for _, s := range sources {
		d.refused[s] = s.decodeErr
		if version := cmp.Or(s.newest, s.good); version != nil {
			d.chosen[s] = version
			all = append(all, version)
		}
	}
	var err error
	if d.set, err = NewSet(all...); err != nil {
		d.resolveContradictions(sources)
	}
	for _, s := range sources {
		if d.chosen[s] != nil || !s.presentAtStart {
			continue
		}
		if s.required {
			d.pending = cmp.Or(d.pending, d.refused[s], errNoVersion)
		}
		if d.refused[s] != nil {
			d.set.Unsettled = append(d.set.Unsettled, d.refused[s])
		}
	}
	return d
}

// resolveContradictions chooses for each source the version that does not contradict the
// sources before it.
func (d *decision) resolveContradictions(sources []*source) {
	var all []*Documents
	d.set, _ = NewSet()
	clear(d.chosen)
	for _, s := range sources {
		for _, version := range []*Documents{s.newest, s.good} {
			if version == nil {
				continue
			}
			set, err := NewSet(append(slices.Clip(all), version)...)
			if err == nil {
				d.set, d.chosen[s], all = set, version, append(all, version)
				break
			}
			if version == s.newest {
				d.refused[s] = err
			}
		}
	}
}
