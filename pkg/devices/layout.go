package devices

import (
	"fmt"
	"slices"

	resourcev1 "k8s.io/api/resource/v1"
)

// Layout is how the API server wants counter sets.
type Layout int

const (
	// CountersApart has slices of counter sets, and others of devices: Kubernetes
	// from 1.35 on.
	CountersApart Layout = iota
	// CountersWithDevices has each counter set in the slice of the devices that
	// consume from it: Kubernetes 1.34.
	CountersWithDevices
)

const (
	// maxCounters and maxConsumed are what Kubernetes 1.34 takes in a slice:
	// counters in its counter sets, and in consumesCounters of its devices.
	maxCounters = 32
	maxConsumed = 1024
)

// Slice is what a ResourceSlice of a pool holds.
type Slice struct {
	CounterSets []resourcev1.CounterSet
	Devices     []resourcev1.Device
}

// Slices splits a pool as it is to be published: as its templates say, or into
// the fewest slices within the API server's limits, which are 128 devices, or 64
// where one has taints, counters or lists. Slices of counter sets come first.
func (p *Pool) Slices(layout Layout) ([]Slice, error) {
	parts := p.explicit()
	if len(p.CounterSets) > 0 && layout == CountersWithDevices {
		return p.withDevices(parts)
	}
	var made []Slice
	for chunk := range slices.Chunk(p.CounterSets, resourcev1.ResourceSliceMaxCounterSets) {
		made = append(made, Slice{CounterSets: chunk})
	}
	for i, part := range parts {
		limit := maxDevices(part)
		if len(part) > limit && i < len(p.split) {
			return nil, fmt.Errorf("slices[%d] of pool %s has %d devices, at most %d are possible: divide it", i, p.Name, len(part), limit)
		}
		for chunk := range slices.Chunk(part, limit) {
			made = append(made, Slice{Devices: chunk})
		}
	}
	return made, nil
}

// explicit are the devices of each slice as the templates say, and then those of
// which they say nothing.
func (p *Pool) explicit() [][]resourcev1.Device {
	if len(p.split) == 0 {
		return [][]resourcev1.Device{p.Devices}
	}
	slice := map[string]int{}
	for i, names := range p.split {
		for _, name := range names {
			slice[name] = i
		}
	}
	parts := make([][]resourcev1.Device, len(p.split)+1)
	for _, device := range p.Devices {
		i, ok := slice[device.Name]
		if !ok {
			i = len(p.split)
		}
		parts[i] = append(parts[i], device)
	}
	if len(parts[len(p.split)]) == 0 {
		parts = parts[:len(p.split)]
	}
	return parts
}

func maxDevices(devices []resourcev1.Device) int {
	if slices.ContainsFunc(devices, hasAdvancedFeatures) {
		return resourcev1.ResourceSliceMaxDevicesWithAdvancedFeatures
	}
	return resourcev1.ResourceSliceMaxDevices
}

func hasAdvancedFeatures(device resourcev1.Device) bool {
	if len(device.Taints)+len(device.ConsumesCounters) > 0 {
		return true
	}
	return HasListAttribute(&device)
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

// withDevices packs devices that consume from the same counter sets, with these,
// into slices.
func (p *Pool) withDevices(parts [][]resourcev1.Device) ([]Slice, error) {
	sets := map[string]resourcev1.CounterSet{}
	for _, set := range p.CounterSets {
		sets[set.Name] = set
	}
	var made []Slice
	for i, part := range parts {
		packed, err := p.pack(units(part, sets), i < len(p.split))
		if err != nil {
			return nil, err
		}
		made = append(made, packed...)
	}
	return made, eachSetOnce(p, made)
}

// pack puts units into as few slices as hold them, or into one where that is
// explicitly asked for.
func (p *Pool) pack(units []Slice, explicit bool) ([]Slice, error) {
	var packed []Slice
	for _, unit := range units {
		if err := unit.check(p); err != nil {
			return nil, err
		}
		if last := len(packed) - 1; last >= 0 && (explicit || packed[last].with(unit).fits()) {
			packed[last] = packed[last].with(unit)
			continue
		}
		packed = append(packed, unit)
	}
	if explicit {
		return packed, packed[0].check(p)
	}
	return packed, nil
}

// units groups devices that must be in one slice because they consume from the
// same counter sets. Units are in the order of their first devices.
func units(devices []resourcev1.Device, sets map[string]resourcev1.CounterSet) []Slice {
	joined := joinSets(devices)
	var made []Slice
	unitOf := map[string]int{}
	placed := map[string]bool{}
	for _, device := range devices {
		unit := len(made)
		if len(device.ConsumesCounters) > 0 {
			first := joined.find(device.ConsumesCounters[0].CounterSet)
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
			if name := consumption.CounterSet; !placed[name] {
				placed[name] = true
				made[unit].CounterSets = append(made[unit].CounterSets, sets[name])
			}
		}
	}
	return made
}

// joinedSets maps counter sets to others that some device consumes from as well.
type joinedSets map[string]string

func joinSets(devices []resourcev1.Device) joinedSets {
	joined := joinedSets{}
	for i := range devices {
		for _, consumption := range devices[i].ConsumesCounters {
			first, other := joined.find(devices[i].ConsumesCounters[0].CounterSet), joined.find(consumption.CounterSet)
			if first != other {
				joined[other] = first
			}
		}
	}
	return joined
}

// find finds the one that stands for all that a set is joined with.
func (j joinedSets) find(set string) string {
	for next, ok := j[set]; ok; next, ok = j[set] {
		set = next
	}
	return set
}

// with joins two slices.
func (s Slice) with(other Slice) Slice {
	return Slice{
		CounterSets: slices.Concat(s.CounterSets, other.CounterSets),
		Devices:     slices.Concat(s.Devices, other.Devices),
	}
}

// fits reports whether Kubernetes 1.34 takes the slice.
func (s Slice) fits() bool {
	counters, consumed := s.counters()
	return counters <= maxCounters && consumed <= maxConsumed && len(s.Devices) <= maxDevices(s.Devices)
}

func (s Slice) counters() (sets, consumed int) {
	for _, set := range s.CounterSets {
		sets += len(set.Counters)
	}
	for i := range s.Devices {
		for _, consumption := range s.Devices[i].ConsumesCounters {
			consumed += len(consumption.Counters)
		}
	}
	return sets, consumed
}

func (s Slice) check(p *Pool) error {
	if s.fits() {
		return nil
	}
	counters, consumed := s.counters()
	return fmt.Errorf("pool %s of driver %s: this API server (Kubernetes 1.34) wants the %d devices from %s on in one slice with the counter sets that they consume from, %d counters, consumed %d times; it takes %d devices, %d counters, consumed %d times: use fewer partitions, slots or counters for each device",
		p.Name, p.Driver, len(s.Devices), s.Devices[0].Name, counters, consumed, maxDevices(s.Devices), maxCounters, maxConsumed)
}

// eachSetOnce refuses slices that would have to share a counter set.
func eachSetOnce(p *Pool, made []Slice) error {
	seen := map[string]bool{}
	for _, slice := range made {
		for _, set := range slice.CounterSets {
			if seen[set.Name] {
				return fmt.Errorf("pool %s of driver %s: this API server (Kubernetes 1.34) wants all devices that consume from the counter set %s in one slice: change spec.slices",
					p.Name, p.Driver, set.Name)
			}
			seen[set.Name] = true
		}
	}
	return nil
}
