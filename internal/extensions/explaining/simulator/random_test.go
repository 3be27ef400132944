package simulator

import (
	"fmt"
	"math/rand/v2"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kwok-dra/kwok-dra/internal/extensions/inventory"
)

// random makes worlds.
type random struct{ *rand.Rand }

func (r random) world() *World {
	world := &World{}
	for n := range 1 + r.IntN(3) {
		name := fmt.Sprint("node-", n)
		world.Nodes = append(world.Nodes, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}})
		for p := range 1 + r.IntN(2) {
			world.Slices = append(world.Slices, r.pool(fmt.Sprint("d", p, ".example.com"), name, &name)...)
		}
	}
	if r.IntN(2) == 0 {
		world.Slices = append(world.Slices, r.pool("shared.example.com", "fabric", nil)...)
	}
	return world
}

// pool has two slices with counter sets and devices, and at times lacks one, or has one of
// before.
func (r random) pool(driver, name string, node *string) []*resourcev1.ResourceSlice {
	generation := 1 + r.Int64N(2)
	made := func(generation int64) *resourcev1.ResourceSlice {
		slice := &resourcev1.ResourceSlice{Spec: resourcev1.ResourceSliceSpec{
			Driver: driver, NodeName: node, Pool: resourcev1.ResourcePool{Name: name, Generation: generation, ResourceSliceCount: 3},
		}}
		if node == nil {
			slice.Spec.AllNodes = new(true)
		}
		return slice
	}
	sets, first, second := made(generation), made(generation), made(generation)
	for s := range 1 + r.IntN(3) {
		sets.Spec.SharedCounters = append(sets.Spec.SharedCounters, resourcev1.CounterSet{Name: fmt.Sprint("set-", s), Counters: r.counters(8)})
	}
	grouped := r.IntN(3) == 0
	for d := range 2 + r.IntN(8) {
		slice := []*resourcev1.ResourceSlice{first, second}[r.IntN(2)]
		slice.Spec.Devices = append(slice.Spec.Devices, r.device(fmt.Sprint("device-", d), sets.Spec.SharedCounters, grouped))
	}
	all := []*resourcev1.ResourceSlice{sets, first, second}
	switch {
	case r.IntN(12) == 0:
		return all[:2]
	case generation > 1:
		old := made(1)
		old.Spec.Devices = []resourcev1.Device{{Name: "old"}}
		return append(all, old)
	}
	return all
}

func (r random) counters(most int) map[string]resourcev1.Counter {
	all := map[string]resourcev1.Counter{}
	for _, name := range []string{"memory", "engines", "slice-0", "slice-1"} {
		if r.IntN(3) > 0 || name == "memory" {
			all[name] = resourcev1.Counter{Value: *resource.NewQuantity(int64(r.IntN(most+1)), resource.BinarySI)}
		}
	}
	return all
}

func (r random) device(name string, sets []resourcev1.CounterSet, grouped bool) resourcev1.Device {
	device := resourcev1.Device{Name: name}
	for _, at := range r.Perm(len(sets))[:r.IntN(min(2, len(sets))+1)] {
		consumed := resourcev1.DeviceCounterConsumption{CounterSet: sets[at].Name, Counters: map[string]resourcev1.Counter{}}
		for counter, amount := range r.counters(5) {
			if _, ok := sets[at].Counters[counter]; ok {
				consumed.Counters[counter] = amount
			}
		}
		if grouped {
			consumed.CompatibilityGroups = []string{"a", "b", "c"}[r.IntN(2) : 2+r.IntN(2)]
		}
		device.ConsumesCounters = append(device.ConsumesCounters, consumed)
	}
	if r.IntN(3) == 0 {
		device.AllowMultipleAllocations, device.Capacity = new(true), map[resourcev1.QualifiedName]resourcev1.DeviceCapacity{}
		for c := range r.IntN(3) {
			device.Capacity[resourcev1.QualifiedName(fmt.Sprint("c-", c))] = r.capacity()
		}
	}
	if r.IntN(8) == 0 {
		effect := []resourcev1.DeviceTaintEffect{resourcev1.DeviceTaintEffectNoSchedule, resourcev1.DeviceTaintEffectNoExecute, resourcev1.DeviceTaintEffectNone}[r.IntN(3)]
		device.Taints = []resourcev1.DeviceTaint{{Key: "k", Effect: effect}}
	}
	return device
}

func (r random) capacity() resourcev1.DeviceCapacity {
	amount := func(n int) *resource.Quantity { return resource.NewQuantity(int64(n), resource.DecimalSI) }
	offered := resourcev1.DeviceCapacity{Value: *amount(r.IntN(4) * 20)}
	switch r.IntN(4) {
	case 0:
		offered.RequestPolicy = &resourcev1.CapacityRequestPolicy{Default: amount(r.IntN(30))}
	case 1:
		offered.RequestPolicy = &resourcev1.CapacityRequestPolicy{Default: amount(25), ValidRange: &resourcev1.CapacityRequestPolicyRange{Min: amount(r.IntN(3) * 5), Step: amount(5)}}
	case 2:
		offered.RequestPolicy = &resourcev1.CapacityRequestPolicy{Default: amount(20), ValidValues: []resource.Quantity{*amount(10), *amount(20)}}
	}
	return offered
}

// allocation gives a device to a claim whatever others have.
func (r random) allocation(pool *inventory.Pool, device *resourcev1.Device) *resourcev1.AllocationResult {
	result := resourcev1.DeviceRequestAllocationResult{Request: "r", Driver: pool.Driver, Pool: pool.Name, Device: device.Name}
	switch {
	case r.IntN(4) == 0:
		result.AdminAccess = new(true)
	case device.AllowMultipleAllocations != nil && r.IntN(6) > 0:
		result.ShareID, result.ConsumedCapacity = new(types.UID(fmt.Sprint(r.Int()))), map[resourcev1.QualifiedName]resource.Quantity{}
		for name := range device.Capacity {
			result.ConsumedCapacity[name] = *resource.NewQuantity(int64(r.IntN(60)), resource.DecimalSI)
		}
	}
	return &resourcev1.AllocationResult{Devices: resourcev1.DeviceAllocationResult{Results: []resourcev1.DeviceRequestAllocationResult{result}}}
}
