package drajudge

import (
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func restExamples() []example {
	return []example{
		{claimReleased, "extended resources of a Pod that has ended", func(s *story, isViolated bool) {
			s.create(dongleClass(), sliceOf(gpus(1)...))
			pod, claim := podWithDongles("pod", "1"), donglesClaim("pod", 1)
			s.runExtended(pod, claim)
			pod.Status.Phase = pick(isViolated, corev1.PodSucceeded, corev1.PodRunning)
			claim.Status.ReservedFor = pick(isViolated, nil, claim.Status.ReservedFor)
			s.update(pod)
			s.update(claim)
		}},
		{reservationBound, "binding has failed", func(s *story, isViolated bool) {
			device := gpu(0)
			device.BindingConditions, device.BindingFailureConditions = []string{"Attached"}, []string{"Failed"}
			s.create(sliceOf(device))
			claim, pod := claimWith("a", requestFor("r", 1)), podWith("pod", "a")
			pod.Spec.NodeSelector = map[string]string{"name": "node-2"}
			s.create(claim, pod)
			reserve(claim, pod)
			s.allocate(claim, given("r", "gpu-0", func(r *allocated) {
				r.BindingConditions, r.BindingFailureConditions = device.BindingConditions, device.BindingFailureConditions
			}))
			claim.Status.Devices = []resourcev1.AllocatedDeviceStatus{{Driver: driver, Pool: pool1, Device: "gpu-0", Conditions: []metav1.Condition{
				{Type: "Failed", Status: pick(isViolated, metav1.ConditionTrue, metav1.ConditionFalse)},
			}}}
			s.update(claim)
		}},
		{allocationNeeded, "the Pod that had it is gone", func(s *story, isViolated bool) {
			s.create(sliceOf(gpus(1)...))
			claim := claimWith("a", requestFor("r", 1))
			pod := s.run(claim, given("r", "gpu-0"))
			s.remove(pod)
			claim.Status.ReservedFor = nil
			if !isViolated {
				claim.Status.Allocation = nil
			}
			s.update(claim)
		}},
		{allocationNeeded, "a Pod waits that has it", func(s *story, isViolated bool) {
			s.create(sliceOf(gpus(1)...))
			claim := claimWith("a", requestFor("r", 1))
			s.remove(s.run(claim, given("r", "gpu-0")))
			claim.Status.ReservedFor = nil
			s.update(claim)
			pod := podWith("other", pick(isViolated, "b", "a"))
			pod.Spec.NodeSelector = map[string]string{"name": "node-2"}
			s.create(pod)
		}},
		{podPlaceable, "admin access to a card that others have used up", func(s *story, isViolated bool) {
			s.update(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "default", Labels: map[string]string{resourcev1.DRAAdminNamespaceLabelKey: "true"}}})
			slice := sliceOf(gpus(2)...)
			for i := range slice.Spec.Devices {
				slice.Spec.Devices[i].ConsumesCounters = []resourcev1.DeviceCounterConsumption{{CounterSet: "card", Counters: map[string]resourcev1.Counter{"memory": {Value: resource.MustParse("8")}}}}
			}
			slice.Spec.Pool.ResourceSliceCount = 2
			counters := sliceOf()
			counters.Name, counters.Spec.Pool.ResourceSliceCount = "counters", 2
			counters.Spec.SharedCounters = []resourcev1.CounterSet{{Name: "card", Counters: map[string]resourcev1.Counter{"memory": {Value: resource.MustParse("8")}}}}
			s.create(slice, counters)
			s.run(claimWith("a", requestFor("r", 1)), given("r", "gpu-0"))
			s.create(podWith("pod", "b"), claimWith("b", requestFor("r", 1, func(r *exact) { r.AdminAccess = new(isViolated) })))
		}},
		{podPlaced, "its driver has to agree first", func(s *story, isViolated bool) {
			device := gpu(0)
			device.BindingConditions = []string{"Attached"}
			s.create(sliceOf(device))
			claim, pod := claimWith("a", requestFor("r", 1)), podWith("pod", "a")
			s.create(claim, pod)
			claim.Status.Devices = []resourcev1.AllocatedDeviceStatus{{Driver: driver, Pool: pool1, Device: "gpu-0", Conditions: []metav1.Condition{
				{Type: "Attached", Status: pick(isViolated, metav1.ConditionTrue, metav1.ConditionFalse)},
			}}}
			s.allocate(claim, given("r", "gpu-0", func(r *allocated) { r.BindingConditions = device.BindingConditions }))
		}},
		{podPlaced, "beside a Pod with extended resources", func(s *story, isViolated bool) {
			other := podWithDongles("other", "1")
			other.Spec.NodeName = "node-1"
			s.create(sliceOf(gpus(1)...), other, claimWith("a", requestFor("r", pick(isViolated, int64(1), 2))), podWith("pod", "a"))
		}},
		{podPlaced, "the allocator stops at a node that a claim of the Pod does not admit", func(s *story, isViolated bool) {
			other := sliceOf(gpus(2)...)
			other.Name, other.Spec.NodeName, other.Spec.Pool.Name = "node-2-gpu", new("node-2"), "node-2"
			other.Spec.Pool.ResourceSliceCount = pick(isViolated, int64(1), 2)
			s.create(sliceOf(gpus(2)...), other)
			here, all := claimWith("a", requestFor("r", 1)), claimWith("b", requestFor("r", 0, func(r *exact) {
				r.AllocationMode, r.Selectors = resourcev1.DeviceAllocationModeAll, selectors(`device.attributes["gpu.example.com"].index == 1`)
			}))
			s.create(here, all, podWith("pod", "a", "b"))
			s.allocate(here, given("r", "gpu-0"))
		}},
		{preemptedInVain, "the Pod still waits", func(s *story, isViolated bool) {
			s.create(sliceOf(gpus(1)...))
			victim := s.preempt("pod", "node-1")
			if !isViolated {
				s.run(claimWith("a", requestFor("r", 1)), given("r", "gpu-0"))
			} else {
				s.create(claimWith("a", requestFor("r", 5)))
			}
			s.remove(victim)
		}},
		{preemptedInVain, "another Pod waits for the node", func(s *story, isViolated bool) {
			s.create(sliceOf(gpus(1)...))
			victim := s.preempt("other", "node-1")
			s.remove(victim)
			pod := podWith("late", "a")
			pod.Spec.Priority = new(int32(pick(isViolated, 10, 0)))
			pod.Status.NominatedNodeName = "node-1"
			s.create(pod)
		}},
		{preemptedInVain, "the Pod waits for its driver", func(s *story, isViolated bool) {
			device := gpu(0)
			device.BindingConditions, device.BindingFailureConditions = []string{"Attached"}, []string{"Failed"}
			s.create(sliceOf(device))
			s.remove(s.preempt("pod", "node-1"))
			claim := claimWith("a", requestFor("r", pick(isViolated, int64(5), 1)))
			s.create(claim)
			if !isViolated {
				reserve(claim, podWith("pod-a", "a"))
				s.allocate(claim, given("r", "gpu-0", func(r *allocated) {
					r.BindingConditions, r.BindingFailureConditions = device.BindingConditions, device.BindingFailureConditions
				}))
			}
		}},
		{preemptedInVain, "the slices have changed", func(s *story, isViolated bool) {
			slice := sliceOf(gpus(1)...)
			s.create(slice)
			s.remove(s.preempt("pod", "node-1"))
			pod := podWith("late", "a")
			pod.Spec.Priority, pod.Status.NominatedNodeName = new(int32(10)), "node-1"
			s.create(pod)
			heartbeat := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "node-1", Labels: map[string]string{"name": "node-1"}}}
			heartbeat.Status.Allocatable = corev1.ResourceList{corev1.ResourcePods: resource.MustParse("10")}
			s.update(heartbeat)
			if !isViolated {
				s.remove(slice)
			}
		}},
	}
}

