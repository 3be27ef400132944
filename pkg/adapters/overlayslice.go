package adapters

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	resourcev1 "k8s.io/api/resource/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/kwok-dra/kwok-dra/pkg/api/v1alpha1"
)

// overlaySlice is a ResourceSlice.
type overlaySlice struct {
	APIVersion string          `json:"apiVersion"`
	Kind       string          `json:"kind"`
	Metadata   json.RawMessage `json:"metadata"`
	Spec       json.RawMessage `json:"spec"`
}

type overlaySliceSpec struct {
	Driver                 string                         `json:"driver"`
	Pool                   json.RawMessage                `json:"pool"`
	NodeName               *string                        `json:"nodeName"`
	NodeSelector           json.RawMessage                `json:"nodeSelector"`
	AllNodes               bool                           `json:"allNodes"`
	PerDeviceNodeSelection bool                           `json:"perDeviceNodeSelection"`
	Devices                []json.RawMessage              `json:"devices"`
	SharedCounters         []json.RawMessage              `json:"sharedCounters"`
	PartitionTypeAttribute *resourcev1.FullyQualifiedName `json:"partitionTypeAttribute"`
	SkipNodeOperations     []resourcev1.SkipNodeOperation `json:"skipNodeOperations"`
}

// addSlice adds a slice to the draft for its driver. Attributes may be known as
// they are written.
func (o *nodeOverlay) addSlice(raw json.RawMessage, attributes written, path *field.Path) {
	var slice overlaySlice
	var spec overlaySliceSpec
	specPath := path.Child("spec")
	if !o.problems.decode(raw, &slice, path) || !o.problems.decode(slice.Spec, &spec, specPath) {
		return
	}
	o.checkKind(&slice, path)
	o.checkNodes(&spec, specPath)
	if len(spec.Devices)+len(spec.SharedCounters) == 0 {
		o.problems.addErrors(field.Required(specPath.Child("devices"), "give at least one device"))
	}
	if spec.Driver == "" {
		o.problems.addErrors(field.Required(specPath.Child("driver"), "the name of the DRA driver, for example gpu.example.com"))
		return
	}
	d := o.draftFor(&spec, specPath)
	o.addCounters(d, spec.SharedCounters, specPath.Child("sharedCounters"))
	var devices []v1alpha1.DeviceTemplate
	for i, raw := range spec.Devices {
		at := specPath.Child("devices").Index(i)
		raw = o.upstream(raw, spec.Driver, at, func(name string) (string, string) { return attributes.scalar(i, name) })
		device, is := o.problems.device(raw, at)
		if !is {
			d.incomplete = true
		}
		devices = append(devices, device)
	}
	if len(devices) > 0 {
		d.addSlice(&o.problems, devices, specPath)
	}
}

func (o *nodeOverlay) checkKind(slice *overlaySlice, path *field.Path) {
	version, kind := resourcev1.SchemeGroupVersion.String(), "ResourceSlice"
	if slice.APIVersion != "" && slice.APIVersion != version {
		o.problems.addErrors(field.NotSupported(path.Child("apiVersion"), slice.APIVersion, []string{version}))
	}
	if slice.Kind != "" && slice.Kind != kind {
		o.problems.addErrors(field.NotSupported(path.Child("kind"), slice.Kind, []string{kind}))
	}
}

// checkNodes refuses slices that are not a node's own, and leaves out what is
// made up for each node.
func (o *nodeOverlay) checkNodes(spec *overlaySliceSpec, path *field.Path) {
	o.problems.forbid(map[string]bool{
		"nodeSelector":           len(spec.NodeSelector) > 0,
		"allNodes":               spec.AllNodes,
		"perDeviceNodeSelection": spec.PerDeviceNodeSelection,
	}, path, "each node that meets the requirements has slices of its own; a pool that nodes share needs a ResourcePoolTemplate with sharedWith")
	if len(spec.Pool) > 0 {
		o.change("%s is left out, since each node has a pool of its own", path.Child("pool"))
	}
	if spec.NodeName != nil {
		o.change("%s is left out, since each node that meets the requirements has slices of its own", path.Child("nodeName"))
	}
}

