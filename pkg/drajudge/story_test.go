package drajudge

import (
	"fmt"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
)

const (
	driver = "gpu.example.com"
	pool1  = "node-1"
)

// story writes a history. Each write has the next resource version.
type story struct {
	history History
	now     time.Time
}

// newStory is of a cluster with two nodes and a class.
func newStory() *story {
	s := &story{now: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)}
	s.create(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "default"}})
	for _, name := range []string{"node-1", "node-2"} {
		s.create(&corev1.Node{
			ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"name": name}},
			Status:     corev1.NodeStatus{Allocatable: corev1.ResourceList{corev1.ResourcePods: resource.MustParse("10")}},
		})
	}
	s.create(gpuClass())
	return s
}

func (s *story) write(event watch.EventType, object runtime.Object) {
	written := object.DeepCopyObject()
	accessor, err := meta.Accessor(written)
	if err != nil {
		panic(err)
	}
	if accessor.GetUID() == "" {
		accessor.SetUID(types.UID("uid-" + accessor.GetName()))
	}
	accessor.SetResourceVersion(strconv.Itoa(len(s.history) + 1))
	s.history = append(s.history, Event{Type: event, Object: written, Time: s.now})
}

func (s *story) create(objects ...runtime.Object) {
	for _, object := range objects {
		s.write(watch.Added, object)
	}
}

func (s *story) update(object runtime.Object) { s.write(watch.Modified, object) }

func (s *story) remove(object runtime.Object) { s.write(watch.Deleted, object) }

// allocate writes an allocation for node-1 with what the class and the claim say.
func (s *story) allocate(claim *resourcev1.ResourceClaim, results ...resourcev1.DeviceRequestAllocationResult) {
	claim.Status.Allocation = &resourcev1.AllocationResult{
		Devices:      resourcev1.DeviceAllocationResult{Results: results},
		NodeSelector: onlyNode("node-1"),
	}
	s.update(claim)
}

// run creates a claim and a Pod, allocates devices, reserves the claim for the Pod and binds the Pod to node-1.
func (s *story) run(claim *resourcev1.ResourceClaim, results ...resourcev1.DeviceRequestAllocationResult) *corev1.Pod {
	pod := podWith("pod-"+claim.Name, claim.Name)
	s.create(claim, pod)
	reserve(claim, pod)
	s.allocate(claim, results...)
	s.bind(pod, "node-1")
	return pod
}

func (s *story) bind(pod *corev1.Pod, node string) {
	pod.Spec.NodeName = node
	s.update(pod)
}

func gpuClass() *resourcev1.DeviceClass {
	return &resourcev1.DeviceClass{
		ObjectMeta: metav1.ObjectMeta{Name: "gpu"},
		Spec:       resourcev1.DeviceClassSpec{Selectors: selectors(`device.driver == "gpu.example.com"`)},
	}
}

func selectors(expressions ...string) []resourcev1.DeviceSelector {
	var all []resourcev1.DeviceSelector
	for _, expression := range expressions {
		all = append(all, resourcev1.DeviceSelector{CEL: &resourcev1.CELDeviceSelector{Expression: expression}})
	}
	return all
}

func onlyNode(name string) *corev1.NodeSelector {
	return &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchFields: []corev1.NodeSelectorRequirement{
		{Key: "metadata.name", Operator: corev1.NodeSelectorOpIn, Values: []string{name}},
	}}}}
}

func labelledNode(name string) *corev1.NodeSelector {
	return &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchExpressions: []corev1.NodeSelectorRequirement{
		{Key: "name", Operator: corev1.NodeSelectorOpIn, Values: []string{name}},
	}}}}
}

// sliceOf is the only slice of the pool of node-1.
func sliceOf(devices ...resourcev1.Device) *resourcev1.ResourceSlice {
	return &resourcev1.ResourceSlice{
		ObjectMeta: metav1.ObjectMeta{Name: "node-1-gpu"},
		Spec: resourcev1.ResourceSliceSpec{
			Driver: driver, NodeName: new("node-1"), Devices: devices,
			Pool: resourcev1.ResourcePool{Name: pool1, Generation: 1, ResourceSliceCount: 1},
		},
	}
}

