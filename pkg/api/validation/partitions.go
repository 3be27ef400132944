package validation

import (
	"maps"
	"strings"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/kwok-dra/kwok-dra/pkg/api/v1alpha1"
)

// validatePartitions checks the partitions of the devices of a group.
func validatePartitions(device *v1alpha1.DeviceTemplate, at checker) {
	if len(device.Partitions) == 0 {
		return
	}
	if !hasOwnCounters(device) {
		at.addErrors(field.Forbidden(at.path, "partitions take of the counters or slots of their device: give it some"))
		return
	}
	seen, total := sets.New[string](), int64(1)
	for i := range device.Partitions {
		partition, at := &device.Partitions[i], at.atIndex(i)
		validatePartition(device, partition, at)
		if seen.Has(partition.Name) {
			at.addErrors(field.Duplicate(at.path.Child("name"), partition.Name))
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
	switch name := at.atField("name"); {
	case partition.Name == "":
		name.addErrors(field.Required(name.path, "the name of the partition, for example mig-1g10gb"))
	case !validateCount(partition.Count, maxCount, at):
	case !labelForm.isFitting(partition.Name):
		labelForm.checkName(partition.Name, name)
	case !v1alpha1.IsTemplate(device.Name):
		number := int32(partition.Number())
		name.limitLength(device.Name+endOf(device.Count)+"-"+partition.Name+endOf(&number), labelForm.max, shorterName)
	}
	slots, placements, size := device.Slots, at.atField("placements"), at.atField("size")
	switch {
	case len(partition.Placements) == 0 && partition.Size != nil:
		size.addErrors(field.Forbidden(size.path, "only with placements, the slots that partitions start at"))
	case len(partition.Placements) == 0:
	case slots == nil:
		placements.addErrors(field.Forbidden(placements.path, "only where the device has slots"))
	case partition.Count != nil:
		at.addErrors(field.Forbidden(at.path.Child("count"), "there is one partition for each of placements: leave count out"))
	case partition.Slots() < 1:
		size.addInvalid(partition.Slots(), "must be at least 1")
	default:
		checkItems(placements, partition.Placements, func(first int32, at checker) {
			last := int64(first) + int64(partition.Slots()) - 1
			at.requireThat(first >= 0 && last < int64(slots.Count), first,
				"the partition would take the slots %d to %d, and the device has 0 to %d", first, last, slots.Count-1)
		})
	}
	consumes := at.atField("consumes")
	consumes.requirePresence(len(partition.Consumes)+len(partition.Placements) > 0,
		"the partition takes nothing of the device: give consumes, or placements")
	checkValues(consumes, partition.Consumes, func(name string, taken resource.Quantity, at checker) {
		there, has := device.Counters[name]
		if at.requireThat(has, name, "must be one of the device's counters%s", listNames(device.Counters)) {
			at.notNegative(&taken)
			at.atMost(&taken, &there, "what the device has")
		}
	})
	validateProperties(device, partition, at)
	// A partition inherits nodeAllocatableResources, so it needs the capacities that these name.
	checkValues(at, device.NodeAllocatableResources, func(name corev1.ResourceName, taken resourcev1.NodeAllocatableResource, _ checker) {
		if taken.Mapping != nil && taken.Mapping.CapacityKey != nil {
			key := *taken.Mapping.CapacityKey
			_, has := partition.Capacity[key]
			at.atField("capacity").atKey(string(key)).requirePresence(has, "nodeAllocatableResources[%s] of the device names it, and is the partitions' too", name)
		}
	})
}

// attributesOf returns the attributes of a partition: those of the device without uuid, its own,
// and uuid and parentUUID if the device has a UUID.
func attributesOf(d *v1alpha1.DeviceTemplate, p *v1alpha1.PartitionTemplate) map[resourcev1.QualifiedName]v1alpha1.Attribute {
	attributes := map[resourcev1.QualifiedName]v1alpha1.Attribute{}
	maps.Copy(attributes, d.Attributes)
	delete(attributes, v1alpha1.AttributeUUID)
	if uuid, has := d.Attributes[v1alpha1.AttributeUUID]; has && uuid.Type == v1alpha1.AttributeString {
		attributes[v1alpha1.AttributeUUID], attributes[v1alpha1.AttributeParentUUID] = uuid, uuid
	}
	maps.Copy(attributes, p.Attributes)
	return attributes
}

// validatePartitionType requires a string attribute of every device that consumes counters. The
// attribute is in the driver's own domain, with or without the domain in its name.
func validatePartitionType(spec *v1alpha1.ResourcePoolTemplateSpec, at checker) {
	given := at.atField("partitionTypeAttribute")
	if spec.PartitionTypeAttribute == nil || !validateFullyQualified(string(*spec.PartitionTypeAttribute), spec.Driver, given) {
		return
	}
	consumers := 0
	for i := range spec.Devices {
		device, at := &spec.Devices[i], at.atField("devices").atIndex(i)
		if !hasOwnCounters(device) && len(device.ConsumesCounters) == 0 {
			continue
		}
		consumers++
		validateType(device.Attributes, spec, at.atField("attributes"))
		for j := range device.Partitions {
			validateType(attributesOf(device, &device.Partitions[j]), spec, at.atField("partitions").atIndex(j).atField("attributes"))
		}
	}
	given.requireThat(consumers > 0, *spec.PartitionTypeAttribute,
		"must not be given without a device that has counters, slots or consumesCounters")
}

// validateType requires the attribute that partitionTypeAttribute names. Like the API server, it
// prefers the name with the domain.
func validateType(attributes map[resourcev1.QualifiedName]v1alpha1.Attribute, spec *v1alpha1.ResourcePoolTemplateSpec, at checker) {
	name := resourcev1.QualifiedName(*spec.PartitionTypeAttribute)
	attribute, has := attributes[name]
	if !has {
		name = resourcev1.QualifiedName(strings.TrimPrefix(string(name), spec.Driver+"/"))
		attribute, has = attributes[name]
	}
	at = at.atKey(string(name))
	if at.requirePresence(has, "partitionTypeAttribute names it, and the device consumes counters") {
		at.requireThat(attribute.Type == v1alpha1.AttributeString, shownValue(attribute), "must be a string, since partitionTypeAttribute names it")
	}
}
