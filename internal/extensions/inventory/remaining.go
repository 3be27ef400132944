package inventory

import (
	"math"
	"slices"

	"k8s.io/apimachinery/pkg/api/resource"
)

// remaining is what the claims on a pool leave to others. Its memory is reused for the next pool.
type remaining struct {
	// counters are what is left of the counters of the kind, in its order.
	counters []resource.Quantity
	// exceeded is the label of a counter of which claims have more than there is.
	exceeded string
	// groups are, for each counter set, the compatibility groups with which another device has to go.
	groups []compatible
}

// compatible are the compatibility groups that all devices on a set have. Devices
// without groups go with one another only.
type compatible struct {
	any, without bool
	groups       []string
}

// computeStates sets the state of each device of a pool by its claims and taints, and what blocks
// it. It returns how much of the pool is taken.
func (r *remaining) computeStates(k *Kind, devices []Device) Usage {
	if k.draws == nil {
		return computeUnsharedStates(devices)
	}
	r.subtractClaims(k, devices)
	for i := range devices {
		device, draws := &devices[i], &k.draws[i]
		switch {
		case draws.shared && device.isTaken():
			device.BlockedBy = draws.measureShare(device)
		case !device.isTaken():
			if device.BlockedBy = r.whyBlocked(k, draws); device.BlockedBy == "" && draws.shared {
				device.BlockedBy = draws.measureShare(device)
			}
		}
		device.State = device.computeState()
	}
	return r.usageOf(k, devices, func(int) bool { return true })
}

// UsageOf returns how much is taken of some devices of a pool of the kind. A counter set counts if
// one of them draws on it.
func (k *Kind) UsageOf(devices []Device, isChosen func(device int) bool) Usage {
	if k.draws != nil {
		r := &remaining{}
		r.subtractClaims(k, devices)
		return r.usageOf(k, devices, isChosen)
	}
	var usage Usage
	for i := range devices {
		if isChosen(i) {
			usage.Total++
			if devices[i].isTaken() {
				usage.Used++
			}
		}
	}
	return usage
}

// computeUnsharedStates is computeStates for devices that share nothing.
func computeUnsharedStates(devices []Device) Usage {
	usage := Usage{Total: float64(len(devices))}
	for i := range devices {
		devices[i].State = devices[i].computeState()
		if devices[i].isTaken() {
			usage.Used++
		}
	}
	return usage
}

// subtractClaims subtracts what the devices with claims consume from the counters of the kind.
func (r *remaining) subtractClaims(k *Kind, devices []Device) {
	r.counters, r.groups, r.exceeded = r.counters[:0], r.groups[:0], ""
	for i := range k.counters {
		r.counters = append(r.counters, k.counters[i].total.DeepCopy()) // large ones are pointers inside
	}
	for range k.sets {
		r.groups = append(r.groups, compatible{})
	}
	for i := range devices {
		if !devices[i].isTaken() {
			continue
		}
		for _, need := range k.draws[i].needs {
			r.counters[need.counter].Sub(need.amount)
		}
		for _, on := range k.draws[i].groups {
			r.groups[on.set].addGroups(on.names)
		}
	}
	for i := range r.counters {
		if r.counters[i].Sign() < 0 {
			r.exceeded = k.counters[i].label
			return
		}
	}
}

// whyBlocked names what a device without claims lacks, or returns "". If claims have more of a
// counter than there is, the scheduler allocates no device that consumes any.
func (r *remaining) whyBlocked(k *Kind, draws *draw) string {
	if len(draws.groups) > 0 && r.exceeded != "" {
		return r.exceeded
	}
	for _, on := range draws.groups {
		if !r.groups[on.set].admitsGroups(on.names) {
			return on.label
		}
	}
	for _, need := range draws.needs {
		if r.counters[need.counter].Cmp(need.amount) < 0 {
			return k.counters[need.counter].label
		}
	}
	return ""
}

func (c *compatible) admitsGroups(names []string) bool {
	if !c.any || len(names) == 0 {
		return !c.any || c.without
	}
	return slices.ContainsFunc(names, func(name string) bool { return slices.Contains(c.groups, name) })
}

func (c *compatible) addGroups(names []string) {
	switch {
	case !c.any:
		*c = compatible{any: true, without: len(names) == 0, groups: names}
	case len(names) > 0:
		c.groups = slices.DeleteFunc(slices.Clone(c.groups), func(name string) bool { return !slices.Contains(names, name) })
	}
}

// whole is what blocks a shared device that a claim has without sharing.
const whole = "a claim that shares it with no other"

// measureShare sets how much of a shared device is taken, and returns what it has no more of.
func (d *draw) measureShare(device *Device) (blockedBy string) {
	for i := range device.Claims {
		if claim := &device.Claims[i]; !claim.AdminAccess && claim.ShareID == "" {
			device.Used = 1
			return whole
		}
	}
	for i := range d.capacities {
		capacity := &d.capacities[i]
		rest := capacity.total.DeepCopy()
		for j := range device.Claims {
			if claim := &device.Claims[j]; !claim.AdminAccess {
				rest.Sub(claim.Consumed[capacity.name])
			}
		}
		device.Used = max(device.Used, float32(partTaken(rest, capacity.total)))
		if rest.Cmp(capacity.smallest) < 0 {
			blockedBy = capacity.label
		}
	}
	if len(d.capacities) == 0 && device.isTaken() {
		device.Used = 1
	}
	return blockedBy
}

// partTaken returns which part of a total is taken, from 0 to 1, given the rest.
func partTaken(rest, total resource.Quantity) float64 {
	if total.Sign() <= 0 {
		return 0
	}
	part := 1 - rest.AsApproximateFloat64()/total.AsApproximateFloat64()
	return roundPart(min(1, max(0, part)))
}

// usageOf returns how much of the chosen devices of a pool is taken. Sets on which none of them draws do not count.
func (r *remaining) usageOf(k *Kind, devices []Device, isChosen func(device int) bool) Usage {
	var usage Usage
	drawn := make([]bool, k.sets)
	for i := range devices {
		if !isChosen(i) {
			continue
		}
		draws := &k.draws[i]
		for _, on := range draws.groups {
			drawn[on.set] = true
		}
		if len(draws.groups) > 0 {
			continue
		}
		usage.Total++
		if draws.shared {
			usage.Used += float64(devices[i].Used)
		} else if devices[i].isTaken() {
			usage.Used++
		}
	}
	for set := range drawn {
		if drawn[set] {
			usage.Total++
			usage.Used += r.setUsed(k, set)
		}
	}
	usage.Used = roundPart(usage.Used)
	return usage
}

// setUsed returns how much of a counter set is taken, from 0 to 1.
func (r *remaining) setUsed(k *Kind, set int) float64 {
	most := 0.0
	for i := range k.counters {
		switch c := &k.counters[i]; {
		case c.set != set:
		case c.memory:
			return partTaken(r.counters[i], c.total)
		default:
			most = max(most, partTaken(r.counters[i], c.total))
		}
	}
	return most
}

// roundPart rounds to four digits after the point, which is more than a viewer sees.
func roundPart(part float64) float64 { return math.Round(part*10_000) / 10_000 }
