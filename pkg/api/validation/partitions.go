package validation

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/kwok-dra/kwok-dra/pkg/api/v1alpha1"
)

// validatePartitions checks the parts into which the devices of a group can be
// divided.
func validatePartitions(device *v1alpha1.DeviceTemplate, path *field.Path) field.ErrorList {
	if len(device.Partitions) == 0 {
		return nil
	}
	at := path.Child("partitions")
	if !hasOwnCounters(device) {
		return forbidden(at, "partitions take of the counters or slots of their device: give it some")
	}
	var errs field.ErrorList
	seen := map[string]bool{}
	total := int64(1)
	for i := range device.Partitions {
		partition := &device.Partitions[i]
		errs = append(errs, validatePartition(device, partition, at.Index(i))...)
		if seen[partition.Name] {
			errs = append(errs, field.Duplicate(at.Index(i).Child("name"), partition.Name))
		}
		seen[partition.Name] = true
		total += int64(partition.Number())
	}
	if device.Count != nil {
		total *= int64(*device.Count)
	}
	if total > maxCount {
		errs = append(errs, field.Invalid(at, total, fmt.Sprintf("devices and partitions of a group must be at most %d together", maxCount)))
	}
	return errs
}

func validatePartition(device *v1alpha1.DeviceTemplate, partition *v1alpha1.PartitionTemplate, path *field.Path) field.ErrorList {
	return slices.Concat(
		validatePartitionName(device, partition, path),
		validatePlacements(device.Slots, partition, path),
		validateConsumes(device, partition, path),
		validateNumbers(attributesOf(device, partition), len(partition.Capacity), path),
		eachOf(path.Child("attributes"), partition.Attributes, validateAttribute),
		validateCapacities(partition.Capacity, isShared(device), path.Child("capacity")),
		validateInheritedResources(device, partition, path.Child("capacity")),
	)
}

func validatePartitionName(device *v1alpha1.DeviceTemplate, partition *v1alpha1.PartitionTemplate, path *field.Path) field.ErrorList {
	at := path.Child("name")
	if partition.Name == "" {
		return required(at, "the name of the partition, for example mig-1g10gb")
	}
	if errs := validateCount(partition.Count, path); len(errs) > 0 {
		return errs
	}
	if errs := ValidateLabel(partition.Name, at); len(errs) > 0 || v1alpha1.IsTemplate(device.Name) {
		return errs
	}
	number := int32(partition.Number())
	return validateOwned(device, "-"+partition.Name+endOf(&number), at)
}

func validatePlacements(slots *v1alpha1.Slots, partition *v1alpha1.PartitionTemplate, path *field.Path) field.ErrorList {
	placements, size := path.Child("placements"), path.Child("size")
	switch {
	case len(partition.Placements) == 0 && partition.Size != nil:
		return forbidden(size, "only with placements, the slots that partitions start at")
	case len(partition.Placements) == 0:
		return nil
	case slots == nil:
		return forbidden(placements, "only where the device has slots")
	case partition.Count != nil:
		return forbidden(path.Child("count"), "there is one partition for each of placements: leave count out")
	case partition.Slots() < 1:
		return invalid(size, partition.Slots(), "must be at least 1")
	}
	return each(placements, partition.Placements, func(first int32, path *field.Path) field.ErrorList {
		last := int64(first) + int64(partition.Slots()) - 1
		if first >= 0 && last < int64(slots.Count) {
			return nil
		}
		return invalid(path, first, fmt.Sprintf("the partition would take the slots %d to %d, and the device has 0 to %d", first, last, slots.Count-1))
	})
}

// validateConsumes wants a partition to take something, and no more than there
// is.
func validateConsumes(device *v1alpha1.DeviceTemplate, partition *v1alpha1.PartitionTemplate, path *field.Path) field.ErrorList {
	at := path.Child("consumes")
	if len(partition.Consumes) == 0 && len(partition.Placements) == 0 {
		return required(at, "the partition takes nothing of the device: give consumes, or placements")
	}
	return eachOf(at, partition.Consumes, func(name string, taken resource.Quantity, path *field.Path) field.ErrorList {
		there, has := device.Counters[name]
		if !has {
			return invalid(path, name, "must be one of the device's counters"+of(device.Counters))
		}
		return append(notNegative(&taken, path), atMost(&taken, &there, "what the device has", path)...)
	})
}

// validateInheritedResources checks that a partition has the capacities that the
// device's nodeAllocatableResources name, since the partition has these too.
func validateInheritedResources(device *v1alpha1.DeviceTemplate, partition *v1alpha1.PartitionTemplate, path *field.Path) field.ErrorList {
	return eachOf(path, device.NodeAllocatableResources, func(name corev1.ResourceName, taken resourcev1.NodeAllocatableResource, _ *field.Path) field.ErrorList {
		if taken.Mapping == nil || taken.Mapping.CapacityKey == nil {
			return nil
		}
		key := *taken.Mapping.CapacityKey
		if _, has := partition.Capacity[key]; has {
			return nil
		}
		return required(path.Key(string(key)), fmt.Sprintf("nodeAllocatableResources[%s] of the device names it, and is the partitions' too", name))
	})
}

// validatePartitionType wants a string attribute of every device that consumes
// counters, in the driver's own domain with or without the domain.
func validatePartitionType(spec *v1alpha1.ResourcePoolTemplateSpec, path *field.Path) field.ErrorList {
	if spec.PartitionTypeAttribute == nil {
		return nil
	}
	name, at := *spec.PartitionTypeAttribute, path.Child("partitionTypeAttribute")
	if errs := validateFullyQualified(string(name), spec.Driver, at); len(errs) > 0 {
		return errs
	}
	var errs field.ErrorList
	consumers := 0
	for i := range spec.Devices {
		device, devicePath := &spec.Devices[i], path.Child("devices").Index(i)
		if !hasOwnCounters(device) && len(device.ConsumesCounters) == 0 {
			continue
		}
		consumers++
		errs = append(errs, validateType(device.Attributes, spec, devicePath)...)
		for j := range device.Partitions {
			attributes := attributesOf(device, &device.Partitions[j])
			errs = append(errs, validateType(attributes, spec, devicePath.Child("partitions").Index(j))...)
		}
	}
	if consumers == 0 {
		return invalid(at, name, "must not be given without a device that has counters, slots or consumesCounters")
	}
	return errs
}

// validateType wants the attribute that partitionTypeAttribute names. The name
// with the domain comes first, as for the API server.
func validateType(attributes map[resourcev1.QualifiedName]v1alpha1.Attribute, spec *v1alpha1.ResourcePoolTemplateSpec, path *field.Path) field.ErrorList {
	name := string(*spec.PartitionTypeAttribute)
	bare := strings.TrimPrefix(name, spec.Driver+"/")
	for _, key := range []string{name, bare} {
		attribute, has := attributes[resourcev1.QualifiedName(key)]
		switch {
		case has && attribute.Type != v1alpha1.AttributeString:
			return invalid(path.Child("attributes").Key(key), shown(attribute), "must be a string, since partitionTypeAttribute names it")
		case has:
			return nil
		}
	}
	return required(path.Child("attributes").Key(bare), "partitionTypeAttribute names it, and the device consumes counters")
}
