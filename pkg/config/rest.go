package config

import (
	"maps"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/kwok-dra/kwok-dra/pkg/api/v1alpha1"
	"github.com/kwok-dra/kwok-dra/pkg/devices"
)

// examine compiles a template, and tells of all that is wrong with it besides
// what decoding has found.
func examine(template *v1alpha1.ResourcePoolTemplate, decoding []Problem) (*devices.Template, []Problem) {
	compiled, errs := devices.Compile(template)
	problems := slices.Concat(decoding, independent(decoding, problemsOf(errs)))
	if len(problems) == 0 {
		return compiled, nil
	}
	return nil, append(problems, hidden(template, problems)...)
}

// hidden are the problems that others hide: compiling ends with the first stage
// that finds some. The rest of the template is compiled by itself, and of that
// only what stands for itself is told.
func hidden(template *v1alpha1.ResourcePoolTemplate, problems []Problem) []Problem {
	found := map[string]bool{}
	rest := *template
	rest.Spec.Devices = slices.Clone(template.Spec.Devices)
	for _, p := range problems {
		at := alone.FindString(p.Path)
		if at == "" {
			at = part.FindString(p.Path)
		}
		if found[at] {
			continue
		}
		found[at] = true
		if !takeAway(&rest, at) {
			return nil
		}
	}
	rest.SetDefaults()
	_, errs := devices.Compile(&rest)
	var more []Problem
	for _, p := range problemsOf(errs) {
		if at := alone.FindString(p.Path); at != "" && !found[at] {
			more = append(more, p)
		}
	}
	return more
}

// alone is a part of a template that is right or wrong whatever the others say.
var alone = regexp.MustCompile(`^spec\.devices\[\d+\]\.(?:(?:attributes|capacity)(?:\[[^\]]+\])?|taints\b)|` +
	`^spec\.(?:nodeSelector|poolName|publishWhen|retireWhen|claimStatus|sliceLabels|health)\b|^metadata\.name$`)

var (
	ofDevice = regexp.MustCompile(`^spec\.devices\[(\d+)\](?:\.(\w+)(?:\[([^\]]+)\])?)?$`)
	ofSpec   = regexp.MustCompile(`^spec\.(\w+)`)
)

// takeAway takes a part out of a template. It is false where nothing can be said
// of the rest without it.
func takeAway(t *v1alpha1.ResourcePoolTemplate, path string) bool {
	device, spec := ofDevice.FindStringSubmatch(path), ofSpec.FindStringSubmatch(path)
	switch {
	case path == "metadata.name":
		t.Name = v1alpha1.ManagedByValue
	case path == "spec.driver":
		t.Spec.Driver = v1alpha1.GroupName
	case path == "spec.sharedWith", path == "spec.devices":
		return false
	case device != nil:
		index, err := strconv.Atoi(device[1])
		if err != nil || index >= len(t.Spec.Devices) {
			return false
		}
		takeFromDevice(&t.Spec.Devices[index], device[1], device[2], device[3])
		t.Spec.Slices, t.Spec.PartitionTypeAttribute = nil, nil
	case spec != nil:
		clearField(reflect.ValueOf(&t.Spec).Elem(), spec[1])
	default:
		return strings.HasPrefix(path, "metadata.") || path == "apiVersion" || path == "kind"
	}
	return true
}

// takeFromDevice takes away a field, or an item of it, or all but a name.
func takeFromDevice(d *v1alpha1.DeviceTemplate, index, name, key string) {
	switch {
	case name == "":
		*d = v1alpha1.DeviceTemplate{Name: v1alpha1.ManagedByValue + "-" + index}
	case key == "":
		clearField(reflect.ValueOf(d).Elem(), name)
	case name == "attributes":
		d.Attributes = withoutKey(d.Attributes, key)
	case name == "capacity":
		d.Capacity = withoutKey(d.Capacity, key)
	}
}

func withoutKey[K ~string, V any](values map[K]V, key string) map[K]V {
	values = maps.Clone(values)
	delete(values, K(key))
	return values
}

// clearField clears the field that has a name in JSON.
func clearField(object reflect.Value, name string) {
	for i := range object.NumField() {
		if tag, _, _ := strings.Cut(object.Type().Field(i).Tag.Get("json"), ","); tag == name {
			object.Field(i).SetZero()
		}
	}
}
