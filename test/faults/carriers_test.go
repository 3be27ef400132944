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
	// goods are what may have been in force last, as far as a sidecar knows. Forgotten
	// tells that one may not know, since it was started when the newest version was not.
	goods     []content
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

// forces are all that may be in force. The first is that of a sidecar that knows most.
func (c carriers) forces() []force {
	all := []force{{templates: templates{}, refused: map[string]string{}}}
	for _, one := range c.ordered() {
		var next []force
		for i := range all {
			next = append(next, all[i].and(&one)...)
		}
		all = next
	}
	return all
}

// and is what may be in force with one source more: its newest version where that
// fits with those before, or else one that may have been good last, or none.
func (f *force) and(one *source) []force {
	why := f.clash(one)
	if why == "" {
		return []force{f.taking(one, one.newest)}
	}
	f.refused[one.name] = why
	var all []force
	for _, good := range one.goods {
		if f.contradicts(good) != "" {
			good = content{}
		}
		all = append(all, f.taking(one, good))
	}
	if len(all) > 0 && !one.forgotten {
		return all
	}
	none := f.taking(one, content{})
	none.held = none.held || one.forgotten
	// All of a ConfigMap is needed to begin, and whatever says when.
	needed := one.name == mapSource && !one.absent || one.newest.refused && len(one.newest.settings) > 0
	none.frozen = none.frozen || one.forgotten && needed
	return append(all, none)
}

// clash is why the newest version of a source is not in force.
func (f *force) clash(one *source) string {
	switch {
	case one.absent:
		return "does not exist"
	case one.newest.refused:
		return "is refused"
	case one.newest.contradictsItself():
		return "contradicts itself"
	}
	return f.contradicts(one.newest)
}

// contradictsItself reports whether two templates make the same shared pool.
func (c *content) contradictsItself() bool {
	pools := map[poolKey]bool{}
	for _, t := range c.templates {
		key := poolKey{driver: t.driver, name: t.poolName()}
		if t.shared && pools[key] {
			return true
		}
		pools[key] = pools[key] || t.shared
	}
	return false
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

func (f *force) taking(one *source, c content) force {
	taken := *f
	taken.templates, taken.refused = maps.Clone(f.templates), maps.Clone(f.refused)
	for name, t := range c.templates {
		if one.rank() < 0 {
			t.created, t.uid = one.created, one.uid
		}
		taken.templates[name] = t
	}
	taken.settings = slices.Concat(f.settings, c.settings)
	return taken
}

// settled notes that all are in force that can be, so that it is known what was good.
func (c carriers) settled() carriers {
	all, forces := maps.Clone(c), c.forces()
	for name, one := range all {
		refused := 0
		for i := range forces {
			if _, ok := forces[i].refused[name]; ok || forces[i].frozen {
				refused++
			}
		}
		switch refused {
		case 0:
			one.goods, one.forgotten = []content{one.newest}, false
		case len(forces):
			continue
		default: // by some sidecars, and by others not
			one.goods = append(slices.Clip(one.goods), one.newest)
		}
		all[name] = one
	}
	return all
}

// restarted notes that sidecars were started, one or all: those do not know what was
// good before of what is refused now.
func (c carriers) restarted(every bool) carriers {
	all := maps.Clone(c)
	forget := func(accept func(f force, name string) bool) {
		for _, f := range all.forces() {
			for name, one := range all {
				if !accept(f, name) {
					continue
				}
				switch {
				case every:
					one.goods = nil
				case !one.forgotten && len(one.goods) == 0:
					one.goods = []content{{}} // the others know that nothing was good
				}
				one.forgotten = true
				all[name] = one
			}
		}
	}
	forget(func(f force, name string) bool { return f.refused[name] != "" })
	// Where nothing changes, nothing has come into force either.
	forget(func(f force, _ string) bool { return f.frozen })
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

// holds reports whether a pool may stay as it is: it has devices that no template
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
