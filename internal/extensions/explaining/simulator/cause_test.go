package simulator

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// fitted is a world with a node without devices, which is the first by its name, and one with
// some devices, all of class gpu.
func fitted(devices ...resourcev1.Device) *World {
	world := &World{Classes: []*resourcev1.DeviceClass{{ObjectMeta: metav1.ObjectMeta{Name: "gpu"}}}}
	for _, name := range []string{"a-other", "z-gpu"} {
		world.Nodes = append(world.Nodes, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}})
	}
	world.Slices = []*resourcev1.ResourceSlice{{Spec: resourcev1.ResourceSliceSpec{
		Driver: driver, NodeName: new("z-gpu"), Devices: devices,
		Pool: resourcev1.ResourcePool{Name: "z-gpu", Generation: 1, ResourceSliceCount: 1},
	}}}
	return world
}

// partitioned is a world with a GPU and its halves.
func partitioned() *World {
	memory := func(amount string) map[string]resourcev1.Counter {
		return map[string]resourcev1.Counter{"memory": {Value: resource.MustParse(amount)}}
	}
	part := func(name, amount, kind string) resourcev1.Device {
		return resourcev1.Device{
			Name:             name,
			Attributes:       map[resourcev1.QualifiedName]resourcev1.DeviceAttribute{"type": {StringValue: &kind}},
			ConsumesCounters: []resourcev1.DeviceCounterConsumption{{CounterSet: "gpu-0", Counters: memory(amount)}},
		}
	}
	world := fitted(part("gpu-0", "80Gi", "gpu"), part("gpu-0-half-0", "40Gi", "mig"), part("gpu-0-half-1", "40Gi", "mig"))
	counters := world.Slices[0].DeepCopy()
	counters.Spec.Devices, counters.Spec.SharedCounters = nil, []resourcev1.CounterSet{{Name: "gpu-0", Counters: memory("80Gi")}}
	world.Slices = append(world.Slices, counters)
	for _, slice := range world.Slices {
		slice.Spec.Pool.ResourceSliceCount = 2
	}
	return world
}

// sharable is a device that claims share, with 80Gi.
func sharable(name string) resourcev1.Device {
	return resourcev1.Device{Name: name, AllowMultipleAllocations: new(true), Capacity: map[resourcev1.QualifiedName]resourcev1.DeviceCapacity{
		"memory": {Value: resource.MustParse("80Gi")},
	}}
}

func ofType(kind string) resourcev1.DeviceSelector {
	return selecting(fmt.Sprintf(`device.attributes[%q].type == %q`, driver, kind))
}

// hold gives devices to a claim that is reserved for a Pod of its name.
func (w *World) hold(t *testing.T, name string, count int64, memory string, selectors ...resourcev1.DeviceSelector) {
	t.Helper()
	pod, claim := podFor(name, count, memory, selectors...)
	w.Claims = append(w.Claims, claim)
	placed := NewScheduler(w).Schedule(t.Context(), pod)
	require.NotEmpty(t, placed.Node, placed.Reason)
	w.Claims[len(w.Claims)-1] = placed.Claims[0]
}

// podFor is a Pod whose claim asks for devices, with some memory of each if that is not empty.
func podFor(name string, count int64, memory string, selectors ...resourcev1.DeviceSelector) (*corev1.Pod, *resourcev1.ResourceClaim) {
	pod, claim := pending(name, count, selectors...)
	if memory != "" {
		claim.Spec.Devices.Requests[0].Exactly.Capacity = &resourcev1.CapacityRequirements{
			Requests: map[resourcev1.QualifiedName]resource.Quantity{"memory": resource.MustParse(memory)},
		}
	}
	return pod, claim
}

