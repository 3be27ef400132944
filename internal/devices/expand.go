package devices

import (
	"fmt"
	"maps"
	"slices"

	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/kwok-dra/kwok-dra/internal/devices/gotemplate"
	"github.com/kwok-dra/kwok-dra/pkg/api/v1alpha1"
	"github.com/kwok-dra/kwok-dra/pkg/api/validation"
)

// expansion fills the content of a template with all devices and counter sets, by name.
type expansion struct {
	template *Template
	*poolContent
	// deviceNames and setNames are the names in use.
	deviceNames, setNames nameRegistry
	// members maps the names of groups to those of their devices, for slices.
	members map[string][]string
	errs    field.ErrorList
}

// expandDevices fills in the template's devices, their order, and what they consume.
func expandDevices(t *Template, path *field.Path) field.ErrorList {
	t.content.byName = map[string]*device{}
	e := &expansion{template: t, poolContent: &t.content, deviceNames: nameRegistry{}, setNames: nameRegistry{}, members: map[string][]string{}}
	for i := range t.SharedCounters {
		set, at := &t.SharedCounters[i], path.Child("sharedCounters").Index(i).Child("name")
		names, errs := expandNames(set.Name, set.Count, at)
		e.errs = append(e.errs, append(errs, e.setNames.addNames(names, at)...)...)
		for _, name := range names {
			e.counterSets = append(e.counterSets, resourcev1.CounterSet{Name: name, Counters: set.Counters})
		}
	}
	for i := range t.Devices {
		e.addDevices(&t.Devices[i], path.Child("devices").Index(i))
	}
	if len(e.errs) > 0 {
		return e.errs
	}
	e.checkCounters(path.Child("devices"))
	e.assignSlices(path.Child("slices"))
	return e.errs
}

// addDevices adds a group of devices and the groups of their partitions, in the order of the pool: each
// device is followed by its partitions.
func (e *expansion) addDevices(d *v1alpha1.DeviceTemplate, path *field.Path) {
	names, errs := expandNames(d.Name, d.Count, path.Child("name"))
	whole := newGroup(d, path)
	for _, name := range names {
		whole.addDevice(name)
	}
	errs = append(errs, whole.addIndexed(d, path)...)
	var slots int32
	if d.Slots != nil {
		slots = d.Slots.Count
	}
	// Each device has a counter set that it consumes as a whole: its counters, and one for each slot.
	if counters := countersOf(d.Counters, d.Slots, 0, slots); len(counters) > 0 {
		var sets []string
		for _, device := range whole.devices {
			set := v1alpha1.CounterSetOf(device.Name)
			sets = append(sets, set)
			e.counterSets = append(e.counterSets, resourcev1.CounterSet{Name: set, Counters: counters})
			device.ConsumesCounters = append(device.ConsumesCounters, resourcev1.DeviceCounterConsumption{CounterSet: set, Counters: counters})
		}
		e.errs = append(e.errs, e.setNames.addNames(sets, path.Child("counters"))...)
	}
	groups := []*group{whole}
	for i := range d.Partitions {
		at := path.Child("partitions").Index(i)
		partitions := newPartitions(d, whole, &d.Partitions[i], at, path)
		errs = append(errs, e.deviceNames.addNames(partitions.deviceNames(), at.Child("name"))...)
		groups = append(groups, partitions)
	}
	e.errs = append(e.errs, append(errs, e.deviceNames.addNames(names, path.Child("name"))...)...)
	e.groups = append(e.groups, groups...)
	for i, device := range whole.devices {
		e.devices = append(e.devices, device)
		for _, g := range groups[1:] {
			e.devices = append(e.devices, g.devices[i*g.partitions:(i+1)*g.partitions]...)
		}
	}
	for _, g := range groups {
		for _, device := range g.devices {
			e.byName[device.Name] = device
			e.members[d.Name] = append(e.members[d.Name], device.Name)
		}
	}
}

// addIndexed sets what is rendered for each device and is the same on all Nodes.
func (g *group) addIndexed(d *v1alpha1.DeviceTemplate, path *field.Path) field.ErrorList {
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
			consumption.CounterSet = set
			g.devices[i].ConsumesCounters = append(g.devices[i].ConsumesCounters, consumption)
		}
	}
	return errs
}

