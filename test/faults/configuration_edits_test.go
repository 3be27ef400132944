package faults

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
)

// change has a source say something else, or, without content, go.
type change struct {
	name string
	says *content
}

// edit is what somebody does to the configuration in one go.
type edit struct {
	name    string
	changes []change
}

// kindTemplate and kindConfiguration begin the names of objects.
const (
	kindTemplate      = "ResourcePoolTemplate"
	kindConfiguration = "KwokDRAConfiguration"
)

func objectOf(template string) string { return kindTemplate + "/" + template }

// planner draws edits that can be made to the carriers as they are.
type planner struct {
	random *rand.Rand
	carriers
}

// mostForces is how much may be in force, more or less, before what is refused is put
// right: the oracle looks at all of it.
const mostForces = 8

// next draws an edit. What is refused is put right soon, so that much happens.
func (p *planner) next() edit {
	choices := []func() edit{
		p.refuse, p.refuse, p.refuse, p.mend, p.mend, p.mend, p.duplicate, p.duplicate, p.share, p.twin,
		p.settings, p.deleteObject, p.takeOut, p.move, p.move, p.change, p.rename, p.empty, p.removeMap,
	}
	if len(p.forces()) > mostForces {
		choices = []func() edit{p.mend, p.deleteObject, p.empty}
	}
	for {
		if e := choices[p.random.IntN(len(choices))](); len(e.changes) > 0 {
			return e
		}
	}
}

func pickOf[T any](random *rand.Rand, from []T) (one T, is bool) {
	if len(from) == 0 {
		return one, false
	}
	return pick(random, from...), true
}

// refuse writes something that the API server takes, and kwok-dra does not. The file
// is never so: a sidecar does not begin with one that is.
func (p *planner) refuse() edit {
	var names []string
	for _, one := range p.ordered() {
		if one.name != fileSource && !one.newest.refused {
			names = append(names, one.name)
		}
	}
	name, ok := pickOf(p.random, names)
	if !ok {
		return edit{}
	}
	says := content{templates: p.carriers[name].newest.templates, settings: p.carriers[name].newest.settings, refused: true}
	return edit{"refuse " + name, []change{{name, &says}}}
}

// mend has a source say something good again.
func (p *planner) mend() edit {
	var broken []string
	for _, one := range p.ordered() {
		if one.newest.refused || one.absent {
			broken = append(broken, one.name)
		}
	}
	name, ok := pickOf(p.random, broken)
	if !ok {
		return edit{}
	}
	says := p.carriers[name].newest
	// Nothing is what was good of an object that never was: there is no way to write that.
	if one := p.carriers[name]; len(one.goods) > 0 && p.random.IntN(2) == 0 && (one.rank() >= 0 || len(one.goods[0].templates)+len(one.goods[0].settings) > 0) {
		says = one.goods[0]
	}
	says.refused = false
	return edit{"mend " + name, []change{{name, &says}}}
}

// inForce draws a template that is in force, and where it is from.
func (p *planner) inForce() (t poolTemplate, from string, is bool) {
	now := p.forces()[0]
	names := slices.Sorted(maps.Keys(now.templates))
	names = slices.DeleteFunc(names, func(name string) bool { return strings.HasPrefix(name, anchor) })
	name, ok := pickOf(p.random, names)
	if !ok {
		return t, "", false
	}
	for _, one := range p.ordered() {
		if _, has := one.newest.templates[name]; has && now.refused[one.name] == "" {
			return now.templates[name], one.name, true
		}
	}
	return t, "", false
}

// into is a change that adds a template to a carrier.
func (p *planner) into(carrier string, t poolTemplate) change {
	t.created, t.uid = 0, ""
	if carrier != mapSource && carrier != fileSource {
		return change{objectOf(t.name), &content{templates: templates{t.name: t}}}
	}
	says := p.carriers[carrier].newest
	says.refused = false
	says.templates = maps.Clone(says.templates)
	if says.templates == nil {
		says.templates = templates{}
	}
	says.templates[t.name] = t
	return change{carrier, &says}
}

// outOf is a change that takes a template from a source.
func (p *planner) outOf(from, template string) change {
	if from != mapSource && from != fileSource {
		return change{name: from}
	}
	says := p.carriers[from].newest
	says.templates = maps.Clone(says.templates)
	delete(says.templates, template)
	return change{from, &says}
}

// other is a carrier that the source is not of.
func (p *planner) other(from string) string {
	if from == mapSource || from == fileSource {
		return kindTemplate
	}
	return mapSource
}

