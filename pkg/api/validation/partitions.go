package validation

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/kwok-dra/kwok-dra/pkg/api/v1alpha1"
)

// validatePartitions checks the partitions of the devices of a group.
func validatePartitions(device *v1alpha1.DeviceTemplate, at checker) {
	if len(device.Partitions) == 0 {
		return
	}
	if !hasOwnCounters(device) {
		at.addForbidden("partitions take of the counters or slots of their device: give it some")
		return
	}
	seen := sets.New[string]()
	total := int64(1)
	for i := range device.Partitions {
		partition, at := &device.Partitions[i], at.atIndex(i)
		validatePartition(device, partition, at)
		if seen.Has(partition.Name) {
			at.atField("name").addDuplicate(partition.Name)
		}
		seen.Insert(partition.Name)
		total += int64(partition.Number())
	}
	if device.Count != nil {
		total *= int64(*device.Count)
	}
	at.requireThat(total <= maxCount, total, "devices and partitions of a group must be at most %d together", maxCount)
}

func validatePartition(device *v1alpha1.DeviceTemplate, partition *v1alpha1.PartitionTemplate, at checker) {
	validatePartitionName(device, partition, at)
	validatePlacements(device.Slots, partition, at)
	validateConsumes(device, partition, at.atField("consumes"))
	validateNumbers(attributesOf(device, partition), len(partition.Capacity), at)
	checkValues(at.atField("attributes"), partition.Attributes, validateAttribute)
	validateCapacities(partition.Capacity, isShared(device), at.atField("capacity"))
	validateInheritedResources(device, partition, at.atField("capacity"))
}

func validatePartitionName(device *v1alpha1.DeviceTemplate, partition *v1alpha1.PartitionTemplate, at checker) {
	switch name := at.atField("name"); {
	case partition.Name == "":
		name.addRequired("the name of the partition, for example mig-1g10gb")
	case !validateCount(partition.Count, maxCount, at):
	case !labelForm.isFitting(partition.Name):
		labelForm.checkName(partition.Name, name)
	case !v1alpha1.IsTemplate(device.Name):
		number := int32(partition.Number())
		validateOwned(device, "-"+partition.Name+endOf(&number), name)
	}
}

func validatePlacements(slots *v1alpha1.Slots, partition *v1alpha1.PartitionTemplate, at checker) {
	placements, size := at.atField("placements"), at.atField("size")
	switch {
	case len(partition.Placements) == 0 && partition.Size != nil:
		size.addForbidden("only with placements, the slots that partitions start at")
	case len(partition.Placements) == 0:
	case slots == nil:
		placements.addForbidden("only where the device has slots")
	case partition.Count != nil:
		at.atField("count").addForbidden("there is one partition for each of placements: leave count out")
	case partition.Slots() < 1:
		size.addInvalid(partition.Slots(), "must be at least 1")
	default:
		checkItems(placements, partition.Placements, func(first int32, at checker) {
			last := int64(first) + int64(partition.Slots()) - 1
			at.requireThat(first >= 0 && last < int64(slots.Count), first,
				"the partition would take the slots %d to %d, and the device has 0 to %d", first, last, slots.Count-1)
		})
	}
}

// validateConsumes requires a partition to consume something, and no more than the device has.
func validateConsumes(device *v1alpha1.DeviceTemplate, partition *v1alpha1.PartitionTemplate, at checker) {
	at.requirePresence(len(partition.Consumes)+len(partition.Placements) > 0,
		"the partition takes nothing of the device: give consumes, or placements")
	checkValues(at, partition.Consumes, func(name string, taken resource.Quantity, at checker) {
		there, has := device.Counters[name]
		if at.requireThat(has, name, "must be one of the device's counters%s", listNames(device.Counters)) {
			at.notNegative(&taken)
			at.atMost(&taken, &there, "what the device has")
		}
	})
}

// validateInheritedResources checks that a partition has the capacities that the device's
// nodeAllocatableResources name, which the partition inherits.
func validateInheritedResources(device *v1alpha1.DeviceTemplate, partition *v1alpha1.PartitionTemplate, at checker) {
	checkValues(at, device.NodeAllocatableResources, func(name corev1.ResourceName, taken resourcev1.NodeAllocatableResource, _ checker) {
		if taken.Mapping == nil || taken.Mapping.CapacityKey == nil {
			return
		}
		key := *taken.Mapping.CapacityKey
		_, has := partition.Capacity[key]
		at.atKey(string(key)).requirePresence(has, "nodeAllocatableResources[%s] of the device names it, and is the partitions' too", name)
	})
}

// validatePartitionType requires a string attribute of every device that consumes counters. The
// attribute is in the driver's own domain, with or without the domain in its name.
func validatePartitionType(spec *v1alpha1.ResourcePoolTemplateSpec, at checker) {
	if spec.PartitionTypeAttribute == nil {
		return
	}
	before, given := at.countErrors(), at.atField("partitionTypeAttribute")
	validateFullyQualified(string(*spec.PartitionTypeAttribute), spec.Driver, given)
	if at.countErrors() > before {
		return
	}
	consumers := 0
	for i := range spec.Devices {
		device, at := &spec.Devices[i], at.atField("devices").atIndex(i)
		if !hasOwnCounters(device) && len(device.ConsumesCounters) == 0 {
			continue
		}
		consumers++
		validateType(device.Attributes, spec, at)
		for j := range device.Partitions {
			validateType(attributesOf(device, &device.Partitions[j]), spec, at.atField("partitions").atIndex(j))
		}
	}
	given.requireThat(consumers > 0, *spec.PartitionTypeAttribute,
		"must not be given without a device that has counters, slots or consumesCounters")
}

// validateType requires the attribute that partitionTypeAttribute names. Like the API server, it
// prefers the name with the domain.
func validateType(attributes map[resourcev1.QualifiedName]v1alpha1.Attribute, spec *v1alpha1.ResourcePoolTemplateSpec, at checker) {
	name := string(*spec.PartitionTypeAttribute)
	bare := strings.TrimPrefix(name, spec.Driver+"/")
	for _, key := range []string{name, bare} {
		attribute, has := attributes[resourcev1.QualifiedName(key)]
		if has {
			at.atField("attributes").atKey(key).requireThat(attribute.Type == v1alpha1.AttributeString, shownValue(attribute),
				"must be a string, since partitionTypeAttribute names it")
			return
		}
	}
	at.atField("attributes").atKey(bare).addRequired("partitionTypeAttribute names it, and the device consumes counters")
}
