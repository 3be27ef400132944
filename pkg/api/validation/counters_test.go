package validation

import (
	"strings"
	"testing"
)

func TestRulesOfCounters(t *testing.T) {
	t.Parallel()
	set := func(fields string) string { return "sharedCounters: [{" + fields + "}]\n" + deviceSpec("") }
	consumes := func(list string) string { return deviceSpec("consumesCounters: [" + list + "]") }
	const counters = "counters: {m: {value: 1}}"
	const first = "spec.devices[0].consumesCounters[0]"
	requireRules(t, map[string]rule{
		"name of a set":       {set("name: a, " + counters), set("name: A, " + counters), "spec.sharedCounters[0].name", `use "a"`},
		"template of a set":   {set("name: 'A{{ .Index }}', " + counters), set("name: '', " + counters), "spec.sharedCounters[0].name", "the name of the counter set"},
		"count of a set":      {set("name: a, count: 1, " + counters), set("name: a, count: 0, " + counters), "spec.sharedCounters[0].count", "between 1 and 10000"},
		"long name":           {set("name: " + strings.Repeat("a", 61) + ", count: 10, " + counters), set("name: " + strings.Repeat("a", 61) + ", count: 11, " + counters), "spec.sharedCounters[0].name", "must be at most 60 characters"},
		"counters of a set":   {set("name: a, counters: {" + many(32, "c%d: {value: 1}") + "}"), set("name: a, counters: {" + many(33, "c%d: {value: 1}") + "}"), "spec.sharedCounters[0].counters", "at most 32"},
		"no counters":         {set("name: a, " + counters), set("name: a"), "spec.sharedCounters[0].counters", "at least one counter"},
		"name of a counter":   {set("name: a, counters: {m-1: {value: 0}}"), set("name: a, counters: {m_1: {value: 0}}"), "spec.sharedCounters[0].counters[m_1]", `use "m-1"`},
		"value of a counter":  {set("name: a, counters: {m: {value: 0}}"), set("name: a, counters: {m: {value: -1}}"), "spec.sharedCounters[0].counters[m].value", "must not be less than 0"},
		"two sets":            {consumes("{counterSet: a, " + counters + "}, {counterSet: b, " + counters + "}"), consumes("{counterSet: a, " + counters + "}, {counterSet: b, " + counters + "}, {counterSet: c, " + counters + "}"), "spec.devices[0].consumesCounters", "at most 2 counter sets"},
		"own and another":     {deviceSpec("counters: {m: 1}, consumesCounters: [{counterSet: a, " + counters + "}]"), deviceSpec("counters: {m: 1}, consumesCounters: [{counterSet: gpu-counters, " + counters + "}]"), first + ".counterSet", "is the device's own counter set"},
		"set twice":           {consumes("{counterSet: a, " + counters + "}"), consumes("{counterSet: a, " + counters + "}, {counterSet: a, " + counters + "}"), "spec.devices[0].consumesCounters[1].counterSet", "Duplicate"},
		"set's name":          {consumes("{counterSet: 'A{{ .Index }}', " + counters + "}"), consumes("{counterSet: A, " + counters + "}"), first + ".counterSet", `use "a"`},
		"no set":              {consumes("{counterSet: a, " + counters + "}"), consumes("{" + counters + "}"), first + ".counterSet", "one of the template's sharedCounters"},
		"nothing of a set":    {consumes("{counterSet: a, " + counters + "}"), consumes("{counterSet: a, counters: {}}"), first + ".counters", "at least one counter"},
		"much of a set":       {consumes("{counterSet: a, counters: {" + many(32, "c%d: {value: 1}") + "}}"), consumes("{counterSet: a, counters: {" + many(33, "c%d: {value: 1}") + "}}"), first + ".counters", "at most 32"},
		"groups":              {consumes("{counterSet: a, " + counters + ", compatibilityGroups: [a, b]}"), consumes("{counterSet: a, " + counters + ", compatibilityGroups: [a, b, c]}"), first + ".compatibilityGroups", "at most 2"},
		"group twice":         {consumes("{counterSet: a, " + counters + ", compatibilityGroups: [a]}"), consumes("{counterSet: a, " + counters + ", compatibilityGroups: [a, a]}"), first + ".compatibilityGroups[1]", "Duplicate"},
		"group's name":        {consumes("{counterSet: a, " + counters + ", compatibilityGroups: []}"), consumes("{counterSet: a, " + counters + ", compatibilityGroups: [A]}"), first + ".compatibilityGroups[0]", `use "a"`},
		"own counters":        {deviceSpec("counters: {" + many(32, "c%d: 1") + "}"), deviceSpec("counters: {" + many(33, "c%d: 1") + "}"), "spec.devices[0].counters", "counters and slots must be at most 32 together"},
		"counters and slots":  {deviceSpec("counters: {m: 1}, slots: {count: 31}"), deviceSpec("counters: {m: 1}, slots: {count: 32}"), "spec.devices[0].counters", "33"},
		"slots":               {deviceSpec("slots: {count: 32}"), deviceSpec("slots: {count: 33}"), "spec.devices[0].slots.count", "between 1 and 32"},
		"no slots":            {deviceSpec("slots: {count: 1}"), deviceSpec("slots: {}"), "spec.devices[0].slots.count", "between 1 and 32"},
		"name of slots":       {deviceSpec("slots: {name: memory-slice, count: 8}"), deviceSpec("slots: {name: Memory, count: 8}"), "spec.devices[0].slots.name", `use "memory"`},
		"long name of slots":  {deviceSpec("slots: {name: " + strings.Repeat("a", 61) + ", count: 10}"), deviceSpec("slots: {name: " + strings.Repeat("a", 61) + ", count: 11}"), "spec.devices[0].slots.name", "at most 60"},
		"slot and counter":    {deviceSpec("counters: {slot-8: 1, slot: 1}, slots: {count: 8}"), deviceSpec("counters: {slot-7: 1}, slots: {count: 8}"), "spec.devices[0].slots.name", "slot-7"},
		"own counter's name":  {deviceSpec("counters: {m: 0}"), deviceSpec("counters: {M: 0}"), "spec.devices[0].counters[M]", `use "m"`},
		"own counter's value": {deviceSpec("counters: {m: 0}"), deviceSpec("counters: {m: -1m}"), "spec.devices[0].counters[m]", "must not be less than 0"},
		"own set's name":      {"devices: [{name: " + strings.Repeat("a", 52) + ", count: 10, counters: {m: 1}}]", "devices: [{name: " + strings.Repeat("a", 53) + ", count: 10, counters: {m: 1}}]", "spec.devices[0].counters", "must be at most 63 characters, is 64: give the device a shorter name"},
	})
}

