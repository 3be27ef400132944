package devices

import (
	"fmt"
	"maps"
	"slices"

	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/kwok-dra/kwok-dra/pkg/api/v1alpha1"
	"github.com/kwok-dra/kwok-dra/pkg/api/validation"
)

// expansion expands a template to every device and every counter set by name.
type expansion struct {
	template *Template
	// devices and counterSets are the names in use.
	devices, counterSets taken
	// groups maps the names of groups to those of their devices, for slices.
	groups map[string][]string
	errs   field.ErrorList
}

// expand fills in the template's groups and their order, and what they consume.
func (t *Template) expand(spec *v1alpha1.ResourcePoolTemplateSpec, path *field.Path) field.ErrorList {
	e := &expansion{template: t, devices: taken{}, counterSets: taken{}, groups: map[string][]string{}}
	for i := range spec.SharedCounters {
		e.addCounterSets(&spec.SharedCounters[i], path.Child("sharedCounters").Index(i))
	}
	for i := range spec.Devices {
		e.addDevices(&spec.Devices[i], path.Child("devices").Index(i))
	}
	if len(e.errs) > 0 {
		return e.errs
	}
	t.positions = map[string]position{}
	for _, at := range t.order {
		t.positions[t.device(at).Name] = at
	}
	e.checkCounters(spec, path.Child("devices"))
	e.split(spec.Slices, path.Child("slices"))
	return e.errs
}

func (e *expansion) addCounterSets(set *v1alpha1.CounterSetTemplate, path *field.Path) {
	names, errs := expandNames(set.Name, set.Count, path.Child("name"))
	e.errs = append(append(e.errs, errs...), e.counterSets.add(names, path.Child("name"))...)
	for _, name := range names {
		e.template.pool.CounterSets = append(e.template.pool.CounterSets, resourcev1.CounterSet{Name: name, Counters: set.Counters})
	}
}

// addDevices adds a group of devices and those of their partitions.
func (e *expansion) addDevices(d *v1alpha1.DeviceTemplate, path *field.Path) {
	names, errs := expandNames(d.Name, d.Count, path.Child("name"))
	whole := newGroup(d, path)
	whole.multiply(names)
	errs = append(errs, e.addIndexed(d, &whole, path)...)
	e.addOwnCounters(d, &whole, path)
	groups := []group{whole}
	for i := range d.Partitions {
		at := path.Child("partitions").Index(i)
		partitions := newPartitions(d, &whole, &d.Partitions[i], at, path)
		errs = append(errs, e.devices.add(partitions.names(), at.Child("name"))...)
		groups = append(groups, partitions)
	}
	e.errs = append(append(e.errs, errs...), e.devices.add(names, path.Child("name"))...)
	e.arrange(d.Name, groups)
}

// addIndexed sets what is rendered for each device but is the same on all nodes.
func (e *expansion) addIndexed(d *v1alpha1.DeviceTemplate, g *group, path *field.Path) field.ErrorList {
	nodeNames, errs := renderIndexed(d.NodeName, len(g.devices), path.Child("nodeName"))
	for i, name := range nodeNames {
		if d.NodeName == "" {
			break
		}
		if problems := validation.ValidateSubdomain(name, path.Child("nodeName")); len(problems) > 0 {
			errs = append(errs, problems...)
			break
		}
		g.devices[i].NodeName = &name
	}
	for j, consumption := range d.ConsumesCounters {
		at := path.Child("consumesCounters").Index(j).Child("counterSet")
		sets, problems := renderIndexed(consumption.CounterSet, len(g.devices), at)
		errs = append(errs, problems...)
		for i, set := range sets {
			own := consumption
			own.CounterSet = set
			g.devices[i].ConsumesCounters = append(g.devices[i].ConsumesCounters, own)
		}
	}
	return errs
}

// addOwnCounters gives each device a counter set of which it takes all.
func (e *expansion) addOwnCounters(d *v1alpha1.DeviceTemplate, whole *group, path *field.Path) {
	counters := ownCounters(d)
	if len(counters) == 0 {
		return
	}
	var names []string
	for i := range whole.devices {
		device := &whole.devices[i]
		name := v1alpha1.CounterSetOf(device.Name)
		names = append(names, name)
		e.template.pool.CounterSets = append(e.template.pool.CounterSets, resourcev1.CounterSet{Name: name, Counters: counters})
		device.ConsumesCounters = append(device.ConsumesCounters, resourcev1.DeviceCounterConsumption{CounterSet: name, Counters: counters})
	}
	e.errs = append(e.errs, e.counterSets.add(names, path.Child("counters"))...)
}

// arrange puts groups in order: each device is followed by its partitions.
func (e *expansion) arrange(stem string, groups []group) {
	t := e.template
	first := len(t.groups)
	t.groups = append(t.groups, groups...)
	for i := range groups[0].devices {
		t.order = append(t.order, position{first, i})
		for j := 1; j < len(groups); j++ {
			for k := range groups[j].partitions {
				t.order = append(t.order, position{first + j, i*groups[j].partitions + k})
			}
		}
	}
	for i := range groups {
		e.groups[stem] = append(e.groups[stem], groups[i].names()...)
	}
}

// checkCounters refuses devices that consume what does not exist: the scheduler
// would treat the whole pool as invalid.
func (e *expansion) checkCounters(spec *v1alpha1.ResourcePoolTemplateSpec, path *field.Path) {
	sets := map[string]map[string]resourcev1.Counter{}
	for _, set := range e.template.pool.CounterSets {
		sets[set.Name] = set.Counters
	}
	group := 0
	for i := range spec.Devices {
		device := e.template.groups[group].devices
		group += 1 + len(spec.Devices[i].Partitions)
		for j := range spec.Devices[i].ConsumesCounters {
			at := path.Index(i).Child("consumesCounters").Index(j)
			e.errs = append(e.errs, checkConsumption(sets, device, j, at)...)
		}
	}
}

// checkConsumption checks one entry of consumesCounters of all devices of a group.
func checkConsumption(sets map[string]map[string]resourcev1.Counter, devices []resourcev1.Device, entry int, path *field.Path) field.ErrorList {
	for i := range devices {
		consumption := devices[i].ConsumesCounters[entry]
		counters, ok := sets[consumption.CounterSet]
		if !ok {
			return field.ErrorList{field.Invalid(path.Child("counterSet"), consumption.CounterSet,
				"there is no such counter set in the template; it has "+listed(slices.Sorted(maps.Keys(sets))))}
		}
		for other := range devices[i].ConsumesCounters {
			if other != entry && devices[i].ConsumesCounters[other].CounterSet == consumption.CounterSet {
				return field.ErrorList{field.Duplicate(path.Child("counterSet"), consumption.CounterSet)}
			}
		}
		for _, name := range slices.Sorted(maps.Keys(consumption.Counters)) {
			if _, ok := counters[name]; !ok {
				return field.ErrorList{field.Invalid(path.Child("counters").Key(name), name,
					fmt.Sprintf("there is no such counter in the counter set %s; it has %s", consumption.CounterSet, listed(slices.Sorted(maps.Keys(counters)))))}
			}
		}
	}
	return nil
}