// gpus are devices with an index, and an even or odd side.
func gpus(count int) []resourcev1.Device {
	var devices []resourcev1.Device
	for i := range count {
		devices = append(devices, gpu(i))
	}
	return devices
}

func gpu(index int) resourcev1.Device {
	return resourcev1.Device{Name: fmt.Sprintf("gpu-%d", index), Attributes: map[resourcev1.QualifiedName]resourcev1.DeviceAttribute{
		"index":                 {IntValue: new(int64(index))},
		driver + "/side":        {StringValue: new([]string{"even", "odd"}[index%2])},
		"example.com/numaNodes": {IntValues: []int64{int64(index), int64(index + 1)}},
	}}
}

func claimWith(name string, requests ...resourcev1.DeviceRequest) *resourcev1.ResourceClaim {
	return &resourcev1.ResourceClaim{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, UID: types.UID("uid-" + name)},
		Spec:       resourcev1.ResourceClaimSpec{Devices: resourcev1.DeviceClaim{Requests: requests}},
	}
}

// request is for some devices of the class.
func requestFor(name string, count int64, changes ...func(*resourcev1.ExactDeviceRequest)) resourcev1.DeviceRequest {
	exactly := &resourcev1.ExactDeviceRequest{DeviceClassName: "gpu", AllocationMode: resourcev1.DeviceAllocationModeExactCount, Count: count}
	for _, change := range changes {
		change(exactly)
	}
	return resourcev1.DeviceRequest{Name: name, Exactly: exactly}
}

func given(request, device string, changes ...func(*resourcev1.DeviceRequestAllocationResult)) resourcev1.DeviceRequestAllocationResult {
	r := resourcev1.DeviceRequestAllocationResult{Request: request, Driver: driver, Pool: pool1, Device: device}
	for _, change := range changes {
		change(&r)
	}
	return r
}

// share is of a device with capacity memory.
func share(request, device, id, memory string) resourcev1.DeviceRequestAllocationResult {
	return given(request, device, func(r *resourcev1.DeviceRequestAllocationResult) {
		r.ShareID = new(types.UID(id))
		r.ConsumedCapacity = map[resourcev1.QualifiedName]resource.Quantity{"memory": resource.MustParse(memory)}
	})
}

// sharedGPU has 8 units of memory, from which requests take steps of 2 up to 6.
func sharedGPU() resourcev1.Device {
	device := gpu(0)
	device.AllowMultipleAllocations = new(true)
	device.Capacity = map[resourcev1.QualifiedName]resourcev1.DeviceCapacity{"memory": {
		Value: resource.MustParse("8"),
		RequestPolicy: &resourcev1.CapacityRequestPolicy{
			Default:    new(resource.MustParse("2")),
			ValidRange: &resourcev1.CapacityRequestPolicyRange{Min: new(resource.MustParse("2")), Max: new(resource.MustParse("6")), Step: new(resource.MustParse("2"))},
		},
	}}
	return device
}

func memory(amount string) func(*resourcev1.ExactDeviceRequest) {
	return func(r *resourcev1.ExactDeviceRequest) {
		r.Capacity = &resourcev1.CapacityRequirements{Requests: map[resourcev1.QualifiedName]resource.Quantity{"memory": resource.MustParse(amount)}}
	}
}

func podWith(name string, claims ...string) *corev1.Pod {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, UID: types.UID("uid-" + name)}}
	for _, claim := range claims {
		pod.Spec.ResourceClaims = append(pod.Spec.ResourceClaims, corev1.PodResourceClaim{Name: claim, ResourceClaimName: new(claim)})
	}
	return pod
}

func reserve(claim *resourcev1.ResourceClaim, pod *corev1.Pod) {
	claim.Status.ReservedFor = append(claim.Status.ReservedFor, resourcev1.ResourceClaimConsumerReference{Resource: "pods", Name: pod.Name, UID: pod.UID})
}

// pick is one of two values: of a history that violates, or that does not.
func pick[T any](isViolated bool, bad, good T) T {
	if isViolated {
		return bad
	}
	return good
}
