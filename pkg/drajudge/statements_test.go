package drajudge

import (
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
)

type (
	exact     = resourcev1.ExactDeviceRequest
	allocated = resourcev1.DeviceRequestAllocationResult
)

// example writes a history that violates one statement, or the same history without the mistake.
type example struct {
	statement, name string
	write           func(s *story, isViolated bool)
}

// TestStatements: each statement has histories that keep it and histories that violate it, and it alone.
func TestStatements(t *testing.T) {
	t.Parallel()
	examples := slices.Concat(claimExamples(), allocationExamples(), capacityExamples(), podExamples(), restExamples(), extendedExamples(), quotaExamples())
	covered := map[string]bool{}
	for _, e := range examples {
		covered[e.statement] = true
		for _, isViolated := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s/%s/violated=%t", e.statement, e.name, isViolated), func(t *testing.T) {
				t.Parallel()
				e.judge(t, isViolated)
			})
		}
	}
	for _, statement := range Statements() {
		require.True(t, covered[statement.ID], "no history violates %s", statement.ID)
	}
}

// judge judges the history, and its end as a state of rest.
func (e *example) judge(t *testing.T, isViolated bool) {
	t.Helper()
	s := newStory()
	e.write(s, isViolated)
	observer := NewObserver(Options{})
	var violations []Violation
	for _, event := range s.history {
		violations = append(violations, observer.Observe(t.Context(), event)...)
	}
	violations = append(violations, observer.AtRest(t.Context())...)
	require.Equal(t, isViolated, len(violations) > 0, "%v", violations)
	for _, violation := range violations {
		require.Equal(t, e.statement, violation.Statement.ID, violation.Evidence)
		require.NotEmpty(t, violation.ResourceVersion)
		require.NotEmpty(t, violation.Objects)
		require.NotEmpty(t, violation.Evidence)
	}
}

