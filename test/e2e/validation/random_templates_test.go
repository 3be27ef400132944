package validation

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"

	"github.com/kwok-dra/kwok-dra/test/e2e/harness"
)

// randomTemplate draws a ResourcePoolTemplate in YAML. It is always the same for
// a seed.
func randomTemplate(seed uint64, minor int) ([]byte, error) {
	r := &random{Rand: rand.New(rand.NewPCG(seed, 36)), minor: minor}
	d := &drawing{random: r, spec: object{"driver": pick(r, harness.Driver, "d", r.letters(63))}}
	if r.chance(2) {
		d.spec["driver"] = "UPPER.example.com"
	}
	d.poolName()
	d.sharedCounters()
	var devices []any
	for i := range 1 + r.few(5) {
		devices = append(devices, d.device(i))
	}
	d.spec["devices"] = devices
	d.slices()
	d.rest()
	return yaml.Marshal(object{
		"apiVersion": "dra.kwok.x-k8s.io/v1alpha1", "kind": "ResourcePoolTemplate",
		"metadata": object{"name": pick(r, "t", r.letters(253), "a.b-c")}, "spec": d.spec,
	})
}

// drawing is a template that is being drawn.
type drawing struct {
	*random
	spec object
	// sets are the counter sets, with the number of like ones.
	sets []object
}

func (d *drawing) poolName() {
	if d.chance(25) {
		selector := object{"nodeSelectorTerms": []any{d.term()}}
		d.spec["sharedWith"] = pick(d, object{"allNodes": true}, object{"nodeSelector": selector}, object{"perDeviceNodeSelection": true})
		d.spec["poolName"], d.shared = pick(d, "", "shared", "rack/1"), true
		return
	}
	d.spec["poolName"] = pick(d, "", "fixed-{{ .Node.metadata.name }}", "a.b/{{ .Node.metadata.name }}", d.letters(246)+"-{{ .Node.metadata.name }}", "{{ .Node.metadata.name }}/{{ .Node.metadata.uid }}")
}

// term draws the term of a node selector that the only node fits.
func (d *drawing) term() object {
	expression := pick(d,
		object{"key": "kind", "operator": "In", "values": []any{"a", "random", d.letters(63)}},
		object{"key": "example.com/" + d.letters(63), "operator": "DoesNotExist"},
		object{"key": "kind", "operator": "NotIn", "values": []any{""}},
		object{"key": "size", "operator": "Gt", "values": []any{"7"}})
	name := object{"key": "metadata.name", "operator": "In", "values": []any{"random"}}
	return pick(d, object{"matchExpressions": []any{expression}}, object{"matchFields": []any{name}}, object{"matchExpressions": []any{expression}, "matchFields": []any{name}})
}

// sharedCounters draws counter sets.
func (d *drawing) sharedCounters() {
	var sets []any
	for i := range d.few(3) {
		set := object{"name": fmt.Sprintf("%s%d", d.label(50), i), "counters": d.counters(32, valued)}
		if d.chance(60) {
			set["count"] = pick(d, 1, 2, 8, 9, 17)
		} else if d.chance(30) {
			set["name"] = pick(d, fmt.Sprintf(`set%d-{{ printf "%%02x" .Index }}`, i), d.letters(62)+"{{ .Index }}")
		}
		sets, d.sets = append(sets, set), append(d.sets, set)
	}
	if len(sets) > 0 {
		d.spec["sharedCounters"] = sets
	}
}

