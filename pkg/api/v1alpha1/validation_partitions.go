package v1alpha1

import (
	"fmt"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

// validatePartitions checks the parts into which the devices of a group can be
// divided.
func validatePartitions(device *DeviceTemplate, path *field.Path) field.ErrorList {
	if len(device.Partitions) == 0 {
		return nil
	}
	at := path.Child("partitions")
	if !device.hasOwnCounters() {
		return field.ErrorList{field.Forbidden(at, "partitions take of the counters or slots of their device: give it some")}
	}
	var errs field.ErrorList
	seen := map[string]bool{}
	for i := range device.Partitions {
		partition := &device.Partitions[i]
		errs = append(errs, validatePartition(device, partition, at.Index(i))...)
		if seen[partition.Name] {
			errs = append(errs, field.Duplicate(at.Index(i).Child("name"), partition.Name))
		}
		seen[partition.Name] = true
	}
	return append(errs, validateTotal(device, at)...)
}

func validatePartition(device *DeviceTemplate, partition *PartitionTemplate, path *field.Path) field.ErrorList {
	errs := validatePartitionName(device, partition, path)
	errs = append(errs, validatePlacements(device.Slots, partition, path)...)
	errs = append(errs, validateConsumes(device, partition, path)...)
	errs = append(errs, validateNumbers(device.attributesOf(partition), len(partition.Capacity), path)...)
	errs = append(errs, validateAttributes(partition.Attributes, path.Child("attributes"))...)
	errs = append(errs, validateCapacities(partition.Capacity, device.shared(), path.Child("capacity"))...)
	return append(errs, validateInheritedResources(device, partition, path.Child("capacity"))...)
}

func validatePartitionName(device *DeviceTemplate, partition *PartitionTemplate, path *field.Path) field.ErrorList {
	at := path.Child("name")
	if partition.Name == "" {
		return field.ErrorList{field.Required(at, "the name of the partition, for example mig-1g10gb")}
	}
	if count := partition.Count; count != nil && (*count < 1 || *count > maxCount) {
		return field.ErrorList{field.Invalid(path.Child("count"), *count, fmt.Sprintf("must be between 1 and %d", maxCount))}
	}
	if errs := ValidateLabel(partition.Name, at); len(errs) > 0 || IsTemplate(device.Name) {
		return errs
	}
	number := int32(partition.number())
	return validateOwned(device, "-"+partition.Name+endOf(&number), at)
}

// number is how many partitions each device has.
func (p *PartitionTemplate) number() int {
	if p.Count != nil {
		return int(*p.Count)
	}
	return max(1, len(p.Placements))
}

// size is how many slots a partition takes.
func (p *PartitionTemplate) size() int32 {
	if p.Size != nil {
		return *p.Size
	}
	return 1
}

func validatePlacements(slots *Slots, partition *PartitionTemplate, path *field.Path) field.ErrorList {
	placements, size := path.Child("placements"), path.Child("size")
	switch {
	case len(partition.Placements) == 0 && partition.Size != nil:
		return field.ErrorList{field.Forbidden(size, "only with placements, the slots that partitions start at")}
	case len(partition.Placements) == 0:
		return nil
	case slots == nil:
		return field.ErrorList{field.Forbidden(placements, "only where the device has slots")}
	case partition.Count != nil:
		return field.ErrorList{field.Forbidden(path.Child("count"), "there is one partition for each of placements: leave count out")}
	case partition.size() < 1:
		return field.ErrorList{field.Invalid(size, partition.size(), "must be at least 1")}
	}
	var errs field.ErrorList
	for i, first := range partition.Placements {
		switch last := int64(first) + int64(partition.size()) - 1; {
		case first < 0 || last >= int64(slots.Count):
			errs = append(errs, field.Invalid(placements.Index(i), first, fmt.Sprintf("the partition would take the slots %d to %d, and the device has 0 to %d", first, last, slots.Count-1)))
		case slices.Contains(partition.Placements[:i], first):
			errs = append(errs, field.Duplicate(placements.Index(i), first))
		}
	}
	return errs
}

// validateConsumes wants a partition to take something, and no more than there
// is.
func validateConsumes(device *DeviceTemplate, partition *PartitionTemplate, path *field.Path) field.ErrorList {
	at := path.Child("consumes")
	if len(partition.Consumes) == 0 && len(partition.Placements) == 0 {
		return field.ErrorList{field.Required(at, "the partition takes nothing of the device: give consumes, or placements")}
	}
	var errs field.ErrorList
	for _, name := range slices.Sorted(maps.Keys(partition.Consumes)) {
		taken := partition.Consumes[name]
		there, has := device.Counters[name]
		if !has {
			errs = append(errs, field.Invalid(at.Key(name), name, "must be one of the device's counters"+of(device.Counters)))
			continue
		}
		errs = append(errs, notNegative(taken, at.Key(name))...)
		errs = append(errs, atMost(&taken, &there, "what the device has", at.Key(name))...)
	}
	return errs
}

// validateInheritedResources checks that a partition has the capacities that the
// device's nodeAllocatableResources name, since the partition has these too.
func validateInheritedResources(device *DeviceTemplate, partition *PartitionTemplate, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	for _, name := range slices.Sorted(maps.Keys(device.NodeAllocatableResources)) {
		mapping := device.NodeAllocatableResources[name].Mapping
		if mapping == nil || mapping.CapacityKey == nil {
			continue
		}
		if _, has := partition.Capacity[*mapping.CapacityKey]; !has {
			errs = append(errs, field.Required(path.Key(string(*mapping.CapacityKey)), fmt.Sprintf("nodeAllocatableResources[%s] of the device names it, and is the partitions' too", name)))
		}
	}
	return errs
}

// validateTotal bounds a group with all its partitions.
func validateTotal(device *DeviceTemplate, path *field.Path) field.ErrorList {
	total := int64(1)
	for i := range device.Partitions {
		total += int64(device.Partitions[i].number())
	}
	if device.Count != nil {
		total *= int64(*device.Count)
	}
	if total <= maxCount {
		return nil
	}
	return field.ErrorList{field.Invalid(path, total, fmt.Sprintf("devices and partitions of a group must be at most %d together", maxCount))}
}
