package inventory

import (
	"fmt"
	"maps"
	"slices"

	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/kwok-dra/kwok-dra/internal/observe/facts"
)

// Kind is what pools with the same devices in the same slices have in common. Most
// pools of a fleet are of a few kinds, and pools of which nothing is taken or tainted
// share their devices.
type Kind struct {
	// id is the same in each inventory, whoever takes it.
	id string
	// slices are those of one pool of the kind, until it is complete.
	slices []*Slice
	// keys say of each slice what is in it.
	keys []kindKey
	// free are the devices while nothing is taken, and ends where those of each slice end.
	free []Device
	ends []int
	// total is how many devices there are, if those that draw on one counter set are one.
	total float64
	// counters are those of all sets, and draws what each device draws on. They are empty
	// where devices have nothing to share.
	counters []counter
	draws    []draw
	// sets is how many counter sets there are. The first of them is 0.
	sets int
	// wholes are the devices, by their indices, that others are parts of, or -1. They are
	// empty where nothing is a part.
	wholes []int
}

// kindKey is a kind by the slices before its last, and the last.
type kindKey struct {
	before  *Kind
	driver  string
	devices facts.DeviceNames
	sharing Sharing
	facts   Facts
}

// counter is a counter of a set.
type counter struct {
	set   int
	total resource.Quantity
	// memory marks the counter by which the set is measured.
	memory bool
	// label is what a device is blocked by that finds too little of the counter.
	label string
}

// draw is what a device draws on. It is zero for a device that shares nothing.
type draw struct {
	shared     bool
	needs      []need
	groups     []groups
	capacities []capacity
}

// need is how much a device consumes of a counter.
type need struct {
	counter int
	amount  resource.Quantity
}

// groups are the compatibility groups of a device on a set.
type groups struct {
	set   int
	names []string
	// label is what a device is blocked by that goes with none of those on the set.
	label string
}

// capacity is a capacity of a shared device.
type capacity struct {
	name            resourcev1.QualifiedName
	total, smallest resource.Quantity
	// label is what a device is blocked by that has too little of it left.
	label string
}

// kindOf returns the kind of the pool with these slices, and completes a kind that is new.
func (t *taker) kindOf(members []*Slice) *Kind {
	var k *Kind
	for i, slice := range members {
		key := kindKey{k, slice.Driver, slice.Devices, slice.Sharing, slice.Facts}
		next := t.kinds[key]
		if next == nil {
			next = &Kind{slices: members[:i+1]}
			t.kinds[key] = next
		}
		k = next
	}
	if k.free == nil {
		k.completeKind(&t.remaining)
		t.used[k.id] = k
	}
	return k
}

func (k *Kind) completeKind(r *remaining) {
	k.free = []Device{}
	for _, slice := range k.slices {
		for _, name := range slice.Devices.List() {
			k.free = append(k.free, Device{Name: name})
		}
		k.ends = append(k.ends, len(k.free))
		k.keys = append(k.keys, kindKey{driver: slice.Driver, devices: slice.Devices, sharing: slice.Sharing, facts: slice.Facts})
	}
	k.readSharing()
	k.findParts()
	k.computeID()
	k.slices = nil
	k.total = r.computeStates(k, k.free).Total
}

// newDevices returns the devices of a pool of the kind, with their claims and the taints of the
// pool's slices.
func (k *Kind) newDevices(claims map[string][]Claim, members []*Slice) []Device {
	devices := make([]Device, len(k.free))
	for i := range devices {
		devices[i] = Device{Name: k.free[i].Name, Shared: k.free[i].Shared, Claims: claims[k.free[i].Name]}
	}
	begin := 0
	for i, end := range k.ends {
		if taints := members[i].Taints; len(taints) > 0 {
			for j := begin; j < end; j++ {
				devices[j].Taints = taints[devices[j].Name]
			}
		}
		begin = end
	}
	return devices
}

// readSharing decodes what the devices have to share.
func (k *Kind) readSharing() {
	var sharing []resourcev1.Device
	known := map[string]map[string]int{} // the counters of each set
	sets := map[string]int{}
	for _, slice := range k.slices {
		spec := slice.Sharing.decodeSpec()
		sharing = append(sharing, spec.Devices...)
		for i := range spec.SharedCounters {
			set := &spec.SharedCounters[i]
			sets[set.Name] = k.sets
			known[set.Name] = k.addSet(set)
		}
	}
	if len(sharing) == 0 {
		return
	}
	index := make(map[string]int, len(k.free))
	for i := range k.free {
		index[k.free[i].Name] = i
	}
	k.draws = make([]draw, len(k.free))
	for i := range sharing {
		if at, ok := index[sharing[i].Name]; ok {
			k.draws[at] = drawOf(&sharing[i], known, sets)
			k.free[at].Shared = k.draws[at].shared
		}
	}
}

// addSet adds a counter set, and returns its counters.
func (k *Kind) addSet(set *resourcev1.CounterSet) map[string]int {
	known := map[string]int{}
	for _, name := range slices.Sorted(maps.Keys(set.Counters)) {
		known[name] = len(k.counters)
		total := set.Counters[name].Value
		k.counters = append(k.counters, counter{
			set: k.sets, total: total, memory: name == "memory" && total.Sign() > 0,
			label: fmt.Sprintf("counter %s of %s", name, set.Name),
		})
	}
	k.sets++
	return known
}

// drawOf returns what a device draws on. Like the scheduler, it ignores counters that are in no set.
func drawOf(device *resourcev1.Device, known map[string]map[string]int, sets map[string]int) draw {
	d := draw{shared: isShared(device)}
	for i := range device.ConsumesCounters {
		consumed := &device.ConsumesCounters[i]
		for _, name := range slices.Sorted(maps.Keys(consumed.Counters)) {
			if at, ok := known[consumed.CounterSet][name]; ok {
				d.needs = append(d.needs, need{at, consumed.Counters[name].Value})
			}
		}
		if set, ok := sets[consumed.CounterSet]; ok {
			d.groups = append(d.groups, groups{set, consumed.CompatibilityGroups, "compatibility groups on " + consumed.CounterSet})
		}
	}
	for _, name := range slices.Sorted(maps.Keys(device.Capacity)) {
		offered := device.Capacity[name]
		d.capacities = append(d.capacities, capacity{
			name: name, total: offered.Value, smallest: smallestRequest(&offered), label: "capacity " + string(name),
		})
	}
	return d
}

// anything is the smallest request if the policy has no limits.
var anything = *resource.NewScaledQuantity(1, resource.Nano)

// smallestRequest returns the least that a claim can take of a capacity: the smallest permitted
// request, or what a claim without a request gets.
func smallestRequest(offered *resourcev1.DeviceCapacity) resource.Quantity {
	least, unasked := anything, offered.Value
	if policy := offered.RequestPolicy; policy != nil {
		if policy.Default != nil {
			unasked = *policy.Default
		}
		switch limits := policy.ValidRange; {
		case limits != nil && limits.Min != nil && limits.Min.Sign() > 0:
			least = *limits.Min
		case limits != nil && limits.Step != nil:
			least = *limits.Step
		case len(policy.ValidValues) > 0:
			least = policy.ValidValues[0]
		}
	}
	if unasked.Cmp(least) < 0 {
		return unasked
	}
	return least
}
