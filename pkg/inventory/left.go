package inventory

import (
	"math"
	"slices"

	"k8s.io/apimachinery/pkg/api/resource"
)

// left is what the claims on a pool leave to others. Its memory is used for one pool
// after the other.
type left struct {
	// counters are those of the kind, by their order.
	counters []resource.Quantity
	// exceeded is the label of a counter of which more is taken than there is.
	exceeded string
	// groups are what devices on each set have to go with.
	groups []compatible
}

// compatible are the compatibility groups that all devices on a set have. Devices
// without groups go with one another only.
type compatible struct {
	any, without bool
	groups       []string
}

// judge sets what the claims and taints make of the devices of a pool, and says
// how much of it is taken.
func (l *left) judge(k *Kind, devices []Device) Usage {
	if k.draws == nil {
		return judgeWhole(devices)
	}
	l.take(k, devices)
	for i := range devices {
		device, draws := &devices[i], &k.draws[i]
		switch {
		case draws.shared && device.taken():
			device.BlockedBy = draws.measure(device)
		case !device.taken():
			if device.BlockedBy = l.lacks(k, draws); device.BlockedBy == "" && draws.shared {
				device.BlockedBy = draws.measure(device)
			}
		}
		device.State = device.state()
	}
	return l.usage(k, devices, func(int) bool { return true })
}

// UsageOf is how much is taken of some devices of a pool of the kind. A counter set counts if one of
// them draws on it.
func (k *Kind) UsageOf(devices []Device, isChosen func(device int) bool) Usage {
	if k.draws != nil {
		l := &left{}
		l.take(k, devices)
		return l.usage(k, devices, isChosen)
	}
	var usage Usage
	for i := range devices {
		if isChosen(i) {
			usage.Total++
			if devices[i].taken() {
				usage.Used++
			}
		}
	}
	return usage
}

// judgeWhole judges devices that share nothing.
func judgeWhole(devices []Device) Usage {
	usage := Usage{Total: float64(len(devices))}
	for i := range devices {
		devices[i].State = devices[i].state()
		if devices[i].taken() {
			usage.Used++
		}
	}
	return usage
}

// take takes what devices with claims consume of the counters.
func (l *left) take(k *Kind, devices []Device) {
	l.counters, l.groups, l.exceeded = l.counters[:0], l.groups[:0], ""
	for i := range k.counters {
		l.counters = append(l.counters, k.counters[i].total.DeepCopy()) // large ones are pointers inside
	}
	for range k.sets {
		l.groups = append(l.groups, compatible{})
	}
	for i := range devices {
		if !devices[i].taken() {
			continue
		}
		for _, need := range k.draws[i].needs {
			l.counters[need.counter].Sub(need.amount)
		}
		for _, on := range k.draws[i].groups {
			l.groups[on.set].add(on.names)
		}
	}
	for i := range l.counters {
		if l.counters[i].Sign() < 0 {
			l.exceeded = k.counters[i].label
			return
		}
	}
}

// lacks names what a device lacks that no claim has, or is empty. Where more is taken of
// a counter than there is, the scheduler gives no device that consumes any.
func (l *left) lacks(k *Kind, draws *draw) string {
	if len(draws.groups) > 0 && l.exceeded != "" {
		return l.exceeded
	}
	for _, on := range draws.groups {
		if !l.groups[on.set].admits(on.names) {
			return on.label
		}
	}
	for _, need := range draws.needs {
		if l.counters[need.counter].Cmp(need.amount) < 0 {
			return k.counters[need.counter].label
		}
	}
	return ""
}

func (c *compatible) admits(names []string) bool {
	if !c.any || len(names) == 0 {
		return !c.any || c.without
	}
	return slices.ContainsFunc(names, func(name string) bool { return slices.Contains(c.groups, name) })
}

func (c *compatible) add(names []string) {
	switch {
	case !c.any:
		*c = compatible{any: true, without: len(names) == 0, groups: names}
	case len(names) > 0:
		c.groups = slices.DeleteFunc(slices.Clone(c.groups), func(name string) bool { return !slices.Contains(names, name) })
	}
}

// whole is what a shared device is blocked by that a claim has without sharing.
const whole = "a claim that shares it with no other"

// measure sets how much of a shared device is taken, and names what it has no more of.
func (d *draw) measure(device *Device) (blockedBy string) {
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
		device.Used = max(device.Used, float32(taken(rest, capacity.total)))
		if rest.Cmp(capacity.smallest) < 0 {
			blockedBy = capacity.label
		}
	}
	if len(d.capacities) == 0 && device.taken() {
		device.Used = 1
	}
	return blockedBy
}

// taken is which part of a total is taken if that is left of it.
func taken(rest, total resource.Quantity) float64 {
	if total.Sign() <= 0 {
		return 0
	}
	part := 1 - rest.AsApproximateFloat64()/total.AsApproximateFloat64()
	return rounded(min(1, max(0, part)))
}

// usage is how much of the chosen devices of a pool is taken. Sets on which none of them draws do not count.
func (l *left) usage(k *Kind, devices []Device, isChosen func(device int) bool) Usage {
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
		} else if devices[i].taken() {
			usage.Used++
		}
	}
	for set := range drawn {
		if drawn[set] {
			usage.Total++
			usage.Used += l.setUsed(k, set)
		}
	}
	usage.Used = rounded(usage.Used)
	return usage
}

// setUsed is how much of a counter set is taken, from 0 to 1.
func (l *left) setUsed(k *Kind, set int) float64 {
	most := 0.0
	for i := range k.counters {
		switch c := &k.counters[i]; {
		case c.set != set:
		case c.memory:
			return taken(l.counters[i], c.total)
		default:
			most = max(most, taken(l.counters[i], c.total))
		}
	}
	return most
}

// rounded has as many digits as say something.
func rounded(part float64) float64 { return math.Round(part*10_000) / 10_000 }
