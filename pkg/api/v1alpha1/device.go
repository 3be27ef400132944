package v1alpha1

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// DeviceTemplate is a group of equal devices.
type DeviceTemplate struct {
	// Name is the name of the device, or with Count the stem of the names
	// <name>-0, <name>-1, and so on; or a template of .Index that yields the names. A DNS
	// label of at most 63 characters. Required.
	Name string `json:"name"`

	// Count is the number of devices, 1 to 10,000. Absent, there is one device
	// with just the name.
	//
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=10000
	Count *int32 `json:"count,omitempty"`

	// Attributes by qualified name, as in resource.k8s.io/v1. Values are
	// templates. A scalar is short for a string, int or bool attribute.
	Attributes map[resourcev1.QualifiedName]Attribute `json:"attributes,omitempty"`

	// Capacity by qualified name, as in resource.k8s.io/v1. Values are
	// templates. A quantity is short for {value: quantity}. RequestPolicy needs
	// AllowMultipleAllocations.
	Capacity map[resourcev1.QualifiedName]Capacity `json:"capacity,omitempty"`

	// CountFrom replaces Count if the driver's Pod says how many devices exist: a
	// template that yields a number, 0 to 10,000. It sees .DriverPod alone, and needs
	// DriverPod.
	CountFrom string `json:"countFrom,omitempty"`

	// Taints as in resource.k8s.io/v1.
	Taints []resourcev1.DeviceTaint `json:"taints,omitempty"`

	// AllowMultipleAllocations as in resource.k8s.io/v1: whether several requests
	// may share the device, each with a part of its capacity. Default: false.
	AllowMultipleAllocations *bool `json:"allowMultipleAllocations,omitempty"`

	// BindsToNode as in resource.k8s.io/v1: whether an allocation of the device is valid
	// only on the node for which it was made. Default: false, although devices of a
	// node's own pool are valid only there anyway.
	BindsToNode *bool `json:"bindsToNode,omitempty"`

	// BindingConditions as in resource.k8s.io/v1: the types of the conditions that
	// must be True of an allocated device before its Pod is bound. Qualified names,
	// at most 4. Default: none, and the Pod is bound at once.
	BindingConditions []string `json:"bindingConditions,omitempty"`

	// BindingFailureConditions as in resource.k8s.io/v1: types of conditions. If any of
	// them is True, the scheduler gives up the allocation. Qualified names other than
	// those of BindingConditions, at most 4. Required with BindingConditions, and
	// forbidden without.
	BindingFailureConditions []string `json:"bindingFailureConditions,omitempty"`

	// ConsumesCounters as in resource.k8s.io/v1: what the device takes of the
	// template's SharedCounters. CounterSet is a template of .Index.
	ConsumesCounters []resourcev1.DeviceCounterConsumption `json:"consumesCounters,omitempty"`

	// NodeName as in resource.k8s.io/v1, a template of .Index: the node that the
	// device is for. One of NodeName, NodeSelector and AllNodes is required with
	// SharedWith.PerDeviceNodeSelection, and forbidden otherwise.
	NodeName string `json:"nodeName,omitempty"`

	// NodeSelector as in resource.k8s.io/v1: the nodes that the device is for. One
	// term.
	NodeSelector *corev1.NodeSelector `json:"nodeSelector,omitempty"`

	// AllNodes as in resource.k8s.io/v1: the device is for all nodes.
	AllNodes *bool `json:"allNodes,omitempty"`

	// NodeAllocatableResources as in resource.k8s.io/v1 (Kubernetes 1.37, feature
	// gate DRANodeAllocatableResources): what the device takes of the node's own
	// resources.
	NodeAllocatableResources map[corev1.ResourceName]resourcev1.NodeAllocatableResource `json:"nodeAllocatableResources,omitempty"`

	// Counters make a counter set <device>-counters for each device. The device itself
	// takes all of it, and each partition what it consumes.
	Counters map[string]resource.Quantity `json:"counters,omitempty"`

	// Slots add counters of value 1 to the counter set of each device. A partition takes
	// adjacent slots.
	Slots *Slots `json:"slots,omitempty"`

	// Partitions are the parts into which each device can be divided, as with MIG.
	// They need Counters or Slots.
	Partitions []PartitionTemplate `json:"partitions,omitempty"`
}

