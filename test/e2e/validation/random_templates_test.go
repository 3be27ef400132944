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
	spec := object{"driver": pick(r, harness.Driver, "d", r.letters(63))}
	if r.chance(2) {
		spec["driver"] = "UPPER.example.com"
	}
	r.poolName(spec)
	sets := r.sharedCounters(spec)
	var devices []any
	for i := range 1 + r.few(5) {
		devices = append(devices, r.device(i, spec, sets))
	}
	spec["devices"] = devices
	r.slices(spec)
	r.rest(spec)
	return yaml.Marshal(object{
		"apiVersion": "dra.kwok.x-k8s.io/v1alpha1", "kind": "ResourcePoolTemplate",
		"metadata": object{"name": pick(r, "t", r.letters(253), "a.b-c")}, "spec": spec,
	})
}

func (r *random) poolName(spec object) {
	if r.chance(25) {
		selector := object{"nodeSelectorTerms": []any{r.term()}}
		spec["sharedWith"] = pick(r, object{"allNodes": true}, object{"nodeSelector": selector}, object{"perDeviceNodeSelection": true})
		spec["poolName"], r.shared = pick(r, "", "shared", "rack/1"), true
		return
	}
	spec["poolName"] = pick(r, "", "fixed-{{ .Node.metadata.name }}", "a.b/{{ .Node.metadata.name }}", r.letters(246)+"-{{ .Node.metadata.name }}", "{{ .Node.metadata.name }}/{{ .Node.metadata.uid }}")
}

// term draws the term of a node selector that the only node fits.
func (r *random) term() object {
	expression := pick(r,
		object{"key": "kind", "operator": "In", "values": []any{"a", "random", r.letters(63)}},
		object{"key": "example.com/" + r.letters(63), "operator": "DoesNotExist"},
		object{"key": "kind", "operator": "NotIn", "values": []any{""}},
		object{"key": "size", "operator": "Gt", "values": []any{"7"}})
	name := object{"key": "metadata.name", "operator": "In", "values": []any{"random"}}
	return pick(r, object{"matchExpressions": []any{expression}}, object{"matchFields": []any{name}}, object{"matchExpressions": []any{expression}, "matchFields": []any{name}})
}

// sharedCounters draws counter sets, and returns the names and the counters that
// there are of each, with the number of like ones.
func (r *random) sharedCounters(spec object) []object {
	var sets []any
	var known []object
	for i := range r.few(3) {
		set := object{"name": fmt.Sprintf("%s%d", r.label(50), i), "counters": r.counters(32, valued)}
		if r.chance(60) {
			set["count"] = pick(r, 1, 2, 8, 9, 17)
		} else if r.chance(30) {
			set["name"] = pick(r, fmt.Sprintf(`set%d-{{ printf "%%02x" .Index }}`, i), r.letters(62)+"{{ .Index }}")
		}
		sets, known = append(sets, set), append(known, set)
	}
	if len(sets) > 0 {
		spec["sharedCounters"] = sets
	}
	return known
}

func (r *random) device(i int, spec object, sets []object) object {
	device := object{"name": fmt.Sprintf("%s%d", r.label(pick(r, 12, 40, 52, 61)), i)}
	limit := 31
	if r.chance(50) {
		device["count"] = pick(r, 1, 2, 3)
	}
	if r.chance(8) {
		device["count"], limit = pick(r, 8, 63, 64, 65, 127, 128, 129), 4
	}
	if r.chance(20) {
		device["name"] = fmt.Sprintf(`pci%d-{{ printf "%%02x" .Index }}`, i)
	}
	if r.chance(5) {
		device["name"] = pick(r, r.letters(pick(r, 50, 54, 60, 61))+"{{ .Index }}", "Nic_{{ .Index }}")
	}
	if r.chance(25) {
		device["allowMultipleAllocations"] = r.chance(70)
	}
	capacity := r.capacity(limit/4, device["allowMultipleAllocations"] == true)
	device["attributes"], device["capacity"] = r.attributes(limit-len(capacity)), capacity
	if r.chance(20) {
		device["taints"] = r.taints()
	}
	r.conditions(device)
	if r.chance(30) {
		r.consumes(device, sets)
	}
	if r.chance(25) {
		r.partitions(device, 4)
		if list, is := device["consumesCounters"].([]any); is {
			device["consumesCounters"] = list[:min(len(list), 1)]
		}
	}
	if r.minor > 36 && r.chance(10) {
		device["nodeAllocatableResources"] = r.nodeResources(capacity)
	}
	if shared, is := spec["sharedWith"].(object); is && shared["perDeviceNodeSelection"] == true {
		r.nodesOf(device)
	}
	return device
}

// consumes has a device take of one or two of the counter sets.
func (r *random) consumes(device object, sets []object) {
	var list []any
	for _, set := range sets[:min(len(sets), 1+r.IntN(2))] {
		name := set["name"].(string)
		switch {
		case strings.Contains(name, "{{"):
			name = strings.ReplaceAll(name, ".Index", "0")
		case set["count"] != nil:
			name = fmt.Sprintf("%s-{{ mod .Index %d }}", name, set["count"])
		}
		taken := object{}
		for _, counter := range slices.Sorted(maps.Keys(set["counters"].(object))) {
			if len(taken) == 0 || r.chance(50) {
				taken[counter] = valued(r.quantity())
			}
		}
		consumption := object{"counterSet": name, "counters": taken}
		if r.minor > 36 && r.chance(20) {
			consumption["compatibilityGroups"] = pick(r, []any{"a"}, []any{"a", r.letters(63)})
		}
		list = append(list, consumption)
	}
	if len(list) > 0 && r.chance(5) {
		again := maps.Clone(list[0].(object))
		again["counterSet"] = again["counterSet"].(string) + "{{/* again */}}"
		list = append(list[:1], again)
	}
	device["consumesCounters"] = list
}

func (r *random) nodesOf(device object) {
	switch r.IntN(3) {
	case 0:
		device["nodeName"] = pick(r, "random", r.letters(253), "node-{{ .Index }}", "random", "{{ if .Index }}node{{ end }}")
		delete(device, "nodeAllocatableResources") // only where the nodes are there
	case 1:
		device["nodeSelector"] = object{"nodeSelectorTerms": []any{r.term()}}
	default:
		device["allNodes"] = true
	}
}

// slices says where some of the devices are to be.
func (r *random) slices(spec object) {
	if !r.chance(15) {
		return
	}
	var parts []any
	for _, device := range spec["devices"].([]any) {
		if name := device.(object)["name"]; r.chance(90) {
			parts = append(parts, object{"devices": []any{name}})
		}
	}
	spec["slices"] = parts
}

// rest draws what is of whole pools, and what has no part in slices.
func (r *random) rest(spec object) {
	if r.chance(10) {
		spec["nodeSelector"] = object{"nodeSelectorTerms": []any{r.term(), r.term()}}
	}
	if r.chance(10) {
		spec["priority"], spec["health"] = r.IntN(3)-1, pick(r, "Unknown", "Report")
	}
	if r.minor < 37 {
		return
	}
	if r.chance(10) {
		spec["skipNodeOperations"] = pick(r, []any{"*"}, []any{"NodeUnprepareResources"}, []any{"NodePrepareResources", "NodeUnprepareResources"})
	}
	if consumes(spec) && r.chance(40) {
		spec["partitionTypeAttribute"] = spec["driver"].(string) + "/type"
		for _, device := range spec["devices"].([]any) {
			attributes := device.(object)["attributes"].(object)
			attributes["type"] = pick[any](r, "whole", object{"string": "{{ .Index }}"})
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
