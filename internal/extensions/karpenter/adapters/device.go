package adapters

import (
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"

	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/kwok-dra/kwok-dra/pkg/api/v1alpha1"
	"github.com/kwok-dra/kwok-dra/pkg/api/validation"
)

// addSlice adds the devices of a ResourceSlice, which are published in one slice.
func (a *adapter) addSlice(d *draft, added []v1alpha1.DeviceTemplate, path *field.Path) {
	var slice v1alpha1.SliceTemplate
	at := field.NewPath("spec", "slices").Index(len(d.template.Spec.Slices))
	d.setOrigin(at, path)
	for i := range added {
		origin := path.Child("devices").Index(i)
		a.checkDevice(&added[i], origin)
		d.addDevice(added[i], origin)
		d.setOrigin(at.Child("devices").Index(i), origin.Child("name"))
		slice.Devices = append(slice.Devices, added[i].Name)
	}
	d.template.Spec.Slices = append(d.template.Spec.Slices, slice)
}

// checkDevice refuses fields that a Device of resource.k8s.io/v1 does not have, and fields for
// devices that nodes share. It escapes "{{" in attributes, and refuses it in values that cannot
// have it.
func (a *adapter) checkDevice(device *v1alpha1.DeviceTemplate, path *field.Path) {
	a.forbidFields(map[string]bool{
		"count": device.Count != nil, "counters": device.Counters != nil, "slots": device.Slots != nil, "partitions": device.Partitions != nil,
	}, path, "a Device of resource.k8s.io/v1 has no such field; use a ResourcePoolTemplate")
	a.forbidFields(map[string]bool{
		"nodeName": device.NodeName != "", "nodeSelector": device.NodeSelector != nil, "allNodes": device.AllNodes != nil,
	}, path, "the device is of the node that has the slice; devices that nodes share need a ResourcePoolTemplate with sharedWith")
	a.checkName(device.Name, path.Child("name"))
	for _, name := range slices.Sorted(maps.Keys(device.Attributes)) {
		device.Attributes[name] = a.literalAttribute(device.Attributes[name], path.Child("attributes").Key(string(name)))
	}
	for _, name := range slices.Sorted(maps.Keys(device.Capacity)) {
		capacity := device.Capacity[name]
		if _, err := validation.ResolveCapacity(capacity, capacity.Value); err != nil && v1alpha1.IsTemplate(capacity.Value) {
			a.addProblems(field.Invalid(path.Child("capacity").Key(string(name)), capacity.Value, err.Error()))
		}
	}
	for i, consumption := range device.ConsumesCounters {
		a.checkName(consumption.CounterSet, path.Child("consumesCounters").Index(i).Child("counterSet"))
	}
}

// checkName refuses a name that looks like a template.
func (a *adapter) checkName(name string, path *field.Path) {
	if v1alpha1.IsTemplate(name) {
		a.addProblems(validation.ValidateLabel(name, path)...)
	}
}

// literalAttribute escapes the text of an attribute, so that it stands for itself.
func (a *adapter) literalAttribute(attribute v1alpha1.Attribute, path *field.Path) v1alpha1.Attribute {
	if !v1alpha1.IsTemplate(attribute.Value) {
		return attribute
	}
	if _, err := validation.ResolveAttribute(attribute, attribute.Value); err != nil {
		a.addProblems(field.Invalid(path, strings.TrimSuffix(attribute.Value, v1alpha1.ElementEnd), err.Error()))
	}
	attribute.Value = strings.ReplaceAll(attribute.Value, "{{", `{{"{{"}}`)
	return attribute
}

// driverName returns the name of a driver in a form that the API server accepts: without "/", which
// names of extended resources have.
func (a *adapter) driverName(given, path string) string {
	name := strings.ReplaceAll(given, "/", ".")
	if name != given {
		a.noteChange(`%s %q is published as %q, since the name of a driver has no "/"`, path, given, name)
	}
	return name
}

type attributeName = resourcev1.QualifiedName

// attributeNames maps the names of attributes to names that the API server accepts: C identifiers,
// which have no "-". It refuses two attributes that would get the same name.
func (a *adapter) attributeNames(all iter.Seq[attributeName], path *field.Path) map[attributeName]attributeName {
	published, taken := map[attributeName]attributeName{}, map[string]string{}
	for _, given := range slices.Sorted(all) {
		name := string(given)
		last := strings.LastIndex(name, "/") + 1
		normal := name[:last] + strings.ReplaceAll(name[last:], "-", "_")
		if other, ok := taken[normal]; ok {
			delete(a.renamed, path.Key(normal).String())
			a.addProblems(field.Invalid(path.Key(name), name, fmt.Sprintf("would be published as %q, as %q is: rename one", normal, other)))
			continue
		}
		if normal != name {
			a.renamed[path.Key(normal).String()] = path.Key(name).String()
			a.noteChange(`attribute %q is published as %q, since the name of an attribute has no "-"`, name, normal)
		}
		taken[normal], published[given] = name, attributeName(normal)
	}
	return published
}
