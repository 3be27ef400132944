package validation

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
)

// object is a part of a random document.
type object = map[string]any

// random draws the parts of templates. They lie on the borders of what is valid
// more often than not, and now and then beyond.
type random struct {
	*rand.Rand
	// minor is the Kubernetes that the template is for.
	minor int
	// shared reports whether nodes share the pool, and templates see no Node.
	shared bool
}

func pick[T any](r interface{ IntN(n int) int }, options ...T) T {
	return options[r.IntN(len(options))]
}

// chance is true that many times of a hundred.
func (r *random) chance(percent int) bool {
	return r.IntN(100) < percent
}

// few is mostly small, and at times the limit.
func (r *random) few(limit int) int {
	if r.chance(3) {
		return limit
	}
	return r.IntN(min(limit, 4) + 1)
}

// letters draws a word of lower-case letters.
func (r *random) letters(length int) string {
	word := make([]byte, length)
	for i := range word {
		word[i] = byte('a' + r.IntN(26))
	}
	return string(word)
}

// label draws a DNS label of at most that many characters.
func (r *random) label(limit int) string {
	length := pick(r, 1, 3, 8, limit)
	switch word := r.letters(min(length, limit)); {
	case len(word) > 4 && r.chance(30):
		return word[:2] + "-" + word[3:]
	case r.chance(20):
		return "0" + word[1:]
	default:
		return word
	}
}

// qualifiedName draws the name of an attribute or capacity.
func (r *random) qualifiedName() string {
	id := pick(r, r.letters(3), r.letters(31)+"Z", "_"+r.letters(2)+"_9", strings.ToUpper(r.letters(4)))
	switch r.IntN(6) {
	case 0:
		return "example.com/" + id
	case 1:
		return r.letters(63) + "/" + id
	}
	return id
}

// quantity draws a quantity that is not negative.
func (r *random) quantity() any {
	return pick[any](r, 0, 1, "80Gi", "1500m", "1n", "0.5", "9223372036854775807", "1e30", "100E", "1Ki", 1.25, "10k")
}

