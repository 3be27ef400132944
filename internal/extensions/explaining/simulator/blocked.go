package simulator

import (
	"maps"
	"slices"
	"strings"

	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/dynamic-resource-allocation/structured"

	"github.com/kwok-dra/kwok-dra/internal/extensions/inventory"
)

// countersAndCapacity is the step that drops devices of which other claims have too much.
const countersAndCapacity = "counters and capacity" + leave

// blocked is a device that no claim has for itself and that a request cannot get, because other
// devices have its counters or other claims its capacity.
type blocked struct {
	device

	// by names what there is too little of.
	by string
	// capacity says that this is a capacity, of which the request wants more than it can have.
	capacity bool
	// exceeded says that the request wants more than the device has, even if nobody takes any.
	exceeded     bool
	wanted, left resource.Quantity
}

// dropBlocked is the step after filterDevices. It drops devices that the request could not get even
// if it wanted only one.
func (s *searcher) dropBlocked() []blocked {
	if isTrue(s.request.AdminAccess) {
		return nil // it takes nothing
	}
	var dropped []blocked
	s.keepDevices(countersAndCapacity, func(d device) bool {
		b := s.lacksCapacity(d)
		state := s.stateOf(d)
		if b == nil && state != nil && state.BlockedBy != "" && !strings.HasPrefix(state.BlockedBy, "capacity ") {
			b = &blocked{device: d, by: state.BlockedBy} // how much capacity is enough depends on the request
		}
		if b != nil {
			dropped = append(dropped, *b)
		}
		return b == nil
	})
	return dropped
}

// lacksCapacity returns the capacity of a device of which the request wants more than is left, or
// nil.
func (s *searcher) lacksCapacity(d device) *blocked {
	requests := map[resourcev1.QualifiedName]resource.Quantity{}
	if s.request.Capacity != nil {
		requests = s.request.Capacity.Requests
	}
	for _, name := range slices.Sorted(maps.Keys(requests)) {
		if _, offered := d.Capacity[name]; !offered {
			return &blocked{device: d, by: "capacity " + string(name), capacity: true, exceeded: true, wanted: requests[name]}
		}
	}
	consumed := s.allocated.AggregatedCapacity[structured.MakeDeviceID(d.driver, d.pool, d.Name)]
	for _, name := range slices.Sorted(maps.Keys(d.Capacity)) {
		offered := d.Capacity[name]
		left := offered.Value.DeepCopy()
		if taken := consumed[name]; taken != nil {
			left.Sub(*taken)
		}
		var asked *resource.Quantity
		if amount, found := requests[name]; found {
			asked = &amount
		}
		most, wanted := mostOf(&offered), consumptionOf(asked, &offered)
		exceeded := wanted.Cmp(most) > 0
		if exceeded || most.Cmp(left) < 0 {
			left = most
		}
		if wanted.Cmp(left) > 0 {
			return &blocked{device: d, by: "capacity " + string(name), capacity: true, exceeded: exceeded, wanted: wanted, left: left}
		}
	}
	return nil
}

// consumptionOf returns what a request takes of a capacity: what it asks for, rounded up to what
// the policy permits, or the default.
func consumptionOf(asked *resource.Quantity, offered *resourcev1.DeviceCapacity) resource.Quantity {
	policy := offered.RequestPolicy
	switch {
	case asked == nil && policy != nil && policy.Default != nil:
		return *policy.Default
	case asked == nil:
		return offered.Value
	case policy == nil:
		return *asked
	}
	if valid := policy.ValidRange; valid != nil && valid.Min != nil {
		switch {
		case asked.Cmp(*valid.Min) < 0:
			return *valid.Min
		case asked.Cmp(*valid.Min) == 0, valid.Step == nil, valid.Step.Sign() <= 0:
			return *asked
		}
		least, step := valid.Min.Value(), valid.Step.Value()
		steps := (asked.Value() - least + step - 1) / step
		return *resource.NewQuantity(least+steps*step, asked.Format)
	}
	for _, valid := range policy.ValidValues {
		if asked.Cmp(valid) <= 0 {
			return valid
		}
	}
	return *asked
}

// mostOf returns the most that a request can take of a capacity under its policy.
func mostOf(offered *resourcev1.DeviceCapacity) resource.Quantity {
	most := offered.Value
	switch policy := offered.RequestPolicy; {
	case policy == nil:
	case policy.ValidRange != nil && policy.ValidRange.Max != nil:
		most = *policy.ValidRange.Max
	case len(policy.ValidValues) > 0:
		most = policy.ValidValues[len(policy.ValidValues)-1]
	}
	if offered.Value.Cmp(most) < 0 {
		return offered.Value
	}
	return most
}

// stateOf returns what the inventory says of a device, by what claims have now. The inventory is
// taken once between two Pods.
func (a *allocator) stateOf(d device) *inventory.Device {
	if a.states == nil {
		a.states = map[structured.DeviceID]*inventory.Device{}
		for _, item := range sourceOf(a.published, a.claims).Take().Items {
			for i := range item.Pools {
				pool := &item.Pools[i]
				for j := range pool.Devices {
					a.states[structured.MakeDeviceID(pool.Driver, pool.Name, pool.Devices[j].Name)] = &pool.Devices[j]
				}
			}
		}
	}
	return a.states[structured.MakeDeviceID(d.driver, d.pool, d.Name)]
}

// sourceOf makes a source of an inventory. All its nodes count as ready: the Scheduler checks their
// taints itself.
func sourceOf(published *publications, claims map[string]*resourcev1.ResourceClaim) *inventory.Source {
	return &inventory.Source{
		Nodes:   func() []string { return nil },
		Changes: func() uint64 { return 0 },
		Slices: func() []inventory.Slice {
			var all []inventory.Slice
			for _, members := range published.slices {
				for _, slice := range members {
					all = append(all, inventory.SliceOf(slice))
				}
			}
			return all
		},
		Allocations: func() []inventory.Allocation {
			var all []inventory.Allocation
			for _, claim := range claims {
				if claim.Status.Allocation == nil {
					continue
				}
				for i := range claim.Status.Allocation.Devices.Results {
					all = append(all, inventory.AllocationOf(claim, &claim.Status.Allocation.Devices.Results[i]))
				}
			}
			return all
		},
	}
}

// devicesDrawingWith returns the devices whose claims have what blocked devices lack: shared devices
// themselves, and else devices in their pools that draw on the same counter sets. Nobody has what
// a device never had.
func (p *publications) devicesDrawingWith(dropped []blocked) []device {
	type set struct {
		pool poolID
		name string
	}
	sets := map[set]bool{}
	var taken []device
	for i := range dropped {
		b := &dropped[i]
		if b.exceeded {
			continue
		}
		taken = append(taken, b.device)
		for j := range b.ConsumesCounters {
			sets[set{poolID{b.driver, b.pool}, b.ConsumesCounters[j].CounterSet}] = true
		}
	}
	for id, members := range p.slices {
		for _, slice := range members {
			for i := range slice.Spec.Devices {
				d := &slice.Spec.Devices[i]
				if slices.ContainsFunc(d.ConsumesCounters, func(c resourcev1.DeviceCounterConsumption) bool { return sets[set{id, c.CounterSet}] }) {
					taken = append(taken, device{Device: d, driver: id.driver, pool: id.name})
				}
			}
		}
	}
	return taken
}

// blockersOf counts blocked devices by what they lack.
func blockersOf(dropped []blocked) []Share {
	counts := map[string]int{}
	for i := range dropped {
		counts[dropped[i].by]++
	}
	return sortShares(counts)
}
