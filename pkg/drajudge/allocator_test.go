package drajudge

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/dynamic-resource-allocation/structured"
)

// TestUpstreamIsRight: in random small worlds the judge finds nothing wrong with what upstream's allocator does.
func TestUpstreamIsRight(t *testing.T) {
	t.Parallel()
	const worlds = 1000
	given := 0
	for seed := range uint64(worlds) {
		w := &randomWorld{rand.New(rand.NewPCG(seed, 0)), newStory()}
		w.update(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "default", Labels: map[string]string{resourcev1.DRAAdminNamespaceLabelKey: "true"}}})
		w.publish()
		observer := NewObserver(Options{})
		observed := 0
		for i := range 8 {
			claim := w.claim(i)
			w.create(claim, podWith(fmt.Sprintf("pod-%d", i), claim.Name))
			for ; observed < len(w.history); observed++ {
				require.Empty(t, observer.Observe(t.Context(), w.history[observed]), "seed %d", seed)
			}
			if !w.allocateUpstream(t, observer, claim) {
				continue
			}
			given += len(claim.Status.Allocation.Devices.Results)
			for ; observed < len(w.history); observed++ {
				require.Empty(t, observer.Observe(t.Context(), w.history[observed]), "seed %d, claim %d: %v", seed, i, claim.Status.Allocation)
			}
		}
	}
	require.Greater(t, given, 4*worlds, "too few devices are allocated for the test to say anything")
}

// randomWorld makes devices and claims of all kinds.
type randomWorld struct {
	*rand.Rand
	*story
}

func (w *randomWorld) chance(percent int) bool { return w.IntN(100) < percent }

func (w *randomWorld) amount(most int) resource.Quantity {
	return *resource.NewQuantity(int64(1+w.IntN(most)), resource.DecimalSI)
}

// publish makes pools of both nodes, and one that both reach or one of them.
func (w *randomWorld) publish() {
	class := gpuClass()
	class.Name, class.Spec.Selectors = "any", nil
	class.Spec.Config = []resourcev1.DeviceClassConfiguration{{DeviceConfiguration: opaque(`{"of": "class"}`)}}
	w.create(class)
	if w.chance(30) {
		w.create(&resourcev1.DeviceTaintRule{ObjectMeta: metav1.ObjectMeta{Name: "rule"}, Spec: resourcev1.DeviceTaintRuleSpec{
			DeviceSelector: &resourcev1.DeviceTaintSelector{Device: new(fmt.Sprintf("gpu-%d", w.IntN(4)))},
			Taint:          resourcev1.DeviceTaint{Key: "broken", Effect: resourcev1.DeviceTaintEffectNoSchedule},
		}})
	}
	for _, name := range []string{"node-1", "node-2", "network"} {
		for _, driver := range []string{driver, "nic.example.com"} {
			w.publishPool(driver, name)
		}
	}
}

func (w *randomWorld) publishPool(driver, name string) {
	slice := sliceOf()
	slice.Name = name + "-" + driver
	slice.Spec.Driver, slice.Spec.Pool.Name, slice.Spec.NodeName = driver, name, &name
	if name == "network" {
		slice.Spec.NodeName, slice.Spec.AllNodes = nil, new(true)
		if w.chance(50) {
			slice.Spec.AllNodes, slice.Spec.NodeSelector = nil, labelledNode("node-1")
		}
	}
	isPartitioned := w.chance(40)
	for i := range 1 + w.IntN(4) {
		device := w.device(i)
		if isPartitioned && w.chance(70) {
			device.ConsumesCounters = []resourcev1.DeviceCounterConsumption{{CounterSet: "card", Counters: map[string]resourcev1.Counter{"memory": {Value: w.amount(6)}}}}
		}
		slice.Spec.Devices = append(slice.Spec.Devices, device)
	}
	if w.chance(10) {
		slice.Spec.Pool.ResourceSliceCount++ // incomplete
	}
	if isPartitioned {
		slice.Spec.Pool.ResourceSliceCount++
		counters := slice.DeepCopy()
		counters.Name, counters.Spec.Devices = slice.Name+"-counters", nil
		counters.Spec.SharedCounters = []resourcev1.CounterSet{{Name: "card", Counters: map[string]resourcev1.Counter{"memory": {Value: resource.MustParse("8")}}}}
		w.create(counters)
	}
	w.create(slice)
}