func claimExamples() []example {
	return []example{
		{deviceOnce, "two claims", func(s *story, isViolated bool) {
			s.create(sliceOf(gpus(2)...))
			s.run(claimWith("a", requestFor("r", 1)), given("r", "gpu-0"))
			s.run(claimWith("b", requestFor("r", 1)), given("r", pick(isViolated, "gpu-0", "gpu-1")))
		}},
		{deviceOnce, "two requests of a claim", func(s *story, isViolated bool) {
			s.create(sliceOf(gpus(2)...))
			s.run(claimWith("a", requestFor("r", 1), requestFor("q", 1)), given("r", "gpu-0"), given("q", pick(isViolated, "gpu-0", "gpu-1")))
		}},
		{deviceOnce, "admin access beside another request of the claim", func(s *story, isViolated bool) {
			s.update(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "default", Labels: map[string]string{resourcev1.DRAAdminNamespaceLabelKey: "true"}}})
			s.create(sliceOf(gpus(2)...))
			asAdmin := requestFor("q", 1, func(r *exact) { r.AdminAccess = new(true) })
			s.run(claimWith("a", requestFor("r", 1), asAdmin), given("r", "gpu-0"), given("q", pick(isViolated, "gpu-0", "gpu-1"), func(r *allocated) { r.AdminAccess = new(true) }))
		}},
		{deviceOnce, "the same share twice", func(s *story, isViolated bool) {
			s.create(sliceOf(sharedGPU()))
			s.run(claimWith("a", requestFor("r", 1)), share("r", "gpu-0", "1", "2"))
			s.run(claimWith("b", requestFor("r", 1)), share("r", "gpu-0", pick(isViolated, "1", "2"), "2"))
		}},
		{deviceOnce, "released or not", func(s *story, isViolated bool) {
			s.create(sliceOf(gpus(1)...))
			first := claimWith("a", requestFor("r", 1))
			pod := s.run(first, given("r", "gpu-0"))
			if !isViolated {
				pod.Status.Phase = corev1.PodSucceeded
				s.update(pod)
				first.Status = resourcev1.ResourceClaimStatus{}
				s.update(first)
			}
			s.run(claimWith("b", requestFor("r", 1)), given("r", "gpu-0"))
		}},
		{deviceOnce, "a claim known from a list", func(s *story, isViolated bool) {
			s.create(sliceOf(gpus(2)...))
			listed := claimWith("a", requestFor("r", 1))
			listed.Status.Allocation = &resourcev1.AllocationResult{NodeSelector: onlyNode("node-1")}
			listed.Status.Allocation.Devices.Results = []allocated{given("r", "gpu-0"), given("unknown", "gone")}
			s.create(listed)
			s.run(claimWith("b", requestFor("r", 1)), given("r", pick(isViolated, "gpu-0", "gpu-1")))
		}},
		{allocationUnchanged, "other device", func(s *story, isViolated bool) {
			s.create(sliceOf(gpus(2)...))
			claim := claimWith("a", requestFor("r", 1))
			s.run(claim, given("r", "gpu-0"))
			s.allocate(claim, given("r", pick(isViolated, "gpu-1", "gpu-0")))
		}},
		{reservationLimit, "limit", func(s *story, isViolated bool) {
			s.create(sliceOf(gpus(1)...))
			claim := claimWith("a", requestFor("r", 1))
			s.create(claim)
			for i := range pick(isViolated, 257, 256) {
				pod := podWith(fmt.Sprintf("pod-%d", i), "a")
				pod.Spec.SchedulingGates = []corev1.PodSchedulingGate{{Name: "wait"}}
				s.create(pod)
				reserve(claim, pod)
			}
			s.allocate(claim, given("r", "gpu-0"))
		}},
		{reservedWhileUsed, "deallocated", func(s *story, isViolated bool) {
			s.create(sliceOf(gpus(1)...))
			claim := claimWith("a", requestFor("r", 1))
			pod := s.run(claim, given("r", "gpu-0"))
			if !isViolated {
				s.remove(pod)
			}
			claim.Status = resourcev1.ResourceClaimStatus{}
			s.update(claim)
		}},
		{reservedWhileUsed, "reserved without an allocation", func(s *story, isViolated bool) {
			claim, pod := claimWith("a", requestFor("r", 1)), podWith("pod", "a")
			s.create(claim, pod)
			if isViolated {
				reserve(claim, pod)
			}
			s.update(claim)
		}},
		{reservedWhileUsed, "claim deleted", func(s *story, isViolated bool) {
			s.create(sliceOf(gpus(1)...))
			claim := claimWith("a", requestFor("r", 1))
			pod := s.run(claim, given("r", "gpu-0"))
			pod.Status.Phase = pick(isViolated, corev1.PodRunning, corev1.PodFailed)
			s.update(pod)
			s.remove(claim)
		}},
		{claimReleased, "Pod gone", func(s *story, isViolated bool) {
			s.create(sliceOf(gpus(1)...))
			claim, pod := claimWith("a", requestFor("r", 1)), podWith("pod", "a")
			claim.Annotations = map[string]string{resourcev1.PodResourceClaimAnnotation: "a"}
			claim.OwnerReferences = []metav1.OwnerReference{{Kind: "Pod", Name: pod.Name, UID: pod.UID, Controller: new(true)}}
			s.create(claim, pod)
			s.allocate(claim, given("r", "gpu-0"))
			s.remove(pod)
			if !isViolated {
				s.remove(claim)
			}
		}},
		{reservationReleased, "Pod gone", func(s *story, isViolated bool) {
			s.create(sliceOf(gpus(1)...))
			claim := claimWith("a", requestFor("r", 1))
			pod := s.run(claim, given("r", "gpu-0"))
			s.remove(pod)
			if !isViolated {
				claim.Status = resourcev1.ResourceClaimStatus{}
				s.update(claim)
			}
		}},
	}
}

// allocates is an example of one claim that gets devices of one slice.
func allocates(statement, name string, write func(slice *resourcev1.ResourceSlice, claim *resourcev1.ResourceClaim, isViolated bool) []allocated) example {
	return example{statement, name, func(s *story, isViolated bool) {
		slice, claim := sliceOf(gpus(4)...), claimWith("a", requestFor("r", 1))
		results := write(slice, claim, isViolated)
		s.create(slice)
		s.run(claim, results...)
	}}
}

