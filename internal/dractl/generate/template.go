package generate

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"

	"github.com/kwok-dra/kwok-dra/pkg/api/v1alpha1"
)

// draft is a template in the making, of the pools of one number on the nodes of a
// group.
type draft struct {
	members []*member
	pools   []*pool
	values  *nodeValues
	// number is that of the pool, for keys.
	number int
	// nodes select the group. They are nil for a pool that nodes share.
	nodes *corev1.NodeSelector
	// divided makes the template say which devices are in which slice.
	divided bool
}

// newTemplate makes the template.
func (d *draft) newTemplate(name, driver string) *v1alpha1.ResourcePoolTemplate {
	first := d.pools[0]
	made := &v1alpha1.ResourcePoolTemplate{}
	made.APIVersion, made.Kind, made.Name = v1alpha1.APIVersion, v1alpha1.ResourcePoolTemplateKind, name
	spec := &made.Spec
	spec.Driver = driver
	if of := &first.slices[0].Spec; of.NodeName == nil || *of.NodeName == "" {
		spec.SharedWith = &v1alpha1.SharedWith{
			AllNodes:               of.AllNodes != nil && *of.AllNodes,
			NodeSelector:           of.NodeSelector,
			PerDeviceNodeSelection: of.PerDeviceNodeSelection != nil && *of.PerDeviceNodeSelection,
		}
	}
	spec.PoolName = d.poolNameTemplate()
	var sets []resourcev1.CounterSet
	for _, slice := range first.slices {
		sets = append(sets, slice.Spec.SharedCounters...)
		if slice.Spec.PartitionTypeAttribute != nil {
			spec.PartitionTypeAttribute = slice.Spec.PartitionTypeAttribute
		}
		spec.SkipNodeOperations = slice.Spec.SkipNodeOperations
	}
	spec.SharedCounters = newCounterSets(sets)
	ends := d.sliceEnds()
	for _, run := range d.listRuns() {
		group := d.newDeviceGroup(run)
		spec.Devices = append(spec.Devices, group)
		if !d.divided {
			continue
		}
		if run.first == 0 || ends[run.first] {
			spec.Slices = append(spec.Slices, v1alpha1.SliceTemplate{})
		}
		last := &spec.Slices[len(spec.Slices)-1]
		last.Devices = append(last.Devices, group.Name)
	}
	return made
}

// poolNameTemplate is empty where it is the default.
func (d *draft) poolNameTemplate() string {
	if d.members == nil {
		return escapeTemplate(d.pools[0].name)
	}
	rows := make([][]string, len(d.pools))
	own := true
	for i, p := range d.pools {
		rows[i] = []string{p.name}
		own = own && p.name == d.members[i].node.Name
	}
	if own {
		return ""
	}
	key := fmt.Sprintf("%d.pool", d.number)
	text := d.values.templateText(key, d.members, rows)
	if !v1alpha1.IsTemplate(text) { // it must differ from node to node
		text = d.values.keepValues(key, d.members, rows)
	}
	return text
}

// run are devices side by side that differ in names and values of attributes
// only: from the first to before the last.
type run struct{ first, last int }

func (d *draft) listRuns() []run {
	devices := d.pools[0].listDevices()
	var runs []run
	shape := ""
	ends := d.sliceEnds()
	for i := range devices {
		// Members of a group have the same shapes, which could be encoded before.
		next, _ := encodeDeviceShape(&devices[i])
		if i == 0 || next != shape || ends[i] {
			runs = append(runs, run{first: i})
		}
		runs[len(runs)-1].last, shape = i+1, next
	}
	return runs
}

// sliceEnds are the numbers of the devices with which a slice begins, where the
// template says which are in which.
func (d *draft) sliceEnds() map[int]bool {
	ends := map[int]bool{}
	if !d.divided {
		return ends
	}
	at := 0
	for _, slice := range d.pools[0].slices {
		at += len(slice.Spec.Devices)
		ends[at] = true
	}
	return ends
}