// TestCause names what keeps a Pod waiting before the numbers, and the nearest node that has
// such devices.
func TestCause(t *testing.T) {
	t.Parallel()
	typed := func(name, kind string) resourcev1.Device {
		device := resourcev1.Device{Name: name}
		if kind != "" {
			device.Attributes = map[resourcev1.QualifiedName]resourcev1.DeviceAttribute{"type": {StringValue: &kind}}
		}
		return device
	}
	whole := sharable("gpu-0")
	whole.AllowMultipleAllocations = nil
	for name, test := range map[string]struct {
		world    *World
		hold     func(t *testing.T, w *World)
		count    int64
		memory   string
		selector []resourcev1.DeviceSelector
		cause    string
		numbers  string
	}{
		"counters": {
			world: partitioned(), count: 1, selector: []resourcev1.DeviceSelector{ofType("gpu")},
			hold:    func(t *testing.T, w *World) { t.Helper(); w.hold(t, "half", 1, "", ofType("mig")) },
			cause:   "counter memory of gpu-0 has too little left, taken by default/half 1",
			numbers: "1 blocked (counter memory of gpu-0 1), 0 left; nearest: node z-gpu lacks 1 (counters and capacity leave too few)",
		},
		"counters of several": {
			world: partitioned(), count: 2, selector: []resourcev1.DeviceSelector{selecting("true")},
			hold:    func(t *testing.T, w *World) { t.Helper(); w.hold(t, "half", 1, "", ofType("mig")) },
			cause:   "counter memory of gpu-0 has too little left, taken by default/half 1",
			numbers: "1 allocated (default/half 1), 1 blocked (counter memory of gpu-0 1), 1 left; nearest: node z-gpu lacks 1 (counters and capacity leave too few)",
		},
		"counters together": {
			world: partitioned(), count: 3,
			hold:    func(*testing.T, *World) {},
			cause:   "counters and capacity of node z-gpu are enough for 2 of 3 devices",
			numbers: "3 devices of the class on 1 node, 3 left; nearest: node z-gpu lacks 1 (counters and capacity leave too few)",
		},
		"capacity": {
			world: fitted(sharable("nic-0")), count: 1, memory: "40Gi",
			hold:    func(t *testing.T, w *World) { t.Helper(); w.hold(t, "large", 1, "60Gi") },
			cause:   "capacity memory has too little left, 40Gi wanted and at most 20Gi to be had, taken by default/large 1",
			numbers: "1 blocked (capacity memory 1), 0 left; nearest: node z-gpu lacks 1 (counters and capacity leave too few)",
		},
		"a capacity that no device has": {
			world: fitted(typed("gpu-0", "gpu")), count: 1, memory: "40Gi",
			hold:    func(*testing.T, *World) {},
			cause:   "no free device has capacity memory, 40Gi wanted",
			numbers: "1 blocked (capacity memory 1), 0 left; nearest: node z-gpu lacks 1 (counters and capacity leave too few)",
		},
		"more capacity than a shared device has": {
			world: fitted(sharable("nic-0")), count: 1, memory: "100Gi",
			hold:    func(t *testing.T, w *World) { t.Helper(); w.hold(t, "small", 1, "1Gi") },
			cause:   "capacity memory of the free devices is too small, 100Gi wanted and at most 80Gi to be had",
			numbers: "1 blocked (capacity memory 1), 0 left; nearest: node z-gpu lacks 1 (counters and capacity leave too few)",
		},
		"more capacity than a device has": {
			world: fitted(whole), count: 1, memory: "100Gi",
			hold:    func(*testing.T, *World) {},
			cause:   "capacity memory of the free devices is too small, 100Gi wanted and at most 80Gi to be had",
			numbers: "1 blocked (capacity memory 1), 0 left; nearest: node z-gpu lacks 1 (counters and capacity leave too few)",
		},
		"allocated": {
			world: fitted(typed("gpu-0", "gpu"), typed("gpu-1", "gpu")), count: 2,
			hold:    func(t *testing.T, w *World) { t.Helper(); w.hold(t, "other", 1, "") },
			numbers: "1 allocated (default/other 1), 1 left; nearest: node z-gpu lacks 1",
		},
		"an attribute that a device has not": {
			world: fitted(typed("gpu-0", ""), typed("gpu-1", "mig")), count: 1, selector: []resourcev1.DeviceSelector{ofType("gpu")},
			hold: func(*testing.T, *World) {},
			cause: "the selector `" + ofType("gpu").CEL.Expression + "` of the request fails for device " + driver + "/z-gpu/gpu-0: " +
				"it has no attribute " + driver + "/type (no such key: type)",
			numbers: "2 devices of the class on 1 node",
		},
		"nothing of the class": {
			world: fitted(), count: 1,
			hold:    func(*testing.T, *World) {},
			numbers: "no node that the Pod may be on has any device",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test.hold(t, test.world)
			pod, claim := podFor("waits", test.count, test.memory, test.selector...)
			test.world.Claims = append(test.world.Claims, claim)
			outlook := NewScheduler(test.world).Outlook(t.Context(), pod)
			require.False(t, outlook.Fits())
			binding := outlook.Binding()
			require.True(t, strings.HasPrefix(binding.Cause(), test.cause), binding.Cause())
			require.Equal(t, strings.Contains(test.cause, "taken by"), strings.Contains(binding.Cause(), "taken by"))
			require.Equal(t, test.cause == "", binding.Cause() == "", binding.Cause())
			require.Contains(t, binding.String(), test.numbers)
			require.NotContains(t, binding.String(), "a-other")
			require.Equal(t, strings.Contains(test.cause, "fails"), outlook.Failing() != nil)
		})
	}
}