func allocationExamples() []example {
	type (
		slice = resourcev1.ResourceSlice
		claim = resourcev1.ResourceClaim
	)
	return []example{
		allocates(requestAnswered, "count", func(_ *slice, c *claim, isViolated bool) []allocated {
			c.Spec.Devices.Requests[0].Exactly.Count = pick(isViolated, int64(3), 2)
			return []allocated{given("r", "gpu-0"), given("r", "gpu-1")}
		}),
		allocates(requestAnswered, "unknown request", func(_ *slice, _ *claim, isViolated bool) []allocated {
			results := []allocated{given("r", "gpu-0")}
			return pick(isViolated, append(results, given("other", "gpu-1")), results)
		}),
		allocates(requestAnswered, "no device", func(_ *slice, c *claim, isViolated bool) []allocated {
			c.Spec.Devices.Requests = append(c.Spec.Devices.Requests, requestFor("q", 1))
			results := []allocated{given("r", "gpu-0"), given("q", "gpu-1")}
			return results[:pick(isViolated, 1, 2)]
		}),
		allocates(firstAvailableOne, "both", func(_ *slice, c *claim, isViolated bool) []allocated {
			c.Spec.Devices.Requests = []resourcev1.DeviceRequest{{Name: "r", FirstAvailable: []resourcev1.DeviceSubRequest{
				{Name: "two", DeviceClassName: "gpu", Count: 2}, {Name: "one", DeviceClassName: "gpu", Count: 1},
			}}}
			results := []allocated{given("r/two", "gpu-0"), given("r/two", "gpu-1"), given("r/one", "gpu-2")}
			return results[:pick(isViolated, 3, 2)]
		}),
		allocates(allDevices, "one is missing", func(_ *slice, c *claim, isViolated bool) []allocated {
			c.Spec.Devices.Requests[0].Exactly.AllocationMode = resourcev1.DeviceAllocationModeAll
			c.Spec.Devices.Requests[0].Exactly.Selectors = selectors(`device.attributes["gpu.example.com"].index < 2`)
			return []allocated{given("r", "gpu-0"), given("r", "gpu-1")}[:pick(isViolated, 1, 2)]
		}),
		{allDevices, "pool of another driver is incomplete", func(s *story, isViolated bool) {
			other := sliceOf(gpus(1)...)
			other.Name, other.Spec.Driver, other.Spec.Pool.ResourceSliceCount = "other", "nic.example.com", pick(isViolated, int64(2), 1)
			s.create(other, sliceOf(gpus(1)...))
			s.run(claimWith("a", requestFor("r", 1, func(r *exact) { r.AllocationMode = resourcev1.DeviceAllocationModeAll })), given("r", "gpu-0"))
		}},
		allocates(poolNewest, "no such device", func(_ *slice, _ *claim, isViolated bool) []allocated {
			return []allocated{given("r", pick(isViolated, "gpu-9", "gpu-0"))}
		}),
		{poolNewest, "older generation", func(s *story, isViolated bool) {
			newer := sliceOf(gpu(1))
			newer.Name, newer.Spec.Pool.Generation = "newer", 2
			s.create(sliceOf(gpu(0)), newer)
			s.run(claimWith("a", requestFor("r", 1)), given("r", pick(isViolated, "gpu-0", "gpu-1")))
		}},
		allocates(poolComplete, "slices", func(s *slice, _ *claim, isViolated bool) []allocated {
			s.Spec.Pool.ResourceSliceCount = pick(isViolated, int64(2), 1)
			return []allocated{given("r", "gpu-0")}
		}),
		allocates(poolComplete, "device names", func(s *slice, _ *claim, isViolated bool) []allocated {
			s.Spec.Devices[3].Name = pick(isViolated, "gpu-2", "gpu-3")
			return []allocated{given("r", "gpu-0")}
		}),
		{classSelectors, "other driver", func(s *story, isViolated bool) {
			slice := sliceOf(gpus(1)...)
			slice.Spec.Driver = pick(isViolated, "nic.example.com", driver)
			s.create(slice)
			s.run(claimWith("a", requestFor("r", 1)), given("r", "gpu-0", func(r *allocated) { r.Driver = slice.Spec.Driver }))
		}},
		allocates(classSelectors, "no class", func(_ *slice, c *claim, isViolated bool) []allocated {
			c.Spec.Devices.Requests[0].Exactly.DeviceClassName = pick(isViolated, "missing", "gpu")
			return []allocated{given("r", "gpu-0")}
		}),
		allocates(requestSelectors, "false", func(_ *slice, c *claim, isViolated bool) []allocated {
			c.Spec.Devices.Requests[0].Exactly.Selectors = selectors(`device.attributes["gpu.example.com"].index == 0`)
			return []allocated{given("r", pick(isViolated, "gpu-1", "gpu-0"))}
		}),
		allocates(requestSelectors, "fails", func(_ *slice, c *claim, isViolated bool) []allocated {
			c.Spec.Devices.Requests[0].Exactly.Selectors = selectors(fmt.Sprintf(`device.attributes["gpu.example.com"].%s == 0`, pick(isViolated, "missing", "index")))
			return []allocated{given("r", "gpu-0")}
		}),
		allocates(matchAttribute, "values", func(_ *slice, c *claim, isViolated bool) []allocated {
			c.Spec.Devices.Requests[0].Exactly.Count = 2
			c.Spec.Devices.Constraints = []resourcev1.DeviceConstraint{{MatchAttribute: new(resourcev1.FullyQualifiedName(driver + "/side"))}}
			return []allocated{given("r", "gpu-0"), given("r", pick(isViolated, "gpu-1", "gpu-2"))}
		}),
		allocates(matchAttribute, "no attribute", func(_ *slice, c *claim, isViolated bool) []allocated {
			name := resourcev1.FullyQualifiedName(driver + "/" + pick(isViolated, "missing", "index"))
			c.Spec.Devices.Constraints = []resourcev1.DeviceConstraint{{MatchAttribute: &name}}
			return []allocated{given("r", "gpu-0")}
		}),
		allocates(matchAttribute, "lists", func(_ *slice, c *claim, isViolated bool) []allocated {
			c.Spec.Devices.Requests[0].Exactly.Count = 2
			c.Spec.Devices.Constraints = []resourcev1.DeviceConstraint{{MatchAttribute: new(resourcev1.FullyQualifiedName("example.com/numaNodes"))}}
			return []allocated{given("r", "gpu-0"), given("r", pick(isViolated, "gpu-2", "gpu-1"))}
		}),
		{matchAttribute, "across drivers", func(s *story, isViolated bool) {
			nic := sliceOf(gpus(2)...)
			nic.Name, nic.Spec.Driver = "nic", "nic.example.com"
			class := gpuClass()
			class.Name, class.Spec.Selectors = "nic", nil
			s.create(sliceOf(gpus(2)...), nic, class)
			claim := claimWith("a", requestFor("r", 1), requestFor("q", 1, func(r *exact) { r.DeviceClassName = "nic" }), requestFor("free", 1))
			claim.Spec.Devices.Constraints = []resourcev1.DeviceConstraint{{Requests: []string{"r", "q"}, MatchAttribute: new(resourcev1.FullyQualifiedName(driver + "/side"))}}
			s.run(claim, given("r", "gpu-0"), given("q", pick(isViolated, "gpu-1", "gpu-0"), func(r *allocated) { r.Driver = "nic.example.com" }), given("free", "gpu-1"))
		}},
		allocates(distinctAttribute, "values", func(_ *slice, c *claim, isViolated bool) []allocated {
			c.Spec.Devices.Requests[0].Exactly.Count = 2
			c.Spec.Devices.Constraints = []resourcev1.DeviceConstraint{{DistinctAttribute: new(resourcev1.FullyQualifiedName(driver + "/side"))}}
			return []allocated{given("r", "gpu-0"), given("r", pick(isViolated, "gpu-2", "gpu-1"))}
		}),
		allocates(distinctAttribute, "derived", func(_ *slice, c *claim, isViolated bool) []allocated {
			c.Spec.Devices.Requests[0].Exactly.Count = 2
			c.Spec.Devices.Requests[0].Exactly.DerivedAttributes = []resourcev1.DeviceDerivedAttribute{{Name: "derived/half", Expression: `device.attributes["gpu.example.com"].index < 2`}}
			c.Spec.Devices.Constraints = []resourcev1.DeviceConstraint{{DistinctAttribute: new(resourcev1.FullyQualifiedName("derived/half"))}}
			return []allocated{given("r", "gpu-0"), given("r", pick(isViolated, "gpu-1", "gpu-2"))}
		}),
		allocates(taintsTolerated, "taint of the slice", func(s *slice, c *claim, isViolated bool) []allocated {
			s.Spec.Devices[0].Taints = []resourcev1.DeviceTaint{{Key: "broken", Effect: resourcev1.DeviceTaintEffectNoSchedule}}
			tolerations := []resourcev1.DeviceToleration{{Key: pick(isViolated, "other", "broken"), Operator: resourcev1.DeviceTolerationOpExists}}
			c.Spec.Devices.Requests[0].Exactly.Tolerations = tolerations
			return []allocated{given("r", "gpu-0", func(r *allocated) { r.Tolerations = tolerations })}
		}),
		{taintsTolerated, "taint of a rule", func(s *story, isViolated bool) {
			s.create(sliceOf(gpus(2)...), &resourcev1.DeviceTaintRule{ObjectMeta: metav1.ObjectMeta{Name: "rule"}, Spec: resourcev1.DeviceTaintRuleSpec{
				DeviceSelector: &resourcev1.DeviceTaintSelector{Driver: new(driver), Device: new("gpu-0")},
				Taint:          resourcev1.DeviceTaint{Key: "broken", Effect: resourcev1.DeviceTaintEffectNoExecute},
			}})
			s.run(claimWith("a", requestFor("r", 1)), given("r", pick(isViolated, "gpu-0", "gpu-1")))
		}},
		{taintsTolerated, "before or after the allocation", func(s *story, isViolated bool) {
			slice, tainted := sliceOf(gpus(1)...), sliceOf(gpus(1)...)
			tainted.Spec.Devices[0].Taints = []resourcev1.DeviceTaint{{Key: "broken", Effect: resourcev1.DeviceTaintEffectNoSchedule}}
			s.create(pick(isViolated, tainted, slice))
			s.run(claimWith("a", requestFor("r", 1)), given("r", "gpu-0"))
			s.update(tainted)
		}},
		allocates(tolerationsCopied, "missing", func(_ *slice, c *claim, isViolated bool) []allocated {
			tolerations := []resourcev1.DeviceToleration{{Key: "broken", Operator: resourcev1.DeviceTolerationOpExists}}
			c.Spec.Devices.Requests[0].Exactly.Tolerations = tolerations
			return []allocated{given("r", "gpu-0", func(r *allocated) { r.Tolerations = pick(isViolated, nil, tolerations) })}
		}),
		{adminNamespace, "label", func(s *story, isViolated bool) {
			namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "default", Labels: map[string]string{resourcev1.DRAAdminNamespaceLabelKey: pick(isViolated, "false", "true")}}}
			s.update(namespace)
			s.create(sliceOf(gpus(1)...))
			s.run(claimWith("a", requestFor("r", 1)), given("r", "gpu-0"))
			s.run(claimWith("b", requestFor("r", 1, func(r *exact) { r.AdminAccess = new(true) })), given("r", "gpu-0", func(r *allocated) { r.AdminAccess = new(true) }))
		}},
		allocates(adminRequested, "not asked for", func(_ *slice, _ *claim, isViolated bool) []allocated {
			return []allocated{given("r", "gpu-0", func(r *allocated) { r.AdminAccess = pick(isViolated, new(true), nil) })}
		}),
		allocates(conditionsCopied, "missing", func(s *slice, _ *claim, isViolated bool) []allocated {
			s.Spec.Devices[0].BindingConditions = pick(isViolated, []string{"Attached"}, nil)
			return []allocated{given("r", "gpu-0")}
		}),
		{configCopied, "of the claim", func(s *story, isViolated bool) {
			entry := func(text string) resourcev1.DeviceConfiguration {
				return resourcev1.DeviceConfiguration{Opaque: &resourcev1.OpaqueDeviceConfiguration{Driver: driver, Parameters: runtime.RawExtension{Raw: []byte(text)}}}
			}
			class := gpuClass()
			class.Spec.Config = []resourcev1.DeviceClassConfiguration{{DeviceConfiguration: entry(`{"a": 1, "b": 2}`)}}
			s.update(class)
			s.create(sliceOf(gpus(2)...))
			claim := claimWith("a", requestFor("r", 1), requestFor("q", 1))
			claim.Spec.Devices.Config = []resourcev1.DeviceClaimConfiguration{{Requests: []string{"q"}, DeviceConfiguration: entry(`{"c": 3}`)}}
			s.create(claim)
			claim.Status.Allocation = &resourcev1.AllocationResult{NodeSelector: onlyNode("node-1")}
			claim.Status.Allocation.Devices = resourcev1.DeviceAllocationResult{
				Results: []allocated{given("r", "gpu-0"), given("q", "gpu-1")},
				Config: []resourcev1.DeviceAllocationConfiguration{
					{Source: resourcev1.AllocationConfigSourceClass, DeviceConfiguration: entry(`{"b":2,"a":1}`)},
					{Source: resourcev1.AllocationConfigSourceClaim, Requests: pick(isViolated, nil, []string{"q"}), DeviceConfiguration: entry(`{"c":3}`)},
				},
			}
			s.update(claim)
		}},
		{nodeSelectorCovers, "node-local device", func(s *story, isViolated bool) {
			s.create(sliceOf(gpus(1)...))
			claim := claimWith("a", requestFor("r", 1))
			s.create(claim)
			claim.Status.Allocation = &resourcev1.AllocationResult{NodeSelector: pick(isViolated, nil, onlyNode("node-1"))}
			claim.Status.Allocation.Devices.Results = []allocated{given("r", "gpu-0")}
			s.update(claim)
		}},
		{nodeSelectorCovers, "network-attached device", func(s *story, isViolated bool) {
			slice := sliceOf(gpus(1)...)
			slice.Spec.NodeName, slice.Spec.NodeSelector = nil, labelledNode("node-1")
			s.create(slice)
			claim := claimWith("a", requestFor("r", 1))
			s.create(claim)
			claim.Status.Allocation = &resourcev1.AllocationResult{NodeSelector: pick(isViolated, labelledNode("node-2"), labelledNode("node-1"))}
			claim.Status.Allocation.Devices.Results = []allocated{given("r", "gpu-0")}
			s.update(claim)
		}},
		{nodeSelectorCovers, "device by device", func(s *story, isViolated bool) {
			slice := sliceOf(gpus(1)...)
			slice.Spec.NodeName, slice.Spec.PerDeviceNodeSelection = nil, new(true)
			slice.Spec.Devices[0].NodeName = pick(isViolated, new("node-2"), new("node-1"))
			s.create(slice)
			s.run(claimWith("a", requestFor("r", 1)), given("r", "gpu-0"))
		}},
	}
}

