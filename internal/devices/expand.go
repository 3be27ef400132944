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
	deviceNames nameRegistry
	// members maps the names of groups to those of their devices, for slices.
	members map[string][]string
	errs    field.ErrorList
}

// expandDevices fills in the template's devices, their order, and what they consume.
func expandDevices(t *Template, path *field.Path) field.ErrorList {
	t.content.byName, t.content.setNames = map[string]*device{}, nameRegistry{}
	e := &expansion{template: t, poolContent: &t.content, deviceNames: nameRegistry{}, members: map[string][]string{}}
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
	for _, device := range e.devices {
		e.byName[device.Name] = device
	}
	if len(e.errs) > 0 {
		return e.errs
	}
	sets := map[string]map[string]resourcev1.Counter{}
	for _, set := range e.counterSets {
		sets[set.Name] = set.Counters
	}
	group := 0
	for i, d := range t.Devices {
		for j := range d.ConsumesCounters {
			at := path.Child("devices").Index(i).Child("consumesCounters").Index(j)
			e.errs = append(e.errs, checkConsumption(sets, e.groups[group].devices, j, at)...)
		}
		group += 1 + len(d.Partitions)
	}
	if len(t.Slices) > 0 {
		e.assignSlices(path.Child("slices"))
	}
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
	if d.NodeName != "" {
		at := path.Child("nodeName")
		nodeNames, problems := renderIndexed(d.NodeName, len(names), at)
		for i, name := range nodeNames {
			if problems = validation.ValidateSubdomain(name, at); len(problems) > 0 {
				break
			}
			whole.devices[i].NodeName = &name
		}
		errs = append(errs, problems...)
	}
	for j, consumption := range d.ConsumesCounters {
		sets, problems := renderIndexed(consumption.CounterSet, len(names), path.Child("consumesCounters").Index(j).Child("counterSet"))
		errs = append(errs, problems...)
		for i, set := range sets {
			consumption.CounterSet = set
			whole.devices[i].ConsumesCounters = append(whole.devices[i].ConsumesCounters, consumption)
		}
	}
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
	e.members[d.Name] = names
	for i := range d.Partitions {
		at := path.Child("partitions").Index(i)
		partitions := newPartitions(d, whole, &d.Partitions[i], at, path)
		groups = append(groups, partitions)
		var parts []string
		for _, device := range partitions.devices {
			parts = append(parts, device.Name)
		}
		errs = append(errs, e.deviceNames.addNames(parts, at.Child("name"))...)
		e.members[d.Name] = append(e.members[d.Name], parts...)
	}
	e.errs = append(e.errs, append(errs, e.deviceNames.addNames(names, path.Child("name"))...)...)
	e.groups = append(e.groups, groups...)
	for i, device := range whole.devices {
		e.devices = append(e.devices, device)
		for _, g := range groups[1:] {
			e.devices = append(e.devices, g.devices[i*g.partitions:(i+1)*g.partitions]...)
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
	assigned, named := nameRegistry{}, 0
	for i, slice := range e.template.Slices {
		if named > 2*len(e.devices) {
			break // most are named twice, which is reported already
		}
		var members []string
		at := path.Index(i).Child("devices")
		for j, name := range slice.Devices {
			names := e.members[name]
			switch {
			case len(names) > 0:
			case e.byName[name] != nil:
				names = []string{name}
			default:
				e.errs = append(e.errs, field.Invalid(at.Index(j), name, "there is no device or group of that name in the template"))
			}
			e.errs = append(e.errs, assigned.addNames(names, at.Index(j))...)
			members = append(members, names...)
		}
		named += len(members)
		e.split = append(e.split, members)
		// Rendering may find further problems.
		var list []resourcev1.Device
		for _, name := range slices.Compact(slices.Sorted(slices.Values(members))) {
			list = append(list, e.byName[name].Device)
		}
		limit, why := maxDevices(list), ""
		if limit < resourcev1.ResourceSliceMaxDevices {
			why = ", since some have taints, lists or consumesCounters"
		}
		if len(list) > limit {
			e.errs = append(e.errs, field.Invalid(at, len(list), fmt.Sprintf("must be at most %d devices%s: make more slices", limit, why)))
		}
	}
	var missing []string
	for _, device := range e.devices {
		if assigned[device.Name] == nil {
			missing = append(missing, device.Name)
		}
	}
	if len(e.errs) == 0 && len(missing) > 0 {
		e.errs = append(e.errs, field.Required(path, "every device must be in a slice, and "+gotemplate.ListSome(missing)+" is in none; add it, or leave slices out"))
	}
}

// expandNames makes the names of a group: what the template yields for each number, or the stem
// and the number where there is a count.
func expandNames(stem string, count *int32, path *field.Path) ([]string, field.ErrorList) {
	if count == nil {
		return renderIndexed(stem, 1, path)
	}
	if !v1alpha1.IsTemplate(stem) {
		stem += "-{{ .Index }}"
	}
	return renderIndexed(stem, int(*count), path)
}

// renderIndexed renders a template of .Index for each number. Such values do not depend on a Node:
// programs that compare the Nodes of a group, as cluster-autoscaler does, need the same names on
// each, and devices are found by name without rendering.
func renderIndexed(value string, number int, path *field.Path) ([]string, field.ErrorList) {
	text := &gotemplate.Text{Path: path, Source: value}
	dataOf := func(i int) map[string]any { return map[string]any{"Index": i} }
	errs := refuseNode(text, "sees only .Index, since it must be the same on every node")
	if len(errs) == 0 {
		errs = text.Check(dataOf(0))
	}
	if len(errs) > 0 {
		return nil, errs
	}
	return renderForEach(text, number, dataOf)
}

func renderForEach(text *gotemplate.Text, number int, dataOf func(int) map[string]any) ([]string, field.ErrorList) {
	rendered, renderer := make([]string, number), gotemplate.Renderer{Texts: number}
	for i := range rendered {
		var err error
		if rendered[i], err = renderer.Render(text, dataOf(i)); err != nil {
			return nil, text.Refuse("cannot be rendered: " + err.Error())
		}
	}
	return rendered, nil
}

// nameRegistry has the names in use, with the paths of the fields that make them.
type nameRegistry map[string]*field.Path

// addNames refuses names that are invalid or in use.
func (r nameRegistry) addNames(names []string, path *field.Path) field.ErrorList {
	for _, name := range names {
		if errs := validation.ValidateLabel(name, path); len(errs) > 0 {
			return errs
		}
		if other, ok := r[name]; ok {
			duplicate := field.Duplicate(path, name)
			duplicate.Detail = fmt.Sprintf("%s gives that name already; rename one", other)
			return field.ErrorList{duplicate}
		}
		r[name] = path
	}
	return nil
}
