package validation

import (
	"maps"
	"strings"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/kwok-dra/kwok-dra/internal/util/fieldcheck"
	"github.com/kwok-dra/kwok-dra/pkg/api/v1alpha1"
)

const (
	// maxSets limits the counter sets that a device consumes from.
	maxSets = resourcev1.ResourceSliceMaxDeviceCounterConsumptionsPerDevice
	// maxCounters limits the counters of a set, and those that a device consumes of it.
	maxCounters = resourcev1.ResourceSliceMaxCountersPerCounterSet
)

// hasOwnCounters reports whether each device of the group has a counter set.
func hasOwnCounters(device *v1alpha1.DeviceTemplate) bool {
	return len(device.Counters) > 0 || device.Slots != nil
}

// validateCounters checks the counters of a set, or the part of them that a device consumes. It
// refuses negative values, which mean nothing although the API server accepts them.
func validateCounters(counters map[string]resourcev1.Counter, at fieldcheck.Checker) {
	at.RequirePresence(len(counters) > 0, "give at least one counter, for example memory: {value: 80Gi}")
	at.LimitItems(len(counters), maxCounters)
	fieldcheck.CheckValues(at, counters, func(name string, counter resourcev1.Counter, at fieldcheck.Checker) {
		labelForm.checkName(name, at)
		at.AtField("value").RequireNotNegative(&counter.Value)
	})
}

// shorterName ends the error of a name that begins with that of a device, and is too long.
const shorterName = ": give the device a shorter name"

// validateOwnCounters checks the counters and slots that each device of a group has for itself and
// its partitions, and the partitions.
func validateOwnCounters(device *v1alpha1.DeviceTemplate, at fieldcheck.Checker) {
	partitions := at.AtField("partitions")
	if !hasOwnCounters(device) {
		partitions.Forbid(len(device.Partitions) > 0, "partitions take of the counters or slots of their device: give it some")
		return
	}
	before, counters := len(at.Errors()), at.AtField("counters")
	fieldcheck.CheckValues(counters, device.Counters, func(name string, value resource.Quantity, at fieldcheck.Checker) {
		labelForm.checkName(name, at)
		at.RequireNotNegative(&value)
	})
	total := len(device.Counters)
	if slots, at := device.Slots, at.AtField("slots"); slots != nil {
		total += int(slots.Count)
		if validateCount(&slots.Count, maxCounters, at) {
			validateEnding(slots.Name, endOf(&slots.Count), at.AtField("name"))
			for i := range slots.Count {
				counter := slots.Counter(i)
				_, taken := device.Counters[counter]
				at.AtField("name").RequireThat(!taken, slots.Name, "makes the counter %s, which counters has as well: rename one", counter)
			}
		}
	}
	switch {
	case len(at.Errors()) > before:
	case total > maxCounters:
		counters.AddInvalid(total, "counters and slots must be at most %d together", maxCounters)
	case !v1alpha1.IsTemplate(device.Name):
		counters.LimitLength(v1alpha1.CounterSetOf(device.Name+endOf(device.Count)), labelForm.max, shorterName)
	}
	seen, made := sets.New[string](), int64(1)
	for i := range device.Partitions {
		partition, at := &device.Partitions[i], partitions.AtIndex(i)
		validatePartition(device, partition, at)
		if seen.Has(partition.Name) {
			at.AddErrors(field.Duplicate(at.Path.Child("name"), partition.Name))
		}
		seen.Insert(partition.Name)
		made += int64(partition.Number())
	}
	if device.Count != nil {
		made *= int64(*device.Count)
	}
	if len(device.Partitions) > 0 {
		partitions.RequireThat(made <= maxCount, made, "devices and partitions of a group must be at most %d together", maxCount)
	}
}