func capacityExamples() []example {
	return []example{
		{shareIDs, "none", func(s *story, isViolated bool) {
			s.create(sliceOf(sharedGPU()))
			s.run(claimWith("a", requestFor("r", 1)), pick(isViolated, given("r", "gpu-0", func(r *allocated) { r.ConsumedCapacity = share("r", "gpu-0", "1", "2").ConsumedCapacity }), share("r", "gpu-0", "1", "2")))
		}},
		{shareIDs, "of a device that is for one", func(s *story, isViolated bool) {
			s.create(sliceOf(gpus(1)...))
			s.run(claimWith("a", requestFor("r", 1)), given("r", "gpu-0", func(r *allocated) { r.ShareID = pick(isViolated, new(types.UID("1")), nil) }))
		}},
		{capacityOffered, "beyond the policy", func(s *story, isViolated bool) {
			s.create(sliceOf(sharedGPU()))
			s.run(claimWith("a", requestFor("r", 1, memory(pick(isViolated, "7", "5")))), share("r", "gpu-0", "1", pick(isViolated, "8", "6")))
		}},
		{capacityOffered, "of a device that is for one", func(s *story, isViolated bool) {
			device := gpu(0)
			device.Capacity = map[resourcev1.QualifiedName]resourcev1.DeviceCapacity{"memory": {Value: resource.MustParse("8")}}
			s.create(sliceOf(device))
			s.run(claimWith("a", requestFor("r", 1, memory(pick(isViolated, "9", "8")))), given("r", "gpu-0"))
		}},
		{capacityConsumed, "not rounded up", func(s *story, isViolated bool) {
			s.create(sliceOf(sharedGPU()))
			s.run(claimWith("a", requestFor("r", 1, memory("3"))), share("r", "gpu-0", "1", pick(isViolated, "3", "4")))
		}},
		{capacityConsumed, "not the default", func(s *story, isViolated bool) {
			s.create(sliceOf(sharedGPU()))
			s.run(claimWith("a", requestFor("r", 1)), share("r", "gpu-0", "1", pick(isViolated, "8", "2")))
		}},
		{capacityTotal, "three shares", func(s *story, isViolated bool) {
			s.create(sliceOf(sharedGPU()))
			for i, amount := range []string{"4", "2", pick(isViolated, "4", "2")} {
				s.run(claimWith(fmt.Sprint("claim", i), requestFor("r", 1, memory(amount))), share("r", "gpu-0", fmt.Sprint(i), amount))
			}
		}},
		{countersTotal, "partitions", func(s *story, isViolated bool) {
			counters, partitions := sliceOf(), sliceOf(gpus(3)...)
			counters.Name, partitions.Name = "counters", "partitions"
			counters.Spec.Pool.ResourceSliceCount, partitions.Spec.Pool.ResourceSliceCount = 2, 2
			counters.Spec.SharedCounters = []resourcev1.CounterSet{{Name: "card", Counters: map[string]resourcev1.Counter{"memory": {Value: resource.MustParse("8")}}}}
			for i, amount := range []string{"4", "4", "6"} {
				partitions.Spec.Devices[i].ConsumesCounters = []resourcev1.DeviceCounterConsumption{{CounterSet: "card", Counters: map[string]resourcev1.Counter{"memory": {Value: resource.MustParse(amount)}}}}
			}
			s.create(counters, partitions)
			s.run(claimWith("a", requestFor("r", 1)), given("r", "gpu-0"))
			s.run(claimWith("b", requestFor("r", 1)), given("r", pick(isViolated, "gpu-2", "gpu-1")))
		}},
	}
}