// preempt writes that a Pod with a name, which has no claim, was preempted on a node.
func (s *story) preempt(name, node string) *corev1.Pod {
	victim := podWith(name)
	victim.Spec.Priority, victim.Spec.NodeName = new(int32(5)), node
	s.create(victim)
	waiting := podWith("pod-a", "a")
	waiting.Spec.Priority, waiting.Status.NominatedNodeName = new(int32(10)), node
	if name == "pod" {
		s.create(waiting)
	}
	victim.Status.Conditions = []corev1.PodCondition{{Type: corev1.DisruptionTarget, Status: corev1.ConditionTrue, Reason: corev1.PodReasonPreemptionByScheduler}}
	s.update(victim)
	return victim
}

const dongle = "example.com/dongle"

// dongleClass provides an extended resource.
func dongleClass() *resourcev1.DeviceClass {
	class := gpuClass()
	class.Name, class.Spec.ExtendedResourceName = "dongle", new(dongle)
	return class
}

func podWithDongles(name, count string) *corev1.Pod {
	pod := podWith(name)
	list := corev1.ResourceList{dongle: resource.MustParse(count)}
	pod.Spec.Containers = []corev1.Container{{Name: "main", Resources: corev1.ResourceRequirements{Requests: list, Limits: list}}}
	return pod
}

