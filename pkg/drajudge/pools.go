package drajudge

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	resourcev1 "k8s.io/api/resource/v1"
)

// pool is what the slices of a pool say together. Only those with the highest generation count.
type pool struct {
	id         poolID
	generation int64
	// incomplete and invalid say what is wrong, or are empty.
	incomplete, invalid string
	// devices are in the order of their slices' names.
	devices  []poolDevice
	byName   map[string]*poolDevice
	counters map[string]map[string]resourcev1.Counter
}

// poolDevice is a device in its slice.
type poolDevice struct {
	id     deviceID
	device *resourcev1.Device
	slice  *resourcev1.ResourceSlice
}

func (p poolID) compare(other poolID) int {
	return cmp.Or(cmp.Compare(p.driver, other.driver), cmp.Compare(p.name, other.name))
}

func (p poolID) String() string { return p.driver + "/" + p.name }

// pool returns a pool by what its slices say now. It is empty if there are none.
func (s *supply) pool(id poolID) *pool {
	if known := s.pools[id]; known != nil {
		return known
	}
	p := &pool{id: id, byName: map[string]*poolDevice{}, counters: map[string]map[string]resourcev1.Counter{}}
	var newest []*resourcev1.ResourceSlice
	for _, name := range slices.Sorted(maps.Keys(s.slices[id])) {
		slice := s.slices[id][name]
		if slice.Spec.Pool.Generation > p.generation {
			newest, p.generation = nil, slice.Spec.Pool.Generation
		}
		if slice.Spec.Pool.Generation == p.generation {
			newest = append(newest, slice)
		}
	}
	// Slices that disagree about their number are what a driver leaves behind; one that counts right is enough.
	isComplete := func(slice *resourcev1.ResourceSlice) bool {
		return slice.Spec.Pool.ResourceSliceCount == int64(len(newest))
	}
	if len(newest) > 0 && !slices.ContainsFunc(newest, isComplete) {
		p.incomplete = fmt.Sprintf("it has %d of %d slices of generation %d", len(newest), newest[0].Spec.Pool.ResourceSliceCount, p.generation)
	}
	p.addContents(newest)
	if p.incomplete == "" {
		p.checkCounters()
	}
	s.pools[id] = p
	return p
}

// addContents adds the devices and counters of slices.
func (p *pool) addContents(newest []*resourcev1.ResourceSlice) {
	for _, slice := range newest {
		for i := range slice.Spec.Devices {
			device := &slice.Spec.Devices[i]
			p.devices = append(p.devices, poolDevice{deviceID{p.id.driver, p.id.name, device.Name}, device, slice})
		}
		for i := range slice.Spec.SharedCounters {
			set := &slice.Spec.SharedCounters[i]
			if p.counters[set.Name] != nil {
				p.invalid = fmt.Sprintf("two counter sets have the name %s", set.Name)
			}
			p.counters[set.Name] = set.Counters
		}
	}
	for i := range p.devices {
		name := p.devices[i].device.Name
		if p.byName[name] != nil {
			p.invalid = fmt.Sprintf("two devices have the name %s", name)
		}
		p.byName[name] = &p.devices[i]
	}
}

// checkCounters checks that devices consume only counters that the pool has.
func (p *pool) checkCounters() {
	for i := range p.devices {
		device := p.devices[i].device
		for j := range device.ConsumesCounters {
			consumption := &device.ConsumesCounters[j]
			for name := range consumption.Counters {
				if _, exists := p.counters[consumption.CounterSet][name]; !exists {
					p.invalid = fmt.Sprintf("device %s consumes counter %s, which counter set %s lacks", device.Name, name, consumption.CounterSet)
				}
			}
		}
	}
}
