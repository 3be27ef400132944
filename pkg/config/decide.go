package config

import "slices"

// source is what stands or falls as a whole: all files, a ConfigMap, an object.
type source struct {
	// newest is the newest version, or nil where it does not stand by itself, and
	// broken says why. Good is the version that was in force last.
	newest, good *Documents
	broken       error
	// refused is why the newest version is not in force, or nil.
	refused error
	// required tells that nothing is in force without it: it says when, or all.
	required bool
	// early tells that the source may have been in force before the process began: it
	// was there at the start, and no version of it has been good since.
	early bool
	// changed tells that the newest version has not been settled yet.
	changed bool
	// tell is told when the newest version is refused.
	tell func(error)
}

// settle notes what has been decided of the source, and reports whether that is
// to be told: an error that is new, or that of a new version.
func (s *source) settle(chosen *Documents, refused error) bool {
	news := s.changed || (s.refused == nil) != (refused == nil) || refused != nil && s.refused.Error() != refused.Error()
	s.refused = refused
	if chosen != nil {
		s.good, s.early = chosen, false
	}
	return news
}

// decision is what is in force.
type decision struct {
	decided
	set *Set
	// chosen are the versions in force of each source, of which there may be none, and
	// refused says why the newest is not.
	chosen  []*Documents
	refused []error
	// waits reports whether a source without which nothing is in force has none.
	waits bool
}

// decided tells decisions apart.
type decided struct {
	versions  []*Documents
	unsettled int
}

func (d *decided) equal(other *decision) bool {
	return d.unsettled == other.unsettled && slices.Equal(d.versions, other.versions)
}

// decide decides which version of each source is in force: the newest, or else the
// one that was good last. Where two contradict each other, the earlier source wins,
// whenever either of them has changed. It depends on nothing but the sources.
func decide(sources []*source) decision {
	d := decision{chosen: make([]*Documents, len(sources)), refused: make([]error, len(sources))}
	var all []*Documents
	for i, one := range sources {
		if d.chosen[i] = one.newest; one.newest == nil {
			d.chosen[i], d.refused[i] = one.good, one.broken
		}
		if d.chosen[i] != nil {
			all = append(all, d.chosen[i])
		}
	}
	var err error
	if d.set, err = NewSet(all...); err != nil {
		d.oneByOne(sources)
	}
	for i, one := range sources {
		if d.chosen[i] != nil {
			d.versions = append(d.versions, d.chosen[i])
		}
		unsettled := d.chosen[i] == nil && one.early
		d.waits = d.waits || unsettled && one.required
		if unsettled && d.refused[i] != nil {
			d.set.Unsettled = append(d.set.Unsettled, d.refused[i])
		}
	}
	d.unsettled = len(d.set.Unsettled)
	return d
}

// oneByOne takes the version of each source that fits those of the sources before.
func (d *decision) oneByOne(sources []*source) {
	var all []*Documents
	d.set, _ = NewSet()
	for i, one := range sources {
		d.chosen[i] = nil
		for _, version := range []*Documents{one.newest, one.good} {
			if version == nil {
				continue
			}
			set, err := NewSet(append(slices.Clip(all), version)...)
			if err == nil {
				d.set, d.chosen[i], all = set, version, append(all, version)
				break
			}
			if version == one.newest {
				d.refused[i] = err
			}
		}
	}
}