func (d *drawing) device(i int) object {
	device := object{"name": fmt.Sprintf("%s%d", d.label(pick(d, 12, 40, 52, 61)), i)}
	limit := 31
	if d.chance(50) {
		device["count"] = pick(d, 1, 2, 3)
	}
	if d.chance(8) {
		device["count"], limit = pick(d, 8, 63, 64, 65, 127, 128, 129), 4
	}
	if d.chance(20) {
		device["name"] = fmt.Sprintf(`pci%d-{{ printf "%%02x" .Index }}`, i)
	}
	if d.chance(5) {
		device["name"] = pick(d, d.letters(pick(d, 50, 54, 60, 61))+"{{ .Index }}", "Nic_{{ .Index }}")
	}
	if d.chance(25) {
		device["allowMultipleAllocations"] = d.chance(70)
	}
	capacity := d.capacity(limit/4, device["allowMultipleAllocations"] == true)
	device["attributes"], device["capacity"] = d.attributes(limit-len(capacity)), capacity
	if d.chance(20) {
		device["taints"] = d.taints()
	}
	d.conditions(device)
	if d.chance(30) {
		d.consumes(device)
	}
	if d.chance(25) {
		d.partitions(device, 4)
		if list, ok := device["consumesCounters"].([]any); ok {
			device["consumesCounters"] = list[:min(len(list), 1)]
		}
	}
	if d.minor > 36 && d.chance(10) {
		device["nodeAllocatableResources"] = d.nodeResources(capacity)
	}
	if shared, ok := d.spec["sharedWith"].(object); ok && shared["perDeviceNodeSelection"] == true {
		d.nodesOf(device)
	}
	return device
}

// consumes has a device take of one or two of the counter sets.
func (d *drawing) consumes(device object) {
	var list []any
	for _, set := range d.sets[:min(len(d.sets), 1+d.IntN(2))] {
		name := set["name"].(string)
		switch {
		case strings.Contains(name, "{{"):
			name = strings.ReplaceAll(name, ".Index", "0")
		case set["count"] != nil:
			name = fmt.Sprintf("%s-{{ mod .Index %d }}", name, set["count"])
		}
		taken := object{}
		for _, counter := range slices.Sorted(maps.Keys(set["counters"].(object))) {
			if len(taken) == 0 || d.chance(50) {
				taken[counter] = valued(d.quantity())
			}
		}
		consumption := object{"counterSet": name, "counters": taken}
		if d.minor > 36 && d.chance(20) {
			consumption["compatibilityGroups"] = pick(d, []any{"a"}, []any{"a", d.letters(63)})
		}
		list = append(list, consumption)
	}
	if len(list) > 0 && d.chance(5) {
		again := maps.Clone(list[0].(object))
		again["counterSet"] = again["counterSet"].(string) + "{{/* again */}}"
		list = append(list[:1], again)
	}
	device["consumesCounters"] = list
}

func (d *drawing) nodesOf(device object) {
	switch d.IntN(3) {
	case 0:
		device["nodeName"] = pick(d, "random", d.letters(253), "node-{{ .Index }}", "random", "{{ if .Index }}node{{ end }}")
		delete(device, "nodeAllocatableResources") // only where the nodes are there
	case 1:
		device["nodeSelector"] = object{"nodeSelectorTerms": []any{d.term()}}
	default:
		device["allNodes"] = true
	}
}

// slices says where some of the devices are to be.
func (d *drawing) slices() {
	if !d.chance(15) {
		return
	}
	var parts []any
	for _, device := range d.spec["devices"].([]any) {
		if name := device.(object)["name"]; d.chance(90) {
			parts = append(parts, object{"devices": []any{name}})
		}
	}
	d.spec["slices"] = parts
}

// rest draws what is of whole pools, and what has no part in slices.
func (d *drawing) rest() {
	if d.chance(10) {
		d.spec["nodeSelector"] = object{"nodeSelectorTerms": []any{d.term(), d.term()}}
	}
	if d.chance(10) {
		d.spec["priority"], d.spec["health"] = d.IntN(3)-1, pick(d, "Unknown", "Report")
	}
	if d.minor < 37 {
		return
	}
	if d.chance(10) {
		d.spec["skipNodeOperations"] = pick(d, []any{"*"}, []any{"NodeUnprepareResources"}, []any{"NodePrepareResources", "NodeUnprepareResources"})
	}
	if consumes(d.spec) && d.chance(40) {
		d.spec["partitionTypeAttribute"] = d.spec["driver"].(string) + "/type"
		for _, device := range d.spec["devices"].([]any) {
			attributes := device.(object)["attributes"].(object)
			attributes["type"] = pick[any](d, "whole", object{"string": "{{ .Index }}"})
		}
	}
}

// consumes reports whether a device consumes counters.
func consumes(spec object) bool {
	return slices.ContainsFunc(spec["devices"].([]any), func(device any) bool {
		list, _ := device.(object)["consumesCounters"].([]any)
		return device.(object)["partitions"] != nil || len(list) > 0
	})
}