// duplicate has a second carrier name a template.
func (p *planner) duplicate() edit {
	t, from, ok := p.inForce()
	_, there := p.carriers[objectOf(t.name)]
	if to := p.other(from); ok && (to == mapSource || !there) {
		t.count, t.revision = pick(p.random, 1, 4, 8, 20, 130), t.revision+1
		return edit{"duplicate " + t.name + " of " + from, []change{p.into(to, t)}}
	}
	return edit{}
}

// share has a second template make the same shared pool.
func (p *planner) share() edit {
	t, _, ok := p.inForce()
	if !ok || !t.shared {
		return edit{}
	}
	t.pool, t.name = t.poolName(), "share"
	return edit{"share the pool " + t.pool, []change{p.into(kindTemplate, t)}}
}

// twin has a second template make the same devices on the same nodes.
func (p *planner) twin() edit {
	t, _, ok := p.inForce()
	if !ok || t.shared {
		return edit{}
	}
	t.name, t.count = "twin", pick(p.random, 1, 6, 70)
	return edit{"twin of " + t.device, []change{p.into(kindTemplate, t)}}
}

// settings has an object set fields that may be set elsewhere.
func (p *planner) settings() edit {
	name := kindConfiguration + "/" + pick(p.random, "one", "two")
	says := content{settings: pick(p.random, []string{retireWhen}, []string{podStatus}, []string{podStatus, retireWhen})}
	return edit{"set " + strings.Join(says.settings, " and ") + " in " + name, []change{{name, &says}}}
}

// deleteObject deletes an object, also one that is refused.
func (p *planner) deleteObject() edit {
	var objects []string
	for _, one := range p.ordered() {
		if one.rank() < 0 {
			objects = append(objects, one.name)
		}
	}
	name, ok := pickOf(p.random, objects)
	if !ok {
		return edit{}
	}
	return edit{"delete " + name, []change{{name: name}}}
}

// takeOut takes a template out of the carrier that has others too.
func (p *planner) takeOut() edit {
	t, from, ok := p.inForce()
	if !ok || from == fileSource || p.carriers[from].newest.refused {
		return edit{}
	}
	return edit{"take " + t.name + " from " + from, []change{p.outOf(from, t.name)}}
}

// move takes a template from a carrier to another, which has it before or after.
func (p *planner) move() edit {
	t, from, ok := p.inForce()
	to := p.other(from)
	_, there := p.carriers[objectOf(t.name)]
	if !ok || to != mapSource && there || to == mapSource && p.carriers[mapSource].absent {
		return edit{}
	}
	if p.random.IntN(6) == 0 {
		to = fileSource
	}
	changes := []change{p.outOf(from, t.name), p.into(to, t)}
	if p.random.IntN(2) == 0 {
		slices.Reverse(changes)
	}
	return edit{fmt.Sprintf("move %s from %s to %s", t.name, from, to), changes}
}

// change changes a template where it is.
func (p *planner) change() edit {
	t, from, ok := p.inForce()
	if !ok {
		return edit{}
	}
	t.revision++
	t.count = pick(p.random, 1, 4, 8, 30, 130)
	t.kinds = pick(p.random, []string{"a"}, []string{"b", "c"}, []string{"a", "b", "c"}, t.kinds)
	return edit{"change " + t.name + " in " + from, []change{p.into(from, t)}}
}

// rename gives a shared pool another name.
func (p *planner) rename() edit {
	t, from, ok := p.inForce()
	if !ok || !t.shared {
		return edit{}
	}
	t.pool = pick(p.random, "", "mesh", "ring")
	return edit{"rename the pool of " + t.name, []change{p.into(from, t)}}
}

// empty has a ConfigMap say that there is nothing.
func (p *planner) empty() edit {
	return edit{"empty the ConfigMap", []change{{mapSource, &content{templates: templates{}}}}}
}

// removeMap has the ConfigMap go, which says nothing.
func (p *planner) removeMap() edit {
	return edit{"delete the ConfigMap", []change{{name: mapSource}}}
}

// apply makes the changes of an edit to the model.
func (c carriers) apply(one change) carriers {
	if one.says == nil {
		return c.without(one.name)
	}
	return c.with(one.name, *one.says)
}

// initialCarriers has the templates in the ConfigMap, with what says when they are
// retired.
func initialCarriers(all templates) carriers {
	return carriers{}.with(fileSource, content{templates: anchors()}).with(mapSource, content{templates: all, settings: []string{retireWhen}})
}