// TestBindingRequest is the one that keeps the Pod from the node that comes the furthest.
func TestBindingRequest(t *testing.T) {
	t.Parallel()
	world := fitted(resourcev1.Device{Name: "gpu-0"})
	pod, claim := pending("waits", 1)
	second := *claim.Spec.Devices.Requests[0].DeepCopy()
	second.Name = "second"
	claim.Spec.Devices.Requests = append(claim.Spec.Devices.Requests, second)
	world.Claims = []*resourcev1.ResourceClaim{claim}
	outlook := NewScheduler(world).Outlook(t.Context(), pod)
	require.Len(t, outlook.Supplies, 2, "the other node lacks the first")
	require.Equal(t, "second", outlook.Binding().Request)
	require.Equal(t, "on node z-gpu the requests before it leave 0 of 1 device", outlook.Binding().Cause())
}

// TestFailingSelector: where a selector fails for one device, the scheduler binds the Pod to no
// node, though another node has what it asks for.
func TestFailingSelector(t *testing.T) {
	t.Parallel()
	world := gpus(2, 1)
	delete(world.Slices[1].Spec.Devices[0].Attributes, "model")
	pod, claim := pending("waits", 1, selecting(`device.attributes["`+driver+`"].model == "H100"`))
	world.Claims = []*resourcev1.ResourceClaim{claim}
	world.Slices[0].Spec.Devices[0].Attributes["model"] = resourcev1.DeviceAttribute{StringValue: new("H100")}
	scheduler := NewScheduler(world)
	outlook := scheduler.Outlook(t.Context(), pod)
	require.True(t, outlook.Fits())
	require.NotNil(t, outlook.Failing())
	require.Contains(t, outlook.Failing().Error, "it has no attribute "+driver+"/model")
	require.Empty(t, scheduler.Schedule(t.Context(), pod).Node, "so says the scheduler")
}

// TestLinesOfRefusals have no line breaks, though an expression may have some.
func TestLinesOfRefusals(t *testing.T) {
	t.Parallel()
	world := fitted(resourcev1.Device{Name: "gpu-0"})
	pod, claim := pending("waits", 1, selecting("device.driver != \"\" &&\n  device.driver == \"other\"\n"))
	world.Claims = []*resourcev1.ResourceClaim{claim}
	var lines []string
	for _, refusal := range NewScheduler(world).Explain(t.Context(), pod) {
		lines = append(lines, refusal.Line())
	}
	require.Contains(t, lines, `node z-gpu: claim waits, request gpus wants 1: devices 1, device.driver != "" && device.driver == "other" 0`)
}

