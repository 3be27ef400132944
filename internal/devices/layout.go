package devices

import (
	"cmp"
	"fmt"
	"slices"

	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/util/sets"
)

// Layout is how the API server accepts counter sets.
type Layout int

const (
	// CountersApart has slices of counter sets, and others of devices: Kubernetes 1.35 or later.
	CountersApart Layout = iota
	// CountersWithDevices has each counter set in the slice of the devices that consume from it:
	// Kubernetes 1.34.
	CountersWithDevices
)

const (
	// maxCounters and maxConsumed limit a slice in Kubernetes 1.34: the counters in its counter
	// sets, and in consumesCounters of its devices.
	maxCounters = 32
	maxConsumed = 1024
)

// Slice is what a ResourceSlice of a pool holds.
type Slice struct {
	CounterSets []resourcev1.CounterSet
	Devices     []resourcev1.Device
}

// Slices splits a pool into slices: as its templates say, or into as few as the API server's limits
// allow, which are 128 devices, or 64 if one has taints, counters or lists. Slices of counter sets
// come first. A pool without devices is one empty slice, which a driver publishes that finds none.
func (p *Pool) Slices(layout Layout) ([]Slice, error) {
	if len(p.CounterSets)+len(p.Devices) == 0 {
		return []Slice{{}}, nil
	}
	parts, explicit := p.splitDevices()
	if len(p.CounterSets) > 0 && layout == CountersWithDevices {
		return p.packWithCounterSets(parts, explicit)
	}
	var made []Slice
	for chunk := range slices.Chunk(p.CounterSets, resourcev1.ResourceSliceMaxCounterSets) {
		made = append(made, Slice{CounterSets: chunk})
	}
	for i, part := range parts {
		limit := maxDevices(part)
		if len(part) > limit && i < explicit {
			return nil, fmt.Errorf("slices[%d] of pool %s has %d devices, at most %d are possible: divide it", i, p.Name, len(part), limit)
		}
		for chunk := range slices.Chunk(part, limit) {
			made = append(made, Slice{Devices: chunk})
		}
	}
	return made, nil
}

// splitDevices returns the devices of each slice that the templates ask for, which are the first
// explicit parts, and then those in no such slice.
func (p *Pool) splitDevices() (parts [][]resourcev1.Device, explicit int) {
	slice := map[string]int{}
	for _, t := range p.Templates {
		for _, names := range t.content.split {
			for _, name := range names {
				slice[name] = explicit
			}
			explicit++
		}
	}
	if explicit == 0 {
		return [][]resourcev1.Device{p.Devices}, 0
	}
	parts = make([][]resourcev1.Device, explicit+1)
	for _, device := range p.Devices {
		i, ok := slice[device.Name]
		if !ok {
			i = explicit
		}
		parts[i] = append(parts[i], device)
	}
	return parts, explicit
}

func maxDevices(devices []resourcev1.Device) int {
	for i := range devices {
		if device := &devices[i]; len(device.Taints)+len(device.ConsumesCounters) > 0 || HasListAttribute(device) {
			return resourcev1.ResourceSliceMaxDevicesWithAdvancedFeatures
		}
	}
	return resourcev1.ResourceSliceMaxDevices
}

// HasListAttribute reports whether an attribute of the device is a list.
func HasListAttribute(device *resourcev1.Device) bool {
	for _, attribute := range device.Attributes {
		if IsList(attribute) {
			return true
		}
	}
	return false
}

// IsList reports whether an attribute is a list.
func IsList(a resourcev1.DeviceAttribute) bool {
	return len(a.StringValues)+len(a.IntValues)+len(a.BoolValues)+len(a.VersionValues) > 0
}