// Slots are the places of a device in which partitions can sit, as the memory
// slices of a GPU with MIG.
type Slots struct {
	// Name is the stem of the counters <name>-0, <name>-1, and so on. Default:
	// slot.
	Name string `json:"name,omitempty"`
	// Count is the number of slots, 1 to 32. Required.
	Count int32 `json:"count"`
}

// Counter names the counter of a slot.
func (s *Slots) Counter(slot int32) string {
	return fmt.Sprintf("%s-%d", s.Name, slot)
}

// CounterSetOf names the counter set of a device with Counters or Slots.
func CounterSetOf(device string) string {
	return device + "-counters"
}

// The attributes that connect partitions with their devices.
const (
	AttributeUUID       resourcev1.QualifiedName = "uuid"
	AttributeParentUUID resourcev1.QualifiedName = "parentUUID"
)

// PartitionTemplate is a group of equal partitions of a device. A partition has
// the attributes of the device except uuid, its taints, binding conditions and so
// on, but not its capacity. If the device has the attribute uuid, a partition has
// parentUUID with its value, and a uuid of its own. The scheduler allocates a
// partition only while neither the whole device nor other partitions have taken
// what it consumes (KEP-4815).
type PartitionTemplate struct {
	// Name is in the names of the partitions, <device>-<name>-0, <device>-<name>-1,
	// and so on. A DNS label. Required.
	Name string `json:"name"`

	// Count is the number of partitions of each device. Default: 1, or one for
	// each of Placements.
	Count *int32 `json:"count,omitempty"`

	// Placements are the slots that partitions start at, one partition for each.
	// They need the device's Slots.
	Placements []int32 `json:"placements,omitempty"`

	// Size is the number of slots that a partition takes. Default: 1.
	Size *int32 `json:"size,omitempty"`

	// Consumes is what a partition takes of the device's Counters.
	Consumes map[string]resource.Quantity `json:"consumes,omitempty"`

	// Attributes as those of a device. They replace those of the device of the
	// same name.
	Attributes map[resourcev1.QualifiedName]Attribute `json:"attributes,omitempty"`

	// Capacity as that of a device.
	Capacity map[resourcev1.QualifiedName]Capacity `json:"capacity,omitempty"`
}

// Number returns how many partitions each device has.
func (p *PartitionTemplate) Number() int {
	if p.Count != nil {
		return int(*p.Count)
	}
	return max(1, len(p.Placements))
}

// Slots returns how many slots each partition takes, if it has Placements.
func (p *PartitionTemplate) Slots() int32 {
	if p.Size != nil {
		return *p.Size
	}
	return 1
}

// CounterSetTemplate is a counter set, or with Count a group of equal ones.
type CounterSetTemplate struct {
	// Name is the name of the counter set, or with Count the stem of the names
	// <name>-0, <name>-1, and so on; or a template of .Index. A DNS label of at most
	// 63 characters. Required.
	Name string `json:"name"`

	// Count is the number of counter sets. Absent, there is one with just the name.
	Count *int32 `json:"count,omitempty"`

	// CountFrom replaces Count, as it does for devices.
	CountFrom string `json:"countFrom,omitempty"`

	// Counters as in resource.k8s.io/v1. 1 to 32.
	Counters map[string]resourcev1.Counter `json:"counters"`
}

// SliceTemplate says what a ResourceSlice holds.
type SliceTemplate struct {
	// Devices are names of devices, or of groups in Devices of the template, which
	// stand for all of the group with its partitions.
	Devices []string `json:"devices"`
}

// SharedWith says which nodes share a pool. Exactly one field is set.
//
// +kubebuilder:validation:MinProperties=1
// +kubebuilder:validation:MaxProperties=1
type SharedWith struct {
	// AllNodes as in a ResourceSlice: all nodes, even those that are not fake.
	AllNodes bool `json:"allNodes,omitempty"`

	// NodeSelector as in a ResourceSlice: the nodes that can use the pool, even those
	// that are not fake. One term.
	NodeSelector *corev1.NodeSelector `json:"nodeSelector,omitempty"`

	// PerDeviceNodeSelection as in a ResourceSlice: each device says for itself.
	PerDeviceNodeSelection bool `json:"perDeviceNodeSelection,omitempty"`
}