// TestTaintsOfRules name the rule.
func TestTaintsOfRules(t *testing.T) {
	t.Parallel()
	world := fitted(resourcev1.Device{Name: "gpu-0", Taints: []resourcev1.DeviceTaint{{Key: "own", Effect: resourcev1.DeviceTaintEffectNoSchedule}}})
	rule := &resourcev1.DeviceTaintRule{ObjectMeta: metav1.ObjectMeta{Name: "maintenance"}, Spec: resourcev1.DeviceTaintRuleSpec{
		DeviceSelector: &resourcev1.DeviceTaintSelector{}, Taint: resourcev1.DeviceTaint{Key: "down", Effect: resourcev1.DeviceTaintEffectNoExecute},
	}}
	world.TaintRules = []*resourcev1.DeviceTaintRule{rule}
	pod, claim := pending("waits", 1)
	world.Claims = []*resourcev1.ResourceClaim{claim}
	require.Contains(t, NewScheduler(world).Outlook(t.Context(), pod).Binding().String(),
		"1 tainted (down:NoExecute of DeviceTaintRule maintenance 1, own:NoSchedule 1), 0 left")
}

// TestBlockedInRandomWorlds: a device that is called blocked is one that the allocator gives to no
// such request, and every other free one it does give.
func TestBlockedInRandomWorlds(t *testing.T) {
	t.Parallel()
	counts := map[string]int{}
	for seed := range uint64(40) {
		r := random{rand.New(rand.NewPCG(seed, 1))} //nolint:gosec // it is to be the same each time
		c := newComparison(t, fmt.Sprintf("seed %d", seed), r.world())
		for range rounds {
			c.giveRandom(r)
		}
		scheduler := NewScheduler(c.world)
		for _, n := range scheduler.nodes {
			devices, err := n.reachableDevices()
			require.NoError(t, err)
			for _, d := range devices {
				request := r.request(d)
				s := &searcher{allocator: &scheduler.allocator, node: n, request: &request, left: []device{d}}
				for _, by := range s.requireBlockedAsAllocated(t, c.name) {
					counts[strings.Fields(by.Name)[0]]++
				}
			}
		}
	}
	for _, by := range []string{"counter", "capacity"} {
		require.Greater(t, counts[by], 10, by)
	}
}

// requireBlockedAsAllocated holds whether the only device that is left is called blocked against what
// the allocator gives, and returns what blocks it.
func (s *searcher) requireBlockedAsAllocated(t *testing.T, name string) []Share {
	t.Helper()
	d := s.left[0]
	s.filterDevices(t.Context())
	if len(s.left) == 0 {
		return nil
	}
	dropped := s.dropBlocked()
	claim := &resourcev1.ResourceClaim{ObjectMeta: metav1.ObjectMeta{Name: "trial", UID: types.UID("trial")}}
	claim.Spec.Devices.Requests = []resourcev1.DeviceRequest{{Name: "r", Exactly: &s.request.ExactDeviceRequest}}
	results, err := s.allocateOn(t.Context(), s.node, []*resourcev1.ResourceClaim{claim})
	require.NoError(t, err)
	require.Equal(t, results == nil, len(dropped) == 1, "%s: %s/%s/%s: %v", name, d.driver, d.pool, d.Name, blockersOf(dropped))
	return blockersOf(dropped)
}

// request asks for a device alone, at times with some of its capacities.
func (r random) request(d device) alternative {
	request := alternative{"r", resourcev1.ExactDeviceRequest{
		DeviceClassName: "any", AllocationMode: resourcev1.DeviceAllocationModeExactCount, Count: 1,
		Selectors: []resourcev1.DeviceSelector{selecting(fmt.Sprintf(`device.driver == %q && device.attributes["test.example.com"].name == %q`, d.driver, d.pool+"/"+d.Name))},
	}}
	for name := range d.Capacity {
		if r.IntN(2) == 0 {
			if request.Capacity == nil {
				request.Capacity = &resourcev1.CapacityRequirements{Requests: map[resourcev1.QualifiedName]resource.Quantity{}}
			}
			request.Capacity.Requests[name] = *resource.NewQuantity(int64(r.IntN(40)), resource.DecimalSI)
		}
	}
	return request
}
