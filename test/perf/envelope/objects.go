package main

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kwok-dra/kwok-dra/test/internal/fleet"
)

const (
	counterSet = "shared"
	capacity   = "memory"
	// capacityGi is how much each device has.
	capacityGi = 80
	// requestName is the first part of the names of requests.
	requestName = "gpu"
)

// matchedAttribute alternates from device to device of a node, so that the allocator
// has to pass over every other device.
var matchedAttribute = resourcev1.QualifiedName("socket")

// driverName returns the name of a driver. Pods ask the first one.
func driverName(number int) string {
	if number == 0 {
		return fleet.Driver
	}
	return fmt.Sprintf("other%d.example.com", number)
}

// newClass returns the DeviceClass of the first driver.
func newClass() *resourcev1.DeviceClass {
	return &resourcev1.DeviceClass{ObjectMeta: metav1.ObjectMeta{Name: fleet.Driver}, Spec: resourcev1.DeviceClassSpec{
		Selectors: []resourcev1.DeviceSelector{{CEL: &resourcev1.CELDeviceSelector{Expression: fmt.Sprintf("device.driver == %q", fleet.Driver)}}},
	}}
}

// newSlices returns the slices of a node as drivers publish them: a pool for each driver,
// named like the node and owned by it.
func (s shape) newSlices(node *corev1.Node) []*resourcev1.ResourceSlice {
	var all []*resourcev1.ResourceSlice
	for driver := range s.Drivers {
		count := s.Slices
		if s.Counters > 0 {
			count++ // counters have a slice of their own
		}
		add := func(content resourcev1.ResourceSliceSpec) {
			content.Driver, content.NodeName = driverName(driver), &node.Name
			content.Pool = resourcev1.ResourcePool{Name: node.Name, Generation: 1, ResourceSliceCount: int64(count)}
			all = append(all, &resourcev1.ResourceSlice{ObjectMeta: metav1.ObjectMeta{
				Name:            fmt.Sprintf("%s-%d-%d", node.Name, driver, len(all)),
				OwnerReferences: []metav1.OwnerReference{{APIVersion: "v1", Kind: "Node", Name: node.Name, UID: node.UID, Controller: new(true)}},
			}, Spec: content})
		}
		if s.Counters > 0 {
			add(resourcev1.ResourceSliceSpec{SharedCounters: []resourcev1.CounterSet{{Name: counterSet, Counters: s.counters(int64(s.devicesOfFirst()))}}})
		}
		for slice := range s.Slices {
			var devices []resourcev1.Device
			for number := slice * s.devicesOfFirst() / s.Slices; number < (slice+1)*s.devicesOfFirst()/s.Slices; number++ {
				devices = append(devices, s.newDevice(number))
			}
			add(resourcev1.ResourceSliceSpec{Devices: devices})
		}
	}
	return all
}

func deviceName(number int) string { return fmt.Sprint("gpu-", number) }

func (s shape) newDevice(number int) resourcev1.Device {
	device := resourcev1.Device{
		Name: deviceName(number),
		Attributes: map[resourcev1.QualifiedName]resourcev1.DeviceAttribute{
			"model":          {StringValue: new("example-80")},
			matchedAttribute: {IntValue: new(int64(number % 2))},
		},
		Capacity: map[resourcev1.QualifiedName]resourcev1.DeviceCapacity{capacity: {Value: gibibytes(capacityGi)}},
	}
	for i := len(device.Attributes); i < s.Attributes; i++ {
		device.Attributes[resourcev1.QualifiedName(fmt.Sprint("attribute", i))] = resourcev1.DeviceAttribute{StringValue: new(fmt.Sprint("value-", i))}
	}
	if s.Counters > 0 {
		device.ConsumesCounters = []resourcev1.DeviceCounterConsumption{{CounterSet: counterSet, Counters: s.counters(1)}}
	}
	if s.Shares > 1 {
		device.AllowMultipleAllocations = new(true)
	}
	return device
}

