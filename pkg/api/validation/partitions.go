package validation

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/kwok-dra/kwok-dra/pkg/api/v1alpha1"
)

// validatePartitions checks the parts into which the devices of a group can be
// divided.
func validatePartitions(device *v1alpha1.DeviceTemplate, at checker) {
	if len(device.Partitions) == 0 {
		return
	}
	if !hasOwnCounters(device) {
		at.forbidden("partitions take of the counters or slots of their device: give it some")
		return
	}
	seen := sets.New[string]()
	total := int64(1)
	for i := range device.Partitions {
		partition, at := &device.Partitions[i], at.index(i)
		validatePartition(device, partition, at)
		if seen.Has(partition.Name) {
			at.child("name").duplicate(partition.Name)
		}
		seen.Insert(partition.Name)
		total += int64(partition.Number())
	}
	if device.Count != nil {
		total *= int64(*device.Count)
	}
	at.must(total <= maxCount, total, "devices and partitions of a group must be at most %d together", maxCount)
}

func validatePartition(device *v1alpha1.DeviceTemplate, partition *v1alpha1.PartitionTemplate, at checker) {
	validatePartitionName(device, partition, at)
	validatePlacements(device.Slots, partition, at)
	validateConsumes(device, partition, at.child("consumes"))
	validateNumbers(attributesOf(device, partition), len(partition.Capacity), at)
	eachOf(at.child("attributes"), partition.Attributes, validateAttribute)
	validateCapacities(partition.Capacity, isShared(device), at.child("capacity"))
	validateInheritedResources(device, partition, at.child("capacity"))
}

func validatePartitionName(device *v1alpha1.DeviceTemplate, partition *v1alpha1.PartitionTemplate, at checker) {
	switch name := at.child("name"); {
	case partition.Name == "":
		name.required("the name of the partition, for example mig-1g10gb")
	case !validateCount(partition.Count, maxCount, at):
	case !labelForm.fits(partition.Name):
		labelForm.check(partition.Name, name)
	case !v1alpha1.IsTemplate(device.Name):
		number := int32(partition.Number())
		validateOwned(device, "-"+partition.Name+endOf(&number), name)
	}
}

func validatePlacements(slots *v1alpha1.Slots, partition *v1alpha1.PartitionTemplate, at checker) {
	placements, size := at.child("placements"), at.child("size")
	switch {
	case len(partition.Placements) == 0 && partition.Size != nil:
		size.forbidden("only with placements, the slots that partitions start at")
	case len(partition.Placements) == 0:
	case slots == nil:
		placements.forbidden("only where the device has slots")
	case partition.Count != nil:
		at.child("count").forbidden("there is one partition for each of placements: leave count out")
	case partition.Slots() < 1:
		size.invalid(partition.Slots(), "must be at least 1")
	default:
		each(placements, partition.Placements, func(first int32, at checker) {
			last := int64(first) + int64(partition.Slots()) - 1
			at.must(first >= 0 && last < int64(slots.Count), first,
				"the partition would take the slots %d to %d, and the device has 0 to %d", first, last, slots.Count-1)
		})
	}
}

// validateConsumes wants a partition to take something, and no more than there
// is.
func validateConsumes(device *v1alpha1.DeviceTemplate, partition *v1alpha1.PartitionTemplate, at checker) {
	at.needs(len(partition.Consumes)+len(partition.Placements) > 0,
		"the partition takes nothing of the device: give consumes, or placements")
	eachOf(at, partition.Consumes, func(name string, taken resource.Quantity, at checker) {
		there, has := device.Counters[name]
		if at.must(has, name, "must be one of the device's counters%s", of(device.Counters)) {
			at.notNegative(&taken)
			at.atMost(&taken, &there, "what the device has")
		}
	})
}

// validateInheritedResources checks that a partition has the capacities that the
// device's nodeAllocatableResources name, since the partition has these too.
func validateInheritedResources(device *v1alpha1.DeviceTemplate, partition *v1alpha1.PartitionTemplate, at checker) {
	eachOf(at, device.NodeAllocatableResources, func(name corev1.ResourceName, taken resourcev1.NodeAllocatableResource, _ checker) {
		if taken.Mapping == nil || taken.Mapping.CapacityKey == nil {
			return
		}
		key := *taken.Mapping.CapacityKey
		_, has := partition.Capacity[key]
		at.key(string(key)).needs(has, "nodeAllocatableResources[%s] of the device names it, and is the partitions' too", name)
	})
}

// validatePartitionType wants a string attribute of every device that consumes
// counters, in the driver's own domain with or without the domain.
func validatePartitionType(spec *v1alpha1.ResourcePoolTemplateSpec, at checker) {
	if spec.PartitionTypeAttribute == nil {
		return
	}
	before, given := at.found(), at.child("partitionTypeAttribute")
	validateFullyQualified(string(*spec.PartitionTypeAttribute), spec.Driver, given)
	if at.found() > before {
		return
	}
	consumers := 0
	for i := range spec.Devices {
		device, at := &spec.Devices[i], at.child("devices").index(i)
		if !hasOwnCounters(device) && len(device.ConsumesCounters) == 0 {
			continue
		}
		consumers++
		validateType(device.Attributes, spec, at)
		for j := range device.Partitions {
			validateType(attributesOf(device, &device.Partitions[j]), spec, at.child("partitions").index(j))
		}
	}
	given.must(consumers > 0, *spec.PartitionTypeAttribute,
		"must not be given without a device that has counters, slots or consumesCounters")
}

// validateType wants the attribute that partitionTypeAttribute names. The name
// with the domain comes first, as for the API server.
func validateType(attributes map[resourcev1.QualifiedName]v1alpha1.Attribute, spec *v1alpha1.ResourcePoolTemplateSpec, at checker) {
	name := string(*spec.PartitionTypeAttribute)
	bare := strings.TrimPrefix(name, spec.Driver+"/")
	for _, key := range []string{name, bare} {
		attribute, has := attributes[resourcev1.QualifiedName(key)]
		if has {
			at.child("attributes").key(key).must(attribute.Type == v1alpha1.AttributeString, shown(attribute),
				"must be a string, since partitionTypeAttribute names it")
			return
		}
	}
	at.child("attributes").key(bare).required("partitionTypeAttribute names it, and the device consumes counters")
}