// upstream makes a Device of resource.k8s.io/v1, or one that is as readable, of a
// device that may have a driver, and attributes with a "-" in their names.
// Scalar is an attribute as it is written, and its type in YAML.
func (o *nodeOverlay) upstream(raw json.RawMessage, driver string, path *field.Path, scalar func(name string) (string, string)) json.RawMessage {
	var device, attributes map[string]json.RawMessage
	if json.Unmarshal(raw, &device) != nil || device == nil {
		return raw
	}
	var own string
	if given, has := device["driver"]; has && (json.Unmarshal(given, &own) != nil || own != driver) {
		o.problems.add(path.Child("driver").String(), fmt.Sprintf("Invalid value: %s: must be the driver of the slice, %q, or left out", shown(given), driver))
	}
	delete(device, "driver")
	if json.Unmarshal(device["attributes"], &attributes) == nil && attributes != nil {
		renamed := map[string]json.RawMessage{}
		for given, name := range o.attributeNames(slices.Collect(maps.Keys(attributes)), path.Child("attributes")) {
			renamed[name] = attributes[given]
			if text, tag := scalar(given); tag == "!!float" && json.Valid([]byte(text)) {
				renamed[name] = json.RawMessage(text)
			}
		}
		device["attributes"] = encode(renamed)
	}
	return encode(device)
}

// encode encodes what was JSON already.
func encode(fields map[string]json.RawMessage) json.RawMessage {
	data, _ := json.Marshal(fields)
	return data
}

// draftFor finds or makes the draft for a slice's driver. What all slices of a
// pool have in common must be the same in all of them.
func (o *nodeOverlay) draftFor(spec *overlaySliceSpec, path *field.Path) *draft {
	driver := o.driverName(spec.Driver, path.Child("driver").String())
	for _, d := range o.drafts {
		if d.template.Spec.Driver != driver {
			continue
		}
		if !apiequality.Semantic.DeepEqual(d.template.Spec.PartitionTypeAttribute, spec.PartitionTypeAttribute) {
			o.problems.add(path.Child("partitionTypeAttribute").String(), "Invalid value: must be the same in all slices of the driver "+driver)
		}
		if !slices.Equal(d.template.Spec.SkipNodeOperations, spec.SkipNodeOperations) {
			o.problems.add(path.Child("skipNodeOperations").String(), "Invalid value: must be the same in all slices of the driver "+driver)
		}
		return d
	}
	d := newDraft(templateName("nodeoverlay-"+o.name, driver), driver, o.priority())
	for _, name := range []string{"driver", "devices", "partitionTypeAttribute", "skipNodeOperations"} {
		d.from(field.NewPath("spec", name), path.Child(name))
	}
	d.template.Spec.PartitionTypeAttribute, d.template.Spec.SkipNodeOperations = spec.PartitionTypeAttribute, spec.SkipNodeOperations
	for i, requirement := range o.spec.Requirements {
		d.requireOverlaid(&o.problems, requirement, field.NewPath("spec", "requirements").Index(i))
	}
	o.drafts = append(o.drafts, d)
	return d
}

func (o *nodeOverlay) addCounters(d *draft, given []json.RawMessage, path *field.Path) {
	for i, raw := range given {
		var set resourcev1.CounterSet
		if !o.problems.decode(raw, &set, path.Index(i)) {
			d.incomplete = true
			continue
		}
		o.problems.checkName(set.Name, path.Index(i).Child("name"))
		spec := &d.template.Spec
		d.from(field.NewPath("spec", "sharedCounters").Index(len(spec.SharedCounters)), path.Index(i))
		spec.SharedCounters = append(spec.SharedCounters, v1alpha1.CounterSetTemplate{Name: set.Name, Counters: set.Counters})
	}
}
