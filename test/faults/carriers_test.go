package faults

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/types"
)

// The sources that are no objects. The file is read at the start only.
const (
	fileSource = "file"
	mapSource  = "ConfigMap"
)

// The fields of a KwokDRAConfiguration that documents set here.
const (
	retireWhen = "retireWhen"
	podStatus  = "podStatus"
)

// content is what a source says: templates, and fields of the configuration.
type content struct {
	templates templates
	settings  []string
	// refused tells of a document that the API server takes, and kwok-dra does not.
	refused bool
}

// source is what stands or falls as a whole: the file, the ConfigMap, or an object,
// which is named by its kind and its name.
type source struct {
	name string
	// created is when an object was created, in seconds: the older one wins.
	created int64
	uid     types.UID
	newest  content
	// absent tells of a ConfigMap that does not exist, which says nothing.
	absent bool
	// good is what was in force for certain, or nil, and forgotten tells that a sidecar
	// has been started since the newest version was not.
	good      *content
	forgotten bool
}

// carriers are all sources by name.
type carriers map[string]source

// rank orders sources: of two that contradict each other the first wins.
func (s *source) rank() int {
	return slices.Index([]string{fileSource, mapSource}, s.name)
}

func (c carriers) ordered() []source {
	return slices.SortedFunc(maps.Values(c), func(a, b source) int {
		if a.rank() >= 0 || b.rank() >= 0 {
			return cmp.Compare(uint(a.rank()), uint(b.rank())) // objects have the highest
		}
		return cmp.Or(cmp.Compare(a.created, b.created), cmp.Compare(a.name, b.name))
	})
}

// force is what is in force.
type force struct {
	templates templates
	settings  []string
	// refused says of each source whose newest version is not in force why.
	refused map[string]string
	// held tells that what no template makes may be that of a document which is
	// refused, so it stays. Frozen tells that nothing changes at all.
	held, frozen bool
}

// forces are what may be in force: of what was good before a sidecar was started it
// does not know. The first is what is in force where none was started.
func (c carriers) forces() []force {
	all := []force{c.force(nil)}
	var unknown []string
	for _, one := range c.ordered() {
		if _, refused := all[0].refused[one.name]; refused && one.forgotten {
			unknown = append(unknown, one.name)
		}
	}
	for subset := 1; subset < 1<<len(unknown); subset++ {
		forgotten := map[string]bool{}
		for i, name := range unknown {
			forgotten[name] = subset&(1<<i) != 0
		}
		all = append(all, c.force(forgotten))
	}
	return all
}

// force works out what is in force: source by source the newest version that fits
// with those before, or else the one that was good last, unless that is forgotten.
func (c carriers) force(forgotten map[string]bool) force {
	f := force{templates: templates{}, refused: map[string]string{}}
	for _, one := range c.ordered() {
		if why := f.clash(&one); why == "" {
			f.take(&one, one.newest)
			continue
		} else if f.refused[one.name] = why; one.good != nil && !forgotten[one.name] && f.contradicts(*one.good) == "" {
			f.take(&one, *one.good)
			continue
		}
		f.held = f.held || forgotten[one.name]
		// All of a ConfigMap is needed to begin, and whatever says when.
		needed := one.name == mapSource && !one.absent || one.newest.refused && len(one.newest.settings) > 0
		f.frozen = f.frozen || forgotten[one.name] && needed
	}
	return f
}

// clash is why the newest version of a source is not in force.
func (f *force) clash(one *source) string {
	switch {
	case one.absent:
		return "does not exist"
	case one.newest.refused:
		return "is refused"
	}
	return f.contradicts(one.newest)
}

// contradicts says what of the content contradicts what is in force.
func (f *force) contradicts(c content) string {
	for _, name := range slices.Sorted(maps.Keys(c.templates)) {
		t := c.templates[name]
		for _, other := range f.templates {
			if other.name == t.name || t.shared && other.shared && other.driver == t.driver && other.poolName() == t.poolName() {
				return fmt.Sprintf("template %s contradicts %s", t.name, other.name)
			}
		}
	}
	for _, setting := range c.settings {
		if slices.Contains(f.settings, setting) {
			return "sets " + setting + " as well"
		}
	}
	return ""
}

func (f *force) take(one *source, c content) {
	for name, t := range c.templates {
		if one.rank() < 0 {
			t.created, t.uid = one.created, one.uid
		}
		f.templates[name] = t
	}
	f.settings = append(f.settings, c.settings...)
}

// settled notes that all are in force that can be, and what was good is known.
func (c carriers) settled() carriers {
	all := maps.Clone(c)
	refused := c.force(nil).refused
	for name, one := range all {
		if _, is := refused[name]; !is {
			one.good, one.forgotten = &one.newest, false
			all[name] = one
		}
	}
	return all
}

// restarted notes that a sidecar was started: what is refused now was good before,
// if at all.
func (c carriers) restarted() carriers {
	all := maps.Clone(c)
	refused := c.force(nil).refused
	for name, one := range all {
		if _, is := refused[name]; is {
			one.forgotten = true
			all[name] = one
		}
	}
	return all
}

// with has a source say something else, and creates it where it is new.
func (c carriers) with(name string, newest content) carriers {
	all := maps.Clone(c)
	one := all[name]
	one.name, one.newest, one.absent = name, newest, false
	all[name] = one
	return all
}

// without has a source go. A ConfigMap that is gone says nothing, so it remains.
func (c carriers) without(name string) carriers {
	all := maps.Clone(c)
	one := all[name]
	if delete(all, name); name == mapSource {
		one.absent, one.newest = true, content{}
		all[name] = one
	}
	return all
}

// holds tells whether a pool may stay as it is: it has devices that no template
// makes, or the document that makes none of them is refused.
func (f *force) holds(key poolKey, wanted map[poolKey]wantedPool, published []resourcev1.ResourceSlice) bool {
	if f.frozen {
		return true
	}
	pool := wanted[key]
	return f.held && slices.ContainsFunc(published, func(slice resourcev1.ResourceSlice) bool {
		return poolOf(&slice) == key && slices.ContainsFunc(slice.Spec.Devices, func(d resourcev1.Device) bool {
			_, made := pool.devices[d.Name]
			return !made
		})
	})
}