func (w *randomWorld) device(index int) resourcev1.Device {
	device := gpu(index)
	if w.chance(30) {
		device = sharedGPU()
		device.Name = fmt.Sprintf("gpu-%d", index)
	}
	if w.chance(20) {
		device.Taints = []resourcev1.DeviceTaint{{Key: "broken", Value: "a", Effect: resourcev1.DeviceTaintEffectNoExecute}}
	}
	if w.chance(20) {
		device.BindsToNode = new(true)
	}
	if w.chance(20) {
		device.BindingConditions, device.BindingFailureConditions = []string{"Attached"}, []string{"Failed"}
	}
	return device
}

func (w *randomWorld) claim(index int) *resourcev1.ResourceClaim {
	claim := claimWith(fmt.Sprintf("claim-%d", index))
	for i := range 1 + w.IntN(2) {
		request := resourcev1.DeviceRequest{Name: fmt.Sprintf("r%d", i), Exactly: w.request()}
		if first := request.Exactly; first.AdminAccess == nil && w.chance(25) {
			second := w.request()
			request.Exactly = nil
			for j, r := range []*resourcev1.ExactDeviceRequest{first, second} {
				request.FirstAvailable = append(request.FirstAvailable, resourcev1.DeviceSubRequest{
					Name: fmt.Sprintf("s%d", j), DeviceClassName: r.DeviceClassName, Selectors: r.Selectors, AllocationMode: r.AllocationMode,
					Count: r.Count, Tolerations: r.Tolerations, Capacity: r.Capacity,
				})
			}
		}
		claim.Spec.Devices.Requests = append(claim.Spec.Devices.Requests, request)
	}
	if w.chance(30) {
		name := resourcev1.FullyQualifiedName([]string{driver + "/side", driver + "/index", "example.com/numaNodes"}[w.IntN(3)])
		constraint := resourcev1.DeviceConstraint{MatchAttribute: &name}
		if w.chance(50) {
			constraint = resourcev1.DeviceConstraint{DistinctAttribute: &name}
		}
		claim.Spec.Devices.Constraints = append(claim.Spec.Devices.Constraints, constraint)
	}
	if w.chance(30) {
		claim.Spec.Devices.Config = []resourcev1.DeviceClaimConfiguration{{Requests: []string{"r0"}, DeviceConfiguration: opaque(`{"of": "claim"}`)}}
	}
	return claim
}

func (w *randomWorld) request() *resourcev1.ExactDeviceRequest {
	r := &resourcev1.ExactDeviceRequest{DeviceClassName: []string{"gpu", "any"}[w.IntN(2)], AllocationMode: resourcev1.DeviceAllocationModeExactCount, Count: int64(1 + w.IntN(2))}
	if w.chance(15) {
		r.AllocationMode, r.Count = resourcev1.DeviceAllocationModeAll, 0
	}
	if w.chance(20) {
		r.Selectors = selectors(`device.driver == "gpu.example.com" && device.attributes["gpu.example.com"].index < 2`)
	}
	if w.chance(40) {
		r.Tolerations = []resourcev1.DeviceToleration{{Key: "broken", Operator: resourcev1.DeviceTolerationOpExists}}
	}
	if w.chance(10) {
		r.AdminAccess = new(true)
	}
	if w.chance(20) {
		r.Capacity = &resourcev1.CapacityRequirements{Requests: map[resourcev1.QualifiedName]resource.Quantity{"memory": w.amount(7)}}
	}
	return r
}

// allocateUpstream writes what upstream's allocator gives to a claim on one of the nodes, and reports whether it gives anything.
func (w *randomWorld) allocateUpstream(t *testing.T, observer *Observer, claim *resourcev1.ResourceClaim) bool {
	t.Helper()
	allocator, err := structured.NewAllocator(t.Context(), allocatorFeatures, observer.allocatedState(), classLister{observer.supply}, observer.taintedSlices(), observer.cel)
	require.NoError(t, err)
	node := observer.supply.nodes[fmt.Sprintf("node-%d", 1+w.IntN(2))]
	results, err := allocator.Allocate(t.Context(), node, []*resourcev1.ResourceClaim{claim})
	if err != nil || len(results) == 0 {
		return false // a request for all devices fails on an incomplete pool, and so on
	}
	claim.Status.Allocation = &results[0]
	for i := range results[0].Devices.Results {
		if result := &results[0].Devices.Results[i]; result.ShareID != nil {
			result.ShareID = new(types.UID(fmt.Sprintf("%s-%d", claim.Name, i)))
		}
	}
	w.update(claim)
	return true
}

func opaque(parameters string) resourcev1.DeviceConfiguration {
	config := resourcev1.DeviceConfiguration{Opaque: &resourcev1.OpaqueDeviceConfiguration{Driver: driver}}
	config.Opaque.Parameters.Raw = []byte(parameters)
	return config
}
