package adapters

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/kwok-dra/kwok-dra/pkg/api/v1alpha1"
)

// device reads a Device of resource.k8s.io/v1, and reports whether it could.
func (p *problems) device(raw json.RawMessage, path *field.Path) (v1alpha1.DeviceTemplate, bool) {
	var device v1alpha1.DeviceTemplate
	if !p.decode(raw, &device, path) {
		return device, false
	}
	p.forbid(map[string]bool{
		"count": device.Count != nil, "counters": device.Counters != nil, "slots": device.Slots != nil, "partitions": device.Partitions != nil,
	}, path, "a Device of resource.k8s.io/v1 has no such field; use a ResourcePoolTemplate")
	device.Count, device.Counters, device.Slots, device.Partitions = nil, nil, nil, nil
	p.forbid(map[string]bool{
		"nodeName": device.NodeName != "", "nodeSelector": device.NodeSelector != nil, "allNodes": device.AllNodes != nil,
	}, path, "the device is of the node that has the slice; devices that nodes share need a ResourcePoolTemplate with sharedWith")
	device.NodeName, device.NodeSelector, device.AllNodes = "", nil, nil
	p.literals(&device, path)
	return device, true
}

// literals has the texts of a device stand for themselves, and refuses "{{" where
// it can be no part of a valid value.
func (p *problems) literals(device *v1alpha1.DeviceTemplate, path *field.Path) {
	p.checkName(device.Name, path.Child("name"))
	for _, name := range slices.Sorted(maps.Keys(device.Attributes)) {
		device.Attributes[name] = p.literalAttribute(device.Attributes[name], path.Child("attributes").Key(string(name)))
	}
	for _, name := range slices.Sorted(maps.Keys(device.Capacity)) {
		capacity := device.Capacity[name]
		if _, err := capacity.Resolve(capacity.Value); err != nil && v1alpha1.IsTemplate(capacity.Value) {
			p.addErrors(field.Invalid(path.Child("capacity").Key(string(name)), capacity.Value, err.Error()))
		}
	}
	for i, consumption := range device.ConsumesCounters {
		p.checkName(consumption.CounterSet, path.Child("consumesCounters").Index(i).Child("counterSet"))
	}
}

// checkName refuses a name that would be a template.
func (p *problems) checkName(name string, path *field.Path) {
	if v1alpha1.IsTemplate(name) {
		p.addErrors(v1alpha1.ValidateLabel(name, path)...)
	}
}

// literalAttribute has the text of an attribute stand for itself.
func (p *problems) literalAttribute(attribute v1alpha1.Attribute, path *field.Path) v1alpha1.Attribute {
	if !v1alpha1.IsTemplate(attribute.Value) {
		return attribute
	}
	if _, err := attribute.Resolve(attribute.Value); err != nil {
		p.addErrors(field.Invalid(path, strings.TrimSuffix(attribute.Value, v1alpha1.ElementEnd), err.Error()))
	}
	attribute.Value = literal(attribute.Value)
	return attribute
}

// addSlice adds the devices of a ResourceSlice, and has them published in one.
func (d *draft) addSlice(p *problems, added []v1alpha1.DeviceTemplate, path *field.Path) {
	if limit := maxDevices(added); len(added) > limit {
		p.add(path.Child("devices").String(), fmt.Sprintf("Too many: %d: at most %d such devices are possible in a ResourceSlice: divide it", len(added), limit))
	}
	var slice v1alpha1.SliceTemplate
	at := field.NewPath("spec", "slices").Index(len(d.template.Spec.Slices))
	d.from(at, path)
	for i := range added {
		origin := path.Child("devices").Index(i)
		d.add(added[i], origin)
		d.from(at.Child("devices").Index(i), origin.Child("name"))
		slice.Devices = append(slice.Devices, added[i].Name)
	}
	d.template.Spec.Slices = append(d.template.Spec.Slices, slice)
}

// maxDevices is the API server's limit on the devices of a ResourceSlice.
func maxDevices(devices []v1alpha1.DeviceTemplate) int {
	for i := range devices {
		if len(devices[i].Taints)+len(devices[i].ConsumesCounters) > 0 {
			return resourcev1.ResourceSliceMaxDevicesWithAdvancedFeatures
		}
		for _, attribute := range devices[i].Attributes {
			switch attribute.Type {
			case v1alpha1.AttributeStrings, v1alpha1.AttributeInts, v1alpha1.AttributeBools, v1alpha1.AttributeVersions:
				return resourcev1.ResourceSliceMaxDevicesWithAdvancedFeatures
			}
		}
	}
	return resourcev1.ResourceSliceMaxDevices
}