func podExamples() []example {
	return []example{
		{boundWithClaims, "not allocated", func(s *story, isViolated bool) {
			s.create(sliceOf(gpus(1)...))
			claim, pod := claimWith("a", requestFor("r", 1)), podWith("pod", "a")
			s.create(claim, pod)
			if isViolated {
				s.bind(pod, "node-1")
				return
			}
			reserve(claim, pod)
			s.allocate(claim, given("r", "gpu-0"))
			s.bind(pod, "node-1")
		}},
		{boundWithClaims, "not reserved", func(s *story, isViolated bool) {
			s.create(sliceOf(gpus(1)...))
			claim, pod := claimWith("a", requestFor("r", 1)), podWith("pod", "a")
			s.create(claim, pod)
			reserve(claim, pick(isViolated, podWith("pod"+"-2"), pod))
			other := podWith("pod-2")
			other.Spec.NodeName = "node-1"
			s.create(other)
			s.allocate(claim, given("r", "gpu-0"))
			s.bind(pod, "node-1")
		}},
		{boundWithClaims, "ended while it was bound", func(s *story, isViolated bool) {
			s.create(sliceOf(gpus(1)...))
			claim, pod := claimWith("a", requestFor("r", 1)), podWith("pod", "a")
			s.create(claim, pod)
			if !isViolated {
				pod.Status.Phase = corev1.PodSucceeded
				s.update(pod)
			}
			s.bind(pod, "node-1")
		}},
		{boundWithClaims, "claim of a template", func(s *story, isViolated bool) {
			s.create(sliceOf(gpus(1)...))
			claim, pod := claimWith("generated", requestFor("r", 1)), podWith("pod")
			pod.Spec.ResourceClaims = []corev1.PodResourceClaim{{Name: "a", ResourceClaimTemplateName: new("template")}}
			s.create(claim, pod)
			reserve(claim, pod)
			s.allocate(claim, given("r", "gpu-0"))
			if !isViolated {
				pod.Status.ResourceClaimStatuses = []corev1.PodResourceClaimStatus{{Name: "a", ResourceClaimName: new("generated")}}
			}
			s.bind(pod, "node-1")
		}},
		{boundToDevices, "other node", func(s *story, isViolated bool) {
			s.create(sliceOf(gpus(1)...))
			claim, pod := claimWith("a", requestFor("r", 1)), podWith("pod", "a")
			s.create(claim, pod)
			reserve(claim, pod)
			s.allocate(claim, given("r", "gpu-0"))
			s.bind(pod, pick(isViolated, "node-2", "node-1"))
		}},
		{boundToDevices, "a node that was not recorded", func(s *story, isViolated bool) {
			slice := sliceOf(gpus(1)...)
			slice.Spec.NodeName = new("node-3")
			s.create(slice)
			claim, pod := claimWith("a", requestFor("r", 1)), podWith("pod", "a")
			s.create(claim, pod)
			reserve(claim, pod)
			claim.Status.Allocation = &resourcev1.AllocationResult{NodeSelector: onlyNode("node-3")}
			claim.Status.Allocation.Devices.Results = []allocated{given("r", "gpu-0")}
			s.update(claim)
			s.bind(pod, pick(isViolated, "node-4", "node-3"))
		}},
		{boundAfterConditions, "not yet", func(s *story, isViolated bool) {
			device := gpu(0)
			device.BindingConditions, device.BindingFailureConditions = []string{"Attached"}, []string{"Failed"}
			s.create(sliceOf(device))
			claim, pod := claimWith("a", requestFor("r", 1)), podWith("pod", "a")
			s.create(claim, pod)
			reserve(claim, pod)
			s.allocate(claim, given("r", "gpu-0", func(r *allocated) {
				r.BindingConditions, r.BindingFailureConditions = device.BindingConditions, device.BindingFailureConditions
			}))
			claim.Status.Devices = []resourcev1.AllocatedDeviceStatus{{Driver: driver, Pool: pool1, Device: "gpu-0", Conditions: []metav1.Condition{
				{Type: "Attached", Status: pick(isViolated, metav1.ConditionFalse, metav1.ConditionTrue)},
				{Type: "Failed", Status: metav1.ConditionFalse},
			}}}
			s.update(claim)
			s.bind(pod, "node-1")
		}},
		{podPlaced, "a device is free", func(s *story, isViolated bool) {
			s.create(sliceOf(gpus(pick(isViolated, 2, 1))...))
			s.run(claimWith("a", requestFor("r", 1)), given("r", "gpu-0"))
			s.create(claimWith("b", requestFor("r", 1)), podWith("pod", "b"))
		}},
		{podPlaced, "the node is full", func(s *story, isViolated bool) {
			s.create(sliceOf(gpus(1)...))
			for i := range pick(isViolated, 9, 10) {
				pod := podWith(fmt.Sprintf("other-%d", i))
				pod.Spec.NodeName = "node-1"
				s.create(pod)
			}
			s.create(claimWith("b", requestFor("r", 1)), podWith("pod", "b"))
		}},
		{podPlaced, "the device is tainted by a rule", func(s *story, isViolated bool) {
			s.create(sliceOf(gpus(1)...), &resourcev1.DeviceTaintRule{ObjectMeta: metav1.ObjectMeta{Name: "rule"}, Spec: resourcev1.DeviceTaintRuleSpec{
				DeviceSelector: pick(isViolated, nil, &resourcev1.DeviceTaintSelector{}),
				Taint:          resourcev1.DeviceTaint{Key: "broken", Effect: resourcev1.DeviceTaintEffectNoSchedule},
			}})
			s.create(claimWith("b", requestFor("r", 1)), podWith("pod", "b"))
		}},
		{podPlaced, "its claim is on another node", func(s *story, isViolated bool) {
			s.create(sliceOf(gpus(1)...))
			s.run(claimWith("a", requestFor("r", 1)), given("r", "gpu-0"))
			pod := podWith("pod", "a")
			pod.Spec.NodeSelector = map[string]string{"name": pick(isViolated, "node-1", "node-2")}
			s.create(pod)
		}},
		{podPlaced, "the node is cordoned", func(s *story, isViolated bool) {
			s.create(sliceOf(gpus(1)...))
			node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "node-1"}, Spec: corev1.NodeSpec{Unschedulable: !isViolated}}
			node.Status.Allocatable = corev1.ResourceList{corev1.ResourcePods: resource.MustParse("10")}
			s.update(node)
			s.create(claimWith("b", requestFor("r", 1)), podWith("pod", "b"))
		}},
	}
}