// donglesClaim is what kube-scheduler makes for a Pod with dongles.
func donglesClaim(pod string, count int64) *resourcev1.ResourceClaim {
	claim := claimWith(pod+"-extended-resources", requestFor("container-0-request-0", count, func(r *exact) { r.DeviceClassName = "dongle" }))
	claim.Annotations = map[string]string{resourcev1.ExtendedResourceClaimAnnotation: "true"}
	claim.OwnerReferences = []metav1.OwnerReference{{Kind: "Pod", Name: pod, UID: podWith(pod).UID, Controller: new(true)}}
	return claim
}

// runExtended binds a Pod with a claim for its extended resources, which gets one device.
func (s *story) runExtended(pod *corev1.Pod, claim *resourcev1.ResourceClaim) {
	s.create(pod, claim)
	reserve(claim, pod)
	s.allocate(claim, given("container-0-request-0", "gpu-0"))
	pod.Status.ExtendedResourceClaimStatus = &corev1.PodExtendedResourceClaimStatus{
		ResourceClaimName: claim.Name,
		RequestMappings:   []corev1.ContainerExtendedResourceRequest{{ContainerName: "main", ResourceName: dongle, RequestName: "container-0-request-0"}},
	}
	s.bind(pod, "node-1")
}

func extendedExamples() []example {
	return []example{
		{extendedResources, "too few devices", func(s *story, isViolated bool) {
			s.create(dongleClass(), sliceOf(gpus(2)...))
			s.runExtended(podWithDongles("pod", pick(isViolated, "2", "1")), donglesClaim("pod", 1))
		}},
		{extendedResources, "no claim", func(s *story, isViolated bool) {
			s.create(dongleClass())
			node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "node-1"}}
			node.Status.Allocatable = corev1.ResourceList{corev1.ResourcePods: resource.MustParse("10"), dongle: resource.MustParse(pick(isViolated, "0", "1"))}
			s.update(node)
			pod := podWithDongles("pod", "1")
			s.create(pod)
			s.bind(pod, "node-1")
		}},
		{extendedResources, "devices of another class", func(s *story, isViolated bool) {
			newer := dongleClass()
			newer.Name, newer.CreationTimestamp = "newer", metav1.Unix(1, 0)
			s.create(dongleClass(), sliceOf(gpus(2)...))
			if isViolated {
				s.create(newer)
			}
			s.runExtended(podWithDongles("pod", "1"), donglesClaim("pod", 1))
		}},
		{podPlaced, "extended resources", func(s *story, isViolated bool) {
			s.create(dongleClass(), sliceOf(gpus(2)...), podWithDongles("pod", pick(isViolated, "2", "3")))
		}},
		{podPlaced, "extended resources within the quota of their class", func(s *story, isViolated bool) {
			s.create(&corev1.ResourceQuota{
				ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "quota"},
				Status:     corev1.ResourceQuotaStatus{Hard: corev1.ResourceList{"dongle.deviceclass.resource.k8s.io/devices": resource.MustParse(pick(isViolated, "1", "0"))}},
			})
			s.create(dongleClass(), sliceOf(gpus(2)...), podWithDongles("pod", "1"))
		}},
		{podPlaced, "extended resources without a class", func(s *story, isViolated bool) {
			class := dongleClass()
			class.Spec.ExtendedResourceName = pick(isViolated, class.Spec.ExtendedResourceName, new("example.com/other"))
			s.create(class, sliceOf(gpus(2)...), podWithDongles("pod", "1"))
		}},
	}
}