func TestRulesOfPartitions(t *testing.T) {
	t.Parallel()
	slotted := func(partition string) string {
		return deviceSpec("counters: {m: 8}, slots: {count: 8}, partitions: [{name: p, " + partition + "}]")
	}
	const first = "spec.devices[0].partitions[0]"
	named := func(device, partition, count string) string {
		return "devices: [{name: " + device + ", count: 10, counters: {m: 8}, partitions: [{name: " + partition + ", count: " + count + ", consumes: {m: 1}}]}]"
	}
	requireRules(t, map[string]rule{
		"of something":       {deviceSpec("slots: {count: 1}, partitions: [{name: p, placements: [0]}]"), deviceSpec("partitions: [{name: p, placements: [0]}]"), "spec.devices[0].partitions", "give it some"},
		"count":              {slotted("count: 1, consumes: {m: 1}"), slotted("count: 0, consumes: {m: 1}"), first + ".count", "between 1"},
		"consumes":           {slotted("consumes: {m: 8}"), slotted("consumes: {m: 8001m}"), first + ".consumes[m]", "at most what the device has, 8"},
		"consumes nothing":   {slotted("consumes: {m: 0}"), slotted("consumes: {m: -1}"), first + ".consumes[m]", "must not be less than 0"},
		"takes something":    {slotted("placements: [7]"), slotted("count: 2"), first + ".consumes", "takes nothing"},
		"not of slots":       {slotted("consumes: {m: 1}, placements: [0]"), slotted("consumes: {slot-0: 1}"), first + ".consumes[slot-0]", "must be one of the device's counters; it has m"},
		"slots":              {slotted("placements: [0, 4], size: 4"), slotted("placements: [0, 5], size: 4"), first + ".placements[1]", "the slots 5 to 8, and the device has 0 to 7"},
		"first slot":         {slotted("placements: [0]"), slotted("placements: [-1]"), first + ".placements[0]", "the slots -1 to -1"},
		"huge slot":          {slotted("placements: [7]"), slotted("placements: [2147483647], size: 2147483647"), first + ".placements[0]", "the slots 2147483647 to 4294967293"},
		"slot twice":         {slotted("placements: [0, 1]"), slotted("placements: [0, 0]"), first + ".placements[1]", "Duplicate"},
		"size":               {slotted("placements: [0], size: 1"), slotted("placements: [0], size: 0"), first + ".size", "at least 1"},
		"size of placements": {slotted("placements: [0], size: 8"), slotted("consumes: {m: 1}, size: 1"), first + ".size", "only with placements"},
		"count or places":    {slotted("placements: [0]"), slotted("placements: [0], count: 1"), first + ".count", "leave count out"},
		"places need slots":  {slotted("placements: [0]"), deviceSpec("counters: {m: 1}, partitions: [{name: p, placements: [0]}]"), first + ".placements", "only where the device has slots"},
		"name":               {named("d", "p-1", "1"), named("d", "P_1", "1"), first + ".name", `use "p-1"`},
		"no name":            {named("d", "p", "1"), named("d", "''", "1"), first + ".name", "the name of the partition"},
		"long name":          {named("d", strings.Repeat("p", 57), "10"), named("d", strings.Repeat("p", 57), "11"), first + ".name", "must be at most 63 characters, is 64: give the device a shorter name"},
		"total":              {named("d", "p", "999"), named("d", "p", "1000"), "spec.devices[0].partitions", "10010: devices and partitions of a group must be at most 10000 together"},
		"resources": {
			deviceSpec("counters: {m: 8}, capacity: {c: 1}, nodeAllocatableResources: {cpu: {mapping: {capacityKey: c, capacityMultiplier: 1}}}, partitions: [{name: p, consumes: {m: 1}, capacity: {c: 1}}]"),
			deviceSpec("counters: {m: 8}, capacity: {c: 1}, nodeAllocatableResources: {cpu: {mapping: {capacityKey: c, capacityMultiplier: 1}}}, partitions: [{name: p, consumes: {m: 1}}]"),
			first + ".capacity[c]", "nodeAllocatableResources[cpu] of the device names it",
		},
	})
}