// counters returns the counters of a device or of a pool.
func (s shape) counters(value int64) map[string]resourcev1.Counter {
	all := map[string]resourcev1.Counter{}
	for i := range s.Counters {
		all[fmt.Sprint("counter-", i)] = resourcev1.Counter{Value: *resource.NewQuantity(value, resource.DecimalSI)}
	}
	return all
}

func gibibytes(count int64) resource.Quantity {
	return *resource.NewQuantity(count<<30, resource.BinarySI)
}

// newClaimSpec returns what each Pod asks for.
func (s shape) newClaimSpec() resourcev1.ResourceClaimSpec {
	var spec resourcev1.ResourceClaimSpec
	for i := range s.Requests {
		request := resourcev1.DeviceRequest{Name: fmt.Sprint(requestName, "-", i)}
		exact := s.newExactRequest()
		if s.Alternatives == 0 {
			request.Exactly = exact
		}
		for i := range s.Alternatives {
			alternative := resourcev1.DeviceSubRequest{
				Name: fmt.Sprint("alternative-", i), DeviceClassName: exact.DeviceClassName, Selectors: exact.Selectors,
				AllocationMode: exact.AllocationMode, Count: exact.Count, Capacity: exact.Capacity,
			}
			if i < s.Alternatives-1 {
				alternative.Selectors = append(alternative.Selectors, selectModel("==", fmt.Sprint("none-", i)))
			}
			request.FirstAvailable = append(request.FirstAvailable, alternative)
		}
		spec.Devices.Requests = append(spec.Devices.Requests, request)
	}
	if s.Matched > 0 {
		attribute := resourcev1.FullyQualifiedName(fleet.Driver + "/" + string(matchedAttribute))
		spec.Devices.Constraints = []resourcev1.DeviceConstraint{{MatchAttribute: &attribute}}
	}
	return spec
}

func (s shape) newExactRequest() *resourcev1.ExactDeviceRequest {
	exact := &resourcev1.ExactDeviceRequest{
		DeviceClassName: fleet.Driver, AllocationMode: resourcev1.DeviceAllocationModeExactCount, Count: int64(max(s.DevicesByRequest, s.Matched)),
	}
	for i := range s.Selectors {
		exact.Selectors = append(exact.Selectors, selectModel("!=", fmt.Sprint("none-", i)))
	}
	if s.Shares > 1 {
		exact.Capacity = &resourcev1.CapacityRequirements{
			Requests: map[resourcev1.QualifiedName]resource.Quantity{capacity: gibibytes(int64(capacityGi / s.Shares))},
		}
	}
	return exact
}

func selectModel(operator, model string) resourcev1.DeviceSelector {
	return resourcev1.DeviceSelector{CEL: &resourcev1.CELDeviceSelector{
		Expression: fmt.Sprintf("device.attributes[%q].model %s %q", fleet.Driver, operator, model),
	}}
}

// newFilling returns a Pod on the node with a claim, and the status of that claim, which takes
// the devices that are allocated beforehand. They are the first ones: the allocator has to
// pass over them.
func (s shape) newFilling(node string) (*corev1.Pod, *resourcev1.ResourceClaim, resourcev1.AllocationResult) {
	name := "filling-" + node
	pod := fleet.NewPod(fillingNamespace, name, "nobody", corev1.PodResourceClaim{ResourceClaimName: &name})
	pod.Spec.NodeName = node
	asked := s
	asked.DevicesByRequest, asked.Requests, asked.Alternatives, asked.Matched, asked.Selectors = s.filledDevices(), 1, 0, 0, 0
	claim := &resourcev1.ResourceClaim{ObjectMeta: metav1.ObjectMeta{Namespace: fillingNamespace, Name: name}, Spec: asked.newClaimSpec()}
	allocation := resourcev1.AllocationResult{NodeSelector: fleet.SelectNode(node)}
	for number := range s.filledDevices() {
		allocation.Devices.Results = append(allocation.Devices.Results, resourcev1.DeviceRequestAllocationResult{
			Request: claim.Spec.Devices.Requests[0].Name, Driver: fleet.Driver, Pool: node, Device: deviceName(number),
		})
	}
	return pod, claim, allocation
}