// checkCounters refuses devices that consume counters which do not exist. The scheduler would take
// the whole pool as invalid.
func (e *expansion) checkCounters(path *field.Path) {
	sets := map[string]map[string]resourcev1.Counter{}
	for _, set := range e.counterSets {
		sets[set.Name] = set.Counters
	}
	group := 0
	for i, d := range e.template.Devices {
		devices := e.groups[group].devices
		group += 1 + len(d.Partitions)
		for j := range d.ConsumesCounters {
			e.errs = append(e.errs, checkConsumption(sets, devices, j, path.Index(i).Child("consumesCounters").Index(j))...)
		}
	}
}

// checkConsumption checks an entry of consumesCounters of all devices of a group.
func checkConsumption(sets map[string]map[string]resourcev1.Counter, devices []*device, entry int, path *field.Path) field.ErrorList {
	for _, device := range devices {
		consumption := device.ConsumesCounters[entry]
		counters, ok := sets[consumption.CounterSet]
		if !ok {
			return field.ErrorList{field.Invalid(path.Child("counterSet"), consumption.CounterSet,
				"there is no such counter set in the template; it has "+gotemplate.ListSome(slices.Sorted(maps.Keys(sets))))}
		}
		for other := range device.ConsumesCounters {
			if other != entry && device.ConsumesCounters[other].CounterSet == consumption.CounterSet {
				return field.ErrorList{field.Duplicate(path.Child("counterSet"), consumption.CounterSet)}
			}
		}
		for _, name := range slices.Sorted(maps.Keys(consumption.Counters)) {
			if _, ok := counters[name]; !ok {
				return field.ErrorList{field.Invalid(path.Child("counters").Key(name), name,
					fmt.Sprintf("there is no such counter in the counter set %s; it has %s", consumption.CounterSet, gotemplate.ListSome(slices.Sorted(maps.Keys(counters)))))}
			}
		}
	}
	return nil
}

// assignSlices resolves which device is in which slice, for a template that has slices. Each device
// must be in exactly one.
func (e *expansion) assignSlices(path *field.Path) {
	if len(e.template.Slices) == 0 {
		return
	}
	assigned := nameRegistry{}
	named := 0
	for i, slice := range e.template.Slices {
		if named > 2*len(e.devices) {
			break // most are named twice, which is reported already
		}
		var members []string
		at := path.Index(i).Child("devices")
		for j, name := range slice.Devices {
			names, isGroup := e.members[name]
			if !isGroup && e.byName[name] != nil {
				names = []string{name}
			}
			if len(names) == 0 {
				e.errs = append(e.errs, field.Invalid(at.Index(j), name, "there is no device or group of that name in the template"))
			}
			e.errs = append(e.errs, assigned.addNames(names, at.Index(j))...)
			members = append(members, names...)
		}
		named += len(members)
		e.errs = append(e.errs, e.checkSliceSize(members, at)...)
		e.split = append(e.split, members)
	}
	if len(e.errs) == 0 {
		e.checkAllAssigned(assigned, path)
	}
}

// checkAllAssigned refuses devices that are in no slice.
func (e *expansion) checkAllAssigned(assigned nameRegistry, path *field.Path) {
	var missing []string
	for _, device := range e.devices {
		if assigned[device.Name] == nil {
			missing = append(missing, device.Name)
		}
	}
	if len(missing) > 0 {
		e.errs = append(e.errs, field.Required(path, "every device must be in a slice, and "+gotemplate.ListSome(missing)+" is in none; add it, or leave slices out"))
	}
}

// checkSliceSize refuses a slice of more devices than the API server accepts. Rendering may find
// further problems.
func (e *expansion) checkSliceSize(members []string, path *field.Path) field.ErrorList {
	var list []resourcev1.Device
	for _, name := range slices.Compact(slices.Sorted(slices.Values(members))) {
		list = append(list, e.byName[name].Device)
	}
	limit := maxDevices(list)
	if len(list) <= limit {
		return nil
	}
	why := ""
	if limit < resourcev1.ResourceSliceMaxDevices {
		why = ", since some have taints, lists or consumesCounters"
	}
	return field.ErrorList{field.Invalid(path, len(list), fmt.Sprintf("must be at most %d devices%s: make more slices", limit, why))}
}