func TestRulesOfTheRest(t *testing.T) {
	t.Parallel()
	resources := func(r string) string {
		return deviceSpec("capacity: {c: 1}, nodeAllocatableResources: {" + r + "}")
	}
	const cpu = "spec.devices[0].nodeAllocatableResources[cpu]"
	typed := func(fields string) string {
		return "partitionTypeAttribute: gpu.example.com/type\n" + deviceSpec(fields)
	}
	skip := func(list string) string { return "skipNodeOperations: [" + list + "]\n" + deviceSpec("") }
	requireRules(t, map[string]rule{
		"resource":         {resources("hugepages-2Mi: {overhead: {perPod: 0}}"), resources("ephemeral-storage: {overhead: {perPod: 0}}"), "spec.devices[0].nodeAllocatableResources[ephemeral-storage]", "must be cpu, memory or hugepages-<size>"},
		"way":              {resources("cpu: {mapping: {deviceMultiplier: 1}, overhead: {perContainer: 1}}"), resources("cpu: {}"), cpu, "mapping, overhead or both"},
		"mapping of one":   {resources("cpu: {mapping: {capacityKey: c, capacityMultiplier: 1}}"), resources("cpu: {mapping: {capacityKey: c, capacityMultiplier: 1, deviceMultiplier: 1}}"), cpu + ".mapping", "exactly one"},
		"mapping of none":  {resources("cpu: {mapping: {deviceMultiplier: 100m}}"), resources("cpu: {mapping: {}}"), cpu + ".mapping", "exactly one"},
		"key":              {resources("cpu: {mapping: {capacityKey: c, capacityMultiplier: 1}}"), resources("cpu: {mapping: {capacityKey: d, capacityMultiplier: 1}}"), cpu + ".mapping.capacityKey", "must be the name of a capacity of the device; it has c"},
		"multiplier":       {resources("cpu: {mapping: {capacityKey: c, capacityMultiplier: 1m}}"), resources("cpu: {mapping: {capacityKey: c, capacityMultiplier: 0}}"), cpu + ".mapping.capacityMultiplier", "more than 0"},
		"key, multiplier":  {resources("cpu: {mapping: {deviceMultiplier: 1}}"), resources("cpu: {mapping: {deviceMultiplier: 1, capacityMultiplier: 1}}"), cpu + ".mapping", "both of capacityKey and capacityMultiplier"},
		"overhead":         {resources("memory: {overhead: {perPod: 0}}"), resources("memory: {overhead: {perPod: -1}}"), "spec.devices[0].nodeAllocatableResources[memory].overhead.perPod", "less than 0"},
		"overhead of none": {resources("memory: {overhead: {perContainer: 0}}"), resources("memory: {overhead: {}}"), "spec.devices[0].nodeAllocatableResources[memory].overhead", "perPod, perContainer or both"},
		"type":             {typed("counters: {m: 1}, attributes: {type: a}"), typed("counters: {m: 1}"), "spec.devices[0].attributes[type]", "partitionTypeAttribute names it"},
		"type, qualified":  {typed("counters: {m: 1}, attributes: {gpu.example.com/type: a, type: 1}"), typed("counters: {m: 1}, attributes: {gpu.example.com/type: 1, type: a}"), "spec.devices[0].attributes[gpu.example.com/type]", "must be a string"},
		"type, inherited":  {typed("counters: {m: 1}, attributes: {type: a}, partitions: [{name: p, consumes: {m: 1}}]"), typed("counters: {m: 1}, attributes: {type: a}, partitions: [{name: p, consumes: {m: 1}, attributes: {type: true}}]"), "spec.devices[0].partitions[0].attributes[type]", "must be a string"},
		"type of nothing":  {typed("slots: {count: 1}, attributes: {type: a}"), typed("attributes: {type: a}"), "spec.partitionTypeAttribute", "must not be given without"},
		"type's domain":    {typed("slots: {count: 1}, attributes: {type: a}"), "partitionTypeAttribute: type\n" + deviceSpec(""), "spec.partitionTypeAttribute", `use "gpu.example.com/type"`},
		"type's case":      {typed("slots: {count: 1}, attributes: {type: a}"), "partitionTypeAttribute: GPU.example.com/type\n" + deviceSpec("slots: {count: 1}"), "spec.partitionTypeAttribute", "in lower case"},
		"type's name":      {typed("slots: {count: 1}, attributes: {type: a}"), "partitionTypeAttribute: a.b/a-b\n" + deviceSpec(""), "spec.partitionTypeAttribute", `use "a.b/a_b"`},
		"some without": {
			"partitionTypeAttribute: gpu.example.com/type\ndevices: [{name: a}, {name: b, slots: {count: 1}, attributes: {type: a}}]",
			"partitionTypeAttribute: gpu.example.com/type\ndevices: [{name: a, consumesCounters: [{counterSet: a, counters: {m: {value: 1}}}]}, {name: b, slots: {count: 1}, attributes: {type: a}}]",
			"spec.devices[0].attributes[type]", "names it",
		},
		"skip all":       {skip("'*', NodePrepareResources"), skip("NodePrepareResources"), "spec.skipNodeOperations", "must have NodeUnprepareResources with NodePrepareResources"},
		"skip both":      {skip("NodePrepareResources, NodeUnprepareResources"), skip("'*', NodeWatchResources"), "spec.skipNodeOperations[1]", "Unsupported"},
		"skip twice":     {skip("NodeUnprepareResources"), skip("NodeUnprepareResources, NodeUnprepareResources"), "spec.skipNodeOperations[1]", "Duplicate"},
		"slices":         {"slices: [{devices: [gpu]}]\n" + deviceSpec(""), "slices: [{devices: []}]\n" + deviceSpec(""), "spec.slices[0].devices", "name at least one device"},
		"slices' device": {"slices: [{devices: [gpu]}]\n" + deviceSpec(""), "slices: [{devices: [gpu, '']}]\n" + deviceSpec(""), "spec.slices[0].devices[1]", "the name of a device"},
	})
}