// packWithCounterSets packs devices into slices together with the counter sets that they consume
// from.
func (p *Pool) packWithCounterSets(parts [][]resourcev1.Device, explicit int) ([]Slice, error) {
	var made []Slice
	for i, part := range parts {
		packed, err := p.packUnits(p.groupByCounterSets(part), i < explicit)
		if err != nil {
			return nil, err
		}
		made = append(made, packed...)
	}
	seen := sets.Set[string]{}
	for _, slice := range made {
		for _, set := range slice.CounterSets {
			if seen.Has(set.Name) {
				return made, fmt.Errorf("pool %s of driver %s: this API server (Kubernetes 1.34) wants all devices that consume from the counter set %s in one slice: change spec.slices",
					p.Name, p.Driver, set.Name)
			}
			seen.Insert(set.Name)
		}
	}
	return made, nil
}

// packUnits puts units into as few slices as hold them, or into one if a template asks for that.
func (p *Pool) packUnits(units []Slice, explicit bool) ([]Slice, error) {
	var packed []Slice
	for _, unit := range units {
		if err := p.checkLimits(unit); err != nil {
			return nil, err
		}
		if last := len(packed) - 1; last >= 0 {
			joined := Slice{slices.Concat(packed[last].CounterSets, unit.CounterSets), slices.Concat(packed[last].Devices, unit.Devices)}
			if explicit || p.checkLimits(joined) == nil {
				packed[last] = joined
				continue
			}
		}
		packed = append(packed, unit)
	}
	if explicit {
		return packed, p.checkLimits(packed[0])
	}
	return packed, nil
}

// groupByCounterSets makes a unit of the devices that must be in one slice, since they consume from
// the same counter sets. Units are in the order of their first devices.
func (p *Pool) groupByCounterSets(devices []resourcev1.Device) []Slice {
	unplaced := map[string]resourcev1.CounterSet{}
	for _, set := range p.CounterSets {
		unplaced[set.Name] = set
	}
	joined := joinSets(devices)
	var made []Slice
	unitOf := map[string]int{}
	for _, device := range devices {
		unit := len(made)
		if len(device.ConsumesCounters) > 0 {
			first := joined[device.ConsumesCounters[0].CounterSet]
			if known, ok := unitOf[first]; ok {
				unit = known
			}
			unitOf[first] = unit
		}
		if unit == len(made) {
			made = append(made, Slice{})
		}
		made[unit].Devices = append(made[unit].Devices, device)
		for _, consumption := range device.ConsumesCounters {
			if set, ok := unplaced[consumption.CounterSet]; ok {
				made[unit].CounterSets = append(made[unit].CounterSets, set)
				delete(unplaced, set.Name)
			}
		}
	}
	return made
}

// joinSets maps each counter set to the one that stands for all those from which devices consume
// together.
func joinSets(devices []resourcev1.Device) map[string]string {
	joined := map[string]string{}
	for i := range devices {
		for _, consumption := range devices[i].ConsumesCounters {
			set, first := consumption.CounterSet, devices[i].ConsumesCounters[0].CounterSet
			joined[set] = cmp.Or(joined[set], set)
			if replaced := joined[set]; replaced != joined[first] {
				for other := range joined {
					if joined[other] == replaced {
						joined[other] = joined[first]
					}
				}
			}
		}
	}
	return joined
}

// checkLimits refuses a slice that Kubernetes 1.34 does not accept.
func (p *Pool) checkLimits(s Slice) error {
	counters, consumed := 0, 0
	for _, set := range s.CounterSets {
		counters += len(set.Counters)
	}
	for i := range s.Devices {
		for _, consumption := range s.Devices[i].ConsumesCounters {
			consumed += len(consumption.Counters)
		}
	}
	most := maxDevices(s.Devices)
	if counters <= maxCounters && consumed <= maxConsumed && len(s.Devices) <= most {
		return nil
	}
	return fmt.Errorf("pool %s of driver %s: this API server (Kubernetes 1.34) wants the %d devices from %s on in one slice with the counter sets that they consume from, %d counters, consumed %d times; it takes %d devices, %d counters, consumed %d times: use fewer partitions, slots or counters for each device",
		p.Name, p.Driver, len(s.Devices), s.Devices[0].Name, counters, consumed, most, maxCounters, maxConsumed)
}