// text draws what stands in a string attribute, or a template of it.
func (r *random) text() string {
	if !r.shared && r.chance(20) {
		return pick(r, "{{ uuid .Node.metadata.uid .Index }}", `{{ or .Node.metadata.labels.zone "none" }}`, "{{ .Node.metadata.name | upper }}")
	}
	return pick(r, "", "x", "H100 80GB", strings.Repeat("ä", 32), strings.Repeat("y", 64), `quotes " and ' and \`, "on", "1.0", "gpu-{{ .Index }}")
}

func (r *random) version() string {
	return pick(r, "0.0.0", "1.2.3", "9.0.0-rc.1+build.007", "99999999999999999999.0.0", "1.0.0-"+r.letters(58), "1.{{ .Index }}.0")
}

func (r *random) integer() any {
	return pick[any](r, 0, -1, 42, int64(9223372036854775807), int64(-9223372036854775808))
}

// attribute draws an attribute, in short or upstream form.
func (r *random) attribute() any {
	switch r.IntN(10) {
	case 0:
		return r.text()
	case 1:
		return r.integer()
	case 2:
		return r.chance(50)
	case 3:
		return object{"version": r.version()}
	case 4:
		return object{"string": r.text()}
	case 5:
		return object{"int": pick[any](r, r.integer(), "{{ .Index }}", "{{ add .Index 8 }}")}
	case 6:
		return object{"bool": pick[any](r, true, "{{ eq .Index 0 }}")}
	}
	return r.list()
}

func (r *random) list() any {
	draw, name := pick(r, "string", "int", "bool", "version"), ""
	var values []any
	for range 1 + r.few(8) {
		switch draw {
		case "string":
			values = append(values, r.text())
		case "int":
			values = append(values, r.integer())
		case "bool":
			values = append(values, r.chance(50))
		default:
			values = append(values, r.version())
		}
	}
	if name = draw + "s"; draw == "version" || r.chance(50) {
		return object{name: values}
	}
	return values
}

func (r *random) attributes(limit int) object {
	attributes := object{}
	for range r.few(limit) {
		attributes[r.qualifiedName()] = r.attribute()
	}
	if r.chance(30) {
		attributes["uuid"] = pick(r, "GPU-{{ .Index }}", "fixed", r.text())
	}
	return attributes
}

func (r *random) capacity(limit int, shared bool) object {
	capacity := object{}
	for range r.few(limit) {
		value := pick[any](r, r.quantity(), r.quantity(), "{{ .Index }}Gi", "{{ add 10 .Index }}", "-1")
		capacity[r.qualifiedName()] = value
		if shared && r.chance(50) {
			capacity[r.qualifiedName()] = object{"value": pick[any](r, 10, "10", "{{ add 10 .Index }}"), "requestPolicy": r.policy()}
		} else if r.chance(20) {
			capacity[r.qualifiedName()] = object{"value": value}
		}
	}
	return capacity
}

// policy draws a request policy for a capacity of at least 10.
func (r *random) policy() object {
	values := []any{0, 1, "1500m", 2, "2500m", 3, 4, 5, 6, 7, 8, 9, 10, "11"}
	switch r.IntN(4) {
	case 0:
		return object{}
	case 1:
		return object{"default": pick(r, values...)}
	case 2:
		first := r.IntN(len(values) - 1)
		chosen := values[first:min(len(values), first+1+r.few(10))]
		return object{"default": pick(r, chosen...), "validValues": chosen}
	}
	within := object{"min": pick(r, values...)}
	if r.chance(50) {
		within["max"] = pick(r, values...)
	}
	if r.chance(50) {
		within["step"] = pick[any](r, 1, 2, 3, "500m", "1m", "7")
	}
	return object{"default": pick(r, values...), "validRange": within}
}

func (r *random) taints() []any {
	limit := 16
	if r.minor == 34 {
		limit = 4
	}
	var taints []any
	for range r.few(limit) {
		taint := object{
			"key":    pick(r, "xid", "example.com/xid", r.letters(63), strings.Repeat(r.letters(62)+".", 4)+"x/"+r.letters(63)),
			"effect": pick(r, "NoSchedule", "NoExecute"),
		}
		if r.minor > 34 && r.chance(30) {
			taint["effect"] = "None"
		}
		if r.chance(50) {
			taint["value"] = pick(r, "79", "", r.letters(63), "a_b.c-d")
		}
		if r.chance(20) {
			taint["timeAdded"] = "2026-01-02T15:04:05Z"
		}
		taints = append(taints, taint)
	}
	return taints
}

// conditions draws binding conditions, which need failures.
func (r *random) conditions(device object) {
	names := []string{"example.com/attached", "attached", r.letters(63), "A_b.c", "example.com/failed", "failed", "attaching-failed", "x"}
	if r.chance(15) {
		device["bindingConditions"] = names[:1+r.IntN(4)]
		device["bindingFailureConditions"] = names[4 : 5+r.IntN(4)]
	}
	if r.chance(10) {
		device["bindsToNode"] = r.chance(50)
	}
}

// counters draws counters of a device, or, with a form, of a counter set.
func (r *random) counters(limit int, form func(quantity any) any) object {
	counters := object{}
	for range 1 + r.few(limit-1) {
		counters[r.label(63)] = form(r.quantity())
	}
	return counters
}

func valued(quantity any) any { return object{"value": quantity} }

func plainly(quantity any) any { return quantity }

// partitions draws how a device can be divided.
func (r *random) partitions(device object, limit int) {
	counters := r.counters(24, plainly)
	slots := 0
	if r.chance(50) {
		slots = pick(r, 1, 7, 8, 32-len(counters))
		device["slots"] = object{"count": slots}
		if r.chance(50) {
			device["slots"] = object{"count": slots, "name": r.label(20)}
		}
	}
	if slots == 0 || r.chance(70) {
		device["counters"] = counters
	} else {
		counters = object{}
	}
	var partitions []any
	for i := range r.few(limit) {
		partition := object{"name": fmt.Sprintf("%s%d", r.label(6), i), "attributes": r.attributes(4), "capacity": r.capacity(3, device["allowMultipleAllocations"] == true)}
		consumes := r.consumption(counters)
		partition["consumes"] = consumes
		if slots > 0 && (len(consumes) == 0 || r.chance(60)) {
			size := 1 + r.IntN(slots)
			partition["size"], partition["placements"] = size, r.Perm(slots-size+1)
		} else if r.chance(50) {
			partition["count"] = pick(r, 1, 2, 7)
		}
		if slots == 0 && len(consumes) == 0 {
			partition["consumes"] = counters
		}
		partitions = append(partitions, partition)
	}
	device["partitions"] = partitions
}

// consumption draws what a partition takes of the counters of its device.
func (r *random) consumption(counters object) object {
	consumes := object{}
	for _, name := range slices.Sorted(maps.Keys(counters)) {
		if r.chance(60) {
			consumes[name] = pick(r, counters[name], any(0))
		}
	}
	return consumes
}

// nodeResources draws what a device takes of its node's own resources.
func (r *random) nodeResources(capacity object) object {
	mapping := object{"deviceMultiplier": pick[any](r, 1, "500m", "1e20")}
	if names := slices.Sorted(maps.Keys(capacity)); len(names) > 0 && r.chance(50) {
		mapping = object{"capacityKey": pick(r, names...), "capacityMultiplier": pick[any](r, 2, "1n")}
	}
	overhead := object{pick(r, "perPod", "perContainer"): pick[any](r, 0, "1Gi")}
	return object{pick(r, "cpu", "memory", "hugepages-2Mi"): pick(r, object{"mapping": mapping}, object{"overhead": overhead}, object{"mapping": mapping, "overhead": overhead})}
}