// newDeviceGroup makes the group of a run.
func (d *draft) newDeviceGroup(r run) v1alpha1.DeviceTemplate {
	devices := d.pools[0].listDevices()[r.first:r.last]
	one := &devices[0]
	made := v1alpha1.DeviceTemplate{
		Taints:                   withoutTimes(one.Taints),
		AllowMultipleAllocations: one.AllowMultipleAllocations,
		BindsToNode:              one.BindsToNode,
		BindingConditions:        one.BindingConditions,
		BindingFailureConditions: one.BindingFailureConditions,
		NodeSelector:             one.NodeSelector,
		AllNodes:                 one.AllNodes,
		NodeAllocatableResources: one.NodeAllocatableResources,
	}
	made.Name, made.Count = nameDevices(mapDevices(devices, func(device *resourcev1.Device) string { return device.Name }))
	if one.NodeName != nil {
		made.NodeName = indexTemplate(mapDevices(devices, func(device *resourcev1.Device) string { return *device.NodeName }))
	}
	for i, consumption := range one.ConsumesCounters {
		consumption.CounterSet = indexTemplate(mapDevices(devices, func(device *resourcev1.Device) string { return device.ConsumesCounters[i].CounterSet }))
		made.ConsumesCounters = append(made.ConsumesCounters, consumption)
	}
	for _, name := range slices.Sorted(maps.Keys(one.Attributes)) {
		if made.Attributes == nil {
			made.Attributes = map[resourcev1.QualifiedName]v1alpha1.Attribute{}
		}
		made.Attributes[name] = d.newAttribute(r, name)
	}
	for name, capacity := range one.Capacity {
		if made.Capacity == nil {
			made.Capacity = map[resourcev1.QualifiedName]v1alpha1.Capacity{}
		}
		made.Capacity[name] = v1alpha1.Capacity{Value: capacity.Value.String(), RequestPolicy: capacity.RequestPolicy}
	}
	return made
}

func mapDevices(devices []resourcev1.Device, text func(*resourcev1.Device) string) []string {
	all := make([]string, len(devices))
	for i := range devices {
		all[i] = text(&devices[i])
	}
	return all
}

// withoutTimes returns taints without the times at which they were added.
func withoutTimes(given []resourcev1.DeviceTaint) []resourcev1.DeviceTaint {
	given = slices.Clone(given)
	for i := range given {
		given[i].TimeAdded = nil
	}
	return given
}

// newAttribute makes an attribute of all devices of a run.
func (d *draft) newAttribute(r run, name resourcev1.QualifiedName) v1alpha1.Attribute {
	typ, first := attributeValues(d.pools[0].listDevices()[r.first].Attributes[name])
	templates := make([]string, len(first))
	for element := range first {
		rows := make([][]string, len(d.pools))
		for i, p := range d.pools {
			for _, device := range p.listDevices()[r.first:r.last] {
				_, values := attributeValues(device.Attributes[name])
				rows[i] = append(rows[i], values[element])
			}
		}
		key := strings.Join([]string{strconv.Itoa(d.number), strconv.Itoa(r.first), string(name), strconv.Itoa(element)}, ".")
		templates[element] = d.values.templateText(key, d.members, rows)
	}
	switch typ {
	case v1alpha1.AttributeInts, v1alpha1.AttributeBools, v1alpha1.AttributeVersions, v1alpha1.AttributeStrings:
		return v1alpha1.Attribute{Type: typ, Value: strings.Join(templates, v1alpha1.ElementEnd) + v1alpha1.ElementEnd}
	}
	return v1alpha1.Attribute{Type: typ, Value: templates[0]}
}

// newCounterSets puts counter sets side by side with the same counters together.
func newCounterSets(all []resourcev1.CounterSet) []v1alpha1.CounterSetTemplate {
	var made []v1alpha1.CounterSetTemplate
	for first := 0; first < len(all); {
		last := first + 1
		for last < len(all) && apiequality.Semantic.DeepEqual(all[last].Counters, all[first].Counters) {
			last++
		}
		one := v1alpha1.CounterSetTemplate{Counters: all[first].Counters}
		var stems []string
		for _, set := range all[first:last] {
			stems = append(stems, set.Name)
		}
		one.Name, one.Count = nameDevices(stems)
		made = append(made, one)
		first = last
	}
	return made
}

// newLabelSelector returns the selector of the nodes of a group.
func newLabelSelector(label, value string) *corev1.NodeSelector {
	return &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchExpressions: []corev1.NodeSelectorRequirement{
		{Key: label, Operator: corev1.NodeSelectorOpIn, Values: []string{value}},
	}}}}
}
