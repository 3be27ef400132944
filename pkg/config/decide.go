package config

import (
	"cmp"
	"errors"
	"slices"
)

// decision is what is in force.
type decision struct {
	set *Set
	// chosen are the versions in force, of the sources that have one, and refused says
	// why the newest ones are not.
	chosen  map[*source]*Documents
	refused map[*source]error
	// waits is why nothing is in force: a source that is required has no good version. It
	// is nil where something is.
	waits error
}

// errNoVersion is why nothing is in force where no version is refused either.
var errNoVersion = errors.New("not all of the configuration is there yet")

// decide decides which version of each source is in force: the newest, or else the
// one that was good last. Where two contradict each other, the earlier source wins,
// whenever either of them has changed. It depends on nothing but the sources.
func decide(sources []*source) decision {
	d := decision{chosen: map[*source]*Documents{}, refused: map[*source]error{}}
	var all []*Documents
	for _, one := range sources {
		d.refused[one] = one.broken
		if version := cmp.Or(one.newest, one.good); version != nil {
			d.chosen[one] = version
			all = append(all, version)
		}
	}
	var err error
	if d.set, err = NewSet(all...); err != nil {
		d.oneByOne(sources)
	}
	for _, one := range sources {
		if d.chosen[one] != nil || !one.early {
			continue
		}
		if one.required {
			d.waits = cmp.Or(d.waits, d.refused[one], errNoVersion)
		}
		if d.refused[one] != nil {
			d.set.Unsettled = append(d.set.Unsettled, d.refused[one])
		}
	}
	return d
}

// oneByOne takes the version of each source that fits those of the sources before.
func (d *decision) oneByOne(sources []*source) {
	var all []*Documents
	d.set, _ = NewSet()
	clear(d.chosen)
	for _, one := range sources {
		for _, version := range []*Documents{one.newest, one.good} {
			if version == nil {
				continue
			}
			set, err := NewSet(append(slices.Clip(all), version)...)
			if err == nil {
				d.set, d.chosen[one], all = set, version, append(all, version)
				break
			}
			if version == one.newest {
				d.refused[one] = err
			}
		}
	}
}