func validatePartition(device *v1alpha1.DeviceTemplate, partition *v1alpha1.PartitionTemplate, at fieldcheck.Checker) {
	switch name := at.AtField("name"); {
	case partition.Name == "":
		name.RequirePresence(false, "the name of the partition, for example mig-1g10gb")
	case !validateCount(partition.Count, maxCount, at):
	case !labelForm.isFitting(partition.Name):
		labelForm.checkName(partition.Name, name)
	case !v1alpha1.IsTemplate(device.Name):
		number := int32(partition.Number())
		name.LimitLength(device.Name+endOf(device.Count)+"-"+partition.Name+endOf(&number), labelForm.max, shorterName)
	}
	slots, placements, size := device.Slots, at.AtField("placements"), at.AtField("size")
	switch {
	case len(partition.Placements) == 0 && partition.Size != nil:
		size.Forbid(true, "only with placements, the slots that partitions start at")
	case len(partition.Placements) == 0:
	case slots == nil:
		placements.Forbid(true, "only where the device has slots")
	case partition.Count != nil:
		at.AtField("count").Forbid(true, "there is one partition for each of placements: leave count out")
	case partition.Slots() < 1:
		size.AddInvalid(partition.Slots(), "must be at least 1")
	default:
		fieldcheck.CheckItems(placements, partition.Placements, func(first int32, at fieldcheck.Checker) {
			last := int64(first) + int64(partition.Slots()) - 1
			at.RequireThat(first >= 0 && last < int64(slots.Count), first,
				"the partition would take the slots %d to %d, and the device has 0 to %d", first, last, slots.Count-1)
		})
	}
	consumes := at.AtField("consumes")
	consumes.RequirePresence(len(partition.Consumes)+len(partition.Placements) > 0,
		"the partition takes nothing of the device: give consumes, or placements")
	fieldcheck.CheckValues(consumes, partition.Consumes, func(name string, taken resource.Quantity, at fieldcheck.Checker) {
		there, has := device.Counters[name]
		if at.RequireThat(has, name, "must be one of the device's counters%s", fieldcheck.ListNames(device.Counters)) {
			at.RequireNotNegative(&taken)
			at.LimitQuantity(&taken, &there, "what the device has")
		}
	})
	validateProperties(device, partition, at)
	// A partition inherits nodeAllocatableResources, so it needs the capacities that these name.
	fieldcheck.CheckValues(at, device.NodeAllocatableResources, func(name corev1.ResourceName, taken resourcev1.NodeAllocatableResource, _ fieldcheck.Checker) {
		if taken.Mapping != nil && taken.Mapping.CapacityKey != nil {
			key := *taken.Mapping.CapacityKey
			_, has := partition.Capacity[key]
			at.AtField("capacity").AtKey(string(key)).RequirePresence(has, "nodeAllocatableResources[%s] of the device names it, and is the partitions' too", name)
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
func validatePartitionType(spec *v1alpha1.ResourcePoolTemplateSpec, at fieldcheck.Checker) {
	if spec.PartitionTypeAttribute == nil {
		return
	}
	name, given, before := string(*spec.PartitionTypeAttribute), at.AtField("partitionTypeAttribute"), len(at.Errors())
	// The API server is stricter about the domain here than in the names of attributes.
	switch domain, _, qualified := strings.Cut(name, "/"); {
	case !qualified:
		given.AddInvalid(name, `must have a domain and "/" before the name%s`, proposeValue(spec.Driver+"/"+name, isQualified))
	case domain != strings.ToLower(domain):
		given.AddInvalid(name, `must have a domain in lower case before the "/", also where the driver's name has capitals`)
	default:
		validateQualifiedName(name, given)
	}
	if len(at.Errors()) > before {
		return
	}
	requireText := func(attributes map[resourcev1.QualifiedName]v1alpha1.Attribute, at fieldcheck.Checker) {
		key := resourcev1.QualifiedName(name)
		if _, has := attributes[key]; !has { // like the API server, prefer the name with the domain
			key = resourcev1.QualifiedName(strings.TrimPrefix(name, spec.Driver+"/"))
		}
		attribute, has := attributes[key]
		at = at.AtField("attributes").AtKey(string(key))
		if at.RequirePresence(has, "partitionTypeAttribute names it, and the device consumes counters") {
			at.RequireThat(attribute.Type == v1alpha1.AttributeString, shownValue(attribute), "must be a string, since partitionTypeAttribute names it")
		}
	}
	consumers := 0
	for i := range spec.Devices {
		device, at := &spec.Devices[i], at.AtField("devices").AtIndex(i)
		if !hasOwnCounters(device) && len(device.ConsumesCounters) == 0 {
			continue
		}
		consumers++
		requireText(device.Attributes, at)
		for j := range device.Partitions {
			requireText(attributesOf(device, &device.Partitions[j]), at.AtField("partitions").AtIndex(j))
		}
	}
	given.RequireThat(consumers > 0, name, "must not be given without a device that has counters, slots or consumesCounters")
}
