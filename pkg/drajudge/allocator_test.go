package drajudge

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/dynamic-resource-allocation/structured"
)

// TestUpstreamIsRight: in random small worlds the judge finds nothing wrong with what upstream's allocator does.
func TestUpstreamIsRight(t *testing.T) {
	t.Parallel()
	const worlds = 300
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
			allocation := w.allocateUpstream(t, observer, w.node(observer), claim)
			if allocation == nil {
				continue
			}
			claim.Status.Allocation = allocation
			w.update(claim)
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
		device.Attributes["example.com/id"] = resourcev1.DeviceAttribute{StringValue: new(driver + "/" + name + "/" + device.Name)}
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

func (w *randomWorld) node(observer *Observer) *corev1.Node {
	return observer.supply.nodes[fmt.Sprintf("node-%d", 1+w.IntN(2))]
}

// allocateUpstream returns what upstream's allocator gives to a claim on a node, or nil.
func (w *randomWorld) allocateUpstream(t *testing.T, observer *Observer, node *corev1.Node, claim *resourcev1.ResourceClaim) *resourcev1.AllocationResult {
	t.Helper()
	allocator, err := structured.NewAllocator(t.Context(), allocatorFeatures, observer.holders.allocatedState(), classLister{observer.supply}, observer.supply.taintedSlices(), observer.cel)
	require.NoError(t, err)
	results, err := allocator.Allocate(t.Context(), node, []*resourcev1.ResourceClaim{claim})
	if err != nil || len(results) == 0 {
		return nil // a request for all devices fails on an incomplete pool, and so on
	}
	for i := range results[0].Devices.Results {
		if result := &results[0].Devices.Results[i]; result.ShareID != nil {
			result.ShareID = new(types.UID(fmt.Sprintf("%s-%d", claim.Name, i)))
		}
	}
	return &results[0]
}

// TestWrongDevices: the judge and upstream's allocator agree on allocations in which devices were exchanged at random.
func TestWrongDevices(t *testing.T) {
	t.Parallel()
	const worlds = 200
	right, wrong := 0, 0
	for seed := range uint64(worlds) {
		w := &randomWorld{rand.New(rand.NewPCG(seed, 1)), newStory()}
		w.publish()
		observer := NewObserver(Options{})
		for _, event := range w.history {
			require.Empty(t, observer.Observe(t.Context(), event))
		}
		for i := range 8 {
			claim := w.claim(i)
			observe := func() []Violation {
				return observer.Observe(t.Context(), Event{Type: watch.Modified, Object: claim.DeepCopy()})
			}
			node := w.node(observer)
			observe()
			allocation := w.allocateUpstream(t, observer, node, claim)
			if allocation == nil {
				continue
			}
			changed := w.exchangeDevices(observer, claim, allocation)
			changed.NodeSelector = onlyNode(node.Name)
			isRight := answersOf(w.allocateUpstream(t, observer, node, onlyDevices(claim, changed))) == answersOf(changed)
			claim.Status.Allocation = changed
			violations := observe()
			if !isRight && len(violations) == 0 && chargesAdmin(observer, changed) {
				continue
			}
			require.Equal(t, isRight, len(violations) == 0, "seed %d, claim %d: %v\n%v", seed, i, violations, answersOf(changed))
			if isRight {
				right++
				continue
			}
			wrong++
			claim.Status.Allocation = nil
			observe()
			claim.Status.Allocation = allocation
			require.Empty(t, observe())
		}
	}
	t.Logf("%d right, %d wrong", right, wrong)
	require.Greater(t, right, worlds/2)
	require.Greater(t, wrong, worlds)
}

// exchangeDevices returns an allocation in which one device was replaced by another, or two have changed places.
func (w *randomWorld) exchangeDevices(observer *Observer, claim *resourcev1.ResourceClaim, allocation *resourcev1.AllocationResult) *resourcev1.AllocationResult {
	changed := allocation.DeepCopy()
	results := changed.Devices.Results
	first, second := &results[w.IntN(len(results))], &results[w.IntN(len(results))]
	if w.chance(30) {
		first.Request, second.Request = second.Request, first.Request
	} else {
		name := []string{"node-1", "node-2", "network"}[w.IntN(3)]
		devices := observer.supply.pool(poolID{[]string{driver, "nic.example.com"}[w.IntN(2)], name}).devices
		device := devices[w.IntN(len(devices))].id
		first.Driver, first.Pool, first.Device = device.driver, device.pool, device.name
	}
	for i := range results {
		w.describe(observer, claim, &results[i], types.UID(fmt.Sprintf("%s-%d", claim.Name, i)))
	}
	return changed
}

// describe writes into a result what depends on its device and its request.
func (w *randomWorld) describe(observer *Observer, claim *resourcev1.ResourceClaim, result *allocated, share types.UID) {
	requests := requestsOf(claim)
	r := &requests[slices.IndexFunc(requests, func(r request) bool { return r.name == result.Request })]
	device := observer.supply.pool(deviceOf(result).poolID()).byName[result.Device].device
	result.Tolerations, result.AdminAccess = r.Tolerations, r.AdminAccess
	result.BindingConditions, result.BindingFailureConditions = device.BindingConditions, device.BindingFailureConditions
	result.ShareID, result.ConsumedCapacity = nil, nil
	if isTrue(device.AllowMultipleAllocations) {
		result.ShareID = &share
		result.ConsumedCapacity, _ = consumptionOf(r, device)
	}
}

// chargesAdmin reports whether admin access is to a device with counters or shared capacity. Upstream's allocator then wants
// these to be left, though admin access "ignores all ordinary claims", and its allocation consumes nothing later.
func chargesAdmin(observer *Observer, allocation *resourcev1.AllocationResult) bool {
	return slices.ContainsFunc(allocation.Devices.Results, func(result allocated) bool {
		device := observer.supply.pool(deviceOf(&result).poolID()).byName[result.Device].device
		return isTrue(result.AdminAccess) && (len(device.ConsumesCounters) > 0 || isTrue(device.AllowMultipleAllocations))
	})
}

// onlyDevices returns a claim that asks for the devices of an allocation: upstream gives these or none.
func onlyDevices(claim *resourcev1.ResourceClaim, allocation *resourcev1.AllocationResult) *resourcev1.ResourceClaim {
	only := claim.DeepCopy()
	chosen := map[string][]string{}
	for i := range allocation.Devices.Results {
		result := &allocation.Devices.Results[i]
		chosen[result.Request] = append(chosen[result.Request], strconv.Quote(deviceOf(result).String()))
	}
	restrict := func(mode resourcev1.DeviceAllocationMode, selectors []resourcev1.DeviceSelector, name string) []resourcev1.DeviceSelector {
		if mode == resourcev1.DeviceAllocationModeAll {
			return selectors // it asks for certain devices already
		}
		expression := fmt.Sprintf(`device.attributes["example.com"].id in [%s]`, strings.Join(chosen[name], ", "))
		return append(slices.Clone(selectors), resourcev1.DeviceSelector{CEL: &resourcev1.CELDeviceSelector{Expression: expression}})
	}
	for i := range only.Spec.Devices.Requests {
		spec := &only.Spec.Devices.Requests[i]
		if spec.Exactly != nil {
			spec.Exactly.Selectors = restrict(spec.Exactly.AllocationMode, spec.Exactly.Selectors, spec.Name)
		}
		spec.FirstAvailable = slices.DeleteFunc(spec.FirstAvailable, func(sub resourcev1.DeviceSubRequest) bool { return chosen[spec.Name+"/"+sub.Name] == nil })
		for j := range spec.FirstAvailable {
			sub := &spec.FirstAvailable[j]
			sub.Selectors = restrict(sub.AllocationMode, sub.Selectors, spec.Name+"/"+sub.Name)
		}
	}
	return only
}

// answersOf lists which request has which device.
func answersOf(allocation *resourcev1.AllocationResult) string {
	if allocation == nil {
		return ""
	}
	var answers []string
	for i := range allocation.Devices.Results {
		answers = append(answers, allocation.Devices.Results[i].Request+" "+deviceOf(&allocation.Devices.Results[i]).String())
	}
	slices.Sort(answers)
	return strings.Join(answers, ", ")
}

func opaque(parameters string) resourcev1.DeviceConfiguration {
	config := resourcev1.DeviceConfiguration{Opaque: &resourcev1.OpaqueDeviceConfiguration{Driver: driver}}
	config.Opaque.Parameters.Raw = []byte(parameters)
	return config
}