func quotaExamples() []example {
	quotaOf := func(name corev1.ResourceName, hard string) *corev1.ResourceQuota {
		return &corev1.ResourceQuota{
			ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "quota"},
			Status:     corev1.ResourceQuotaStatus{Hard: corev1.ResourceList{name: resource.MustParse(hard)}},
		}
	}
	return []example{
		{deviceQuota, "of a class", func(s *story, isViolated bool) {
			s.create(claimWith("a", requestFor("r", 2)), quotaOf("gpu.deviceclass.resource.k8s.io/devices", pick(isViolated, "2", "3")), claimWith("b", requestFor("r", 1)))
		}},
		{deviceQuota, "of another class or namespace", func(s *story, isViolated bool) {
			quota := quotaOf(corev1.ResourceName(pick(isViolated, "gpu", "nic")+".deviceclass.resource.k8s.io/devices"), "0")
			other := claimWith("b", requestFor("r", 1))
			other.Namespace = "other"
			s.create(quota, pick(isViolated, claimWith("a", requestFor("r", 1)), other))
		}},
		{deviceQuota, "all devices", func(s *story, isViolated bool) {
			s.create(quotaOf("gpu.deviceclass.resource.k8s.io/devices", pick(isViolated, "31", "32")))
			s.create(claimWith("a", requestFor("r", 1, func(r *exact) { r.AllocationMode, r.Count = resourcev1.DeviceAllocationModeAll, 0 })))
		}},
		{deviceQuota, "alternatives", func(s *story, isViolated bool) {
			s.create(quotaOf("gpu.deviceclass.resource.k8s.io/devices", pick(isViolated, "1", "2")))
			s.create(claimWith("a", resourcev1.DeviceRequest{Name: "r", FirstAvailable: []resourcev1.DeviceSubRequest{
				{Name: "two", DeviceClassName: "gpu", Count: 2}, {Name: "one", DeviceClassName: "gpu", Count: 1},
			}}))
		}},
		{deviceQuota, "of an extended resource", func(s *story, isViolated bool) {
			pod := podWithDongles("pod", "2")
			pod.Spec.SchedulingGates = []corev1.PodSchedulingGate{{Name: "wait"}}
			s.create(dongleClass(), quotaOf("requests."+dongle, pick(isViolated, "2", "3")), pod, donglesClaim("pod", 2))
			s.create(claimWith("a", requestFor("r", 1, func(r *exact) { r.DeviceClassName = "dongle" })))
		}},
		{deviceQuota, "removed", func(s *story, isViolated bool) {
			quota := quotaOf("gpu.deviceclass.resource.k8s.io/devices", "0")
			s.create(quota)
			if !isViolated {
				s.remove(quota)
			}
			s.create(claimWith("a", requestFor("r", 1)))
		}},
	}
}
