package adapters

import (
	"fmt"
	"slices"

	resourcev1 "k8s.io/api/resource/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/kwok-dra/kwok-dra/pkg/api/v1alpha1"
)

// overlaySlice is a ResourceSlice.
type overlaySlice struct {
	APIVersion string           `json:"apiVersion"`
	Kind       string           `json:"kind"`
	Metadata   any              `json:"metadata"`
	Spec       overlaySliceSpec `json:"spec"`
}

type overlaySliceSpec struct {
	Driver                 string                         `json:"driver"`
	Pool                   any                            `json:"pool"`
	NodeName               *string                        `json:"nodeName"`
	NodeSelector           any                            `json:"nodeSelector"`
	AllNodes               bool                           `json:"allNodes"`
	PerDeviceNodeSelection bool                           `json:"perDeviceNodeSelection"`
	Devices                []overlayDevice                `json:"devices"`
	SharedCounters         []resourcev1.CounterSet        `json:"sharedCounters"`
	PartitionTypeAttribute *resourcev1.FullyQualifiedName `json:"partitionTypeAttribute"`
	SkipNodeOperations     []resourcev1.SkipNodeOperation `json:"skipNodeOperations"`
}

// overlayDevice is a device that may say again of which driver it is.
type overlayDevice struct {
	v1alpha1.DeviceTemplate `json:",inline"`
	Driver                  *string `json:"driver"`
}

// addSlice adds a slice to the draft for its driver.
func (o *nodeOverlay) addSlice(slice *overlaySlice, path *field.Path) {
	spec, specPath := &slice.Spec, path.Child("spec")
	o.checkKind(slice, path)
	o.checkNodes(spec, specPath)
	if len(spec.Devices)+len(spec.SharedCounters) == 0 {
		o.refuse(field.Required(specPath.Child("devices"), "give at least one device"))
	}
	if spec.Driver == "" {
		o.refuse(field.Required(specPath.Child("driver"), "the name of the DRA driver, for example gpu.example.com"))
		return
	}
	d := o.draftFor(spec, specPath)
	d.incomplete = d.incomplete || o.misfits.Hides(path.String()) || o.misfits.Hides("spec.requirements")
	o.addCounters(d, spec.SharedCounters, specPath.Child("sharedCounters"))
	var devices []v1alpha1.DeviceTemplate
	for i := range spec.Devices {
		devices = append(devices, o.device(&spec.Devices[i], spec.Driver, specPath.Child("devices").Index(i)))
	}
	if len(devices) > 0 {
		o.adapter.addSlice(d, devices, specPath)
	}
}

func (o *nodeOverlay) checkKind(slice *overlaySlice, path *field.Path) {
	version, kind := resourcev1.SchemeGroupVersion.String(), "ResourceSlice"
	if slice.APIVersion != "" && slice.APIVersion != version {
		o.refuse(field.NotSupported(path.Child("apiVersion"), slice.APIVersion, []string{version}))
	}
	if slice.Kind != "" && slice.Kind != kind {
		o.refuse(field.NotSupported(path.Child("kind"), slice.Kind, []string{kind}))
	}
}

// checkNodes refuses slices that are not a node's own, and leaves out what is
// made up for each node.
func (o *nodeOverlay) checkNodes(spec *overlaySliceSpec, path *field.Path) {
	o.forbid(map[string]bool{
		"nodeSelector":           spec.NodeSelector != nil,
		"allNodes":               spec.AllNodes,
		"perDeviceNodeSelection": spec.PerDeviceNodeSelection,
	}, path, "each node that meets the requirements has slices of its own; a pool that nodes share needs a ResourcePoolTemplate with sharedWith")
	if spec.Pool != nil {
		o.change("%s is left out, since each node has a pool of its own", path.Child("pool"))
	}
	if spec.NodeName != nil {
		o.change("%s is left out, since each node that meets the requirements has slices of its own", path.Child("nodeName"))
	}
}

// device checks the driver of a device, and gives attributes with a "-" in their
// names the names that they are published with.
func (o *nodeOverlay) device(given *overlayDevice, driver string, path *field.Path) v1alpha1.DeviceTemplate {
	if given.Driver != nil && *given.Driver != driver {
		o.refuse(field.Invalid(path.Child("driver"), *given.Driver, fmt.Sprintf("must be the driver of the slice, %q, or left out", driver)))
	}
	var names []string
	for name := range given.Attributes {
		names = append(names, string(name))
	}
	renamed := map[resourcev1.QualifiedName]v1alpha1.Attribute{}
	for name, published := range o.attributeNames(names, path.Child("attributes")) {
		renamed[resourcev1.QualifiedName(published)] = given.Attributes[resourcev1.QualifiedName(name)]
	}
	device := given.DeviceTemplate
	device.Attributes = renamed
	return device
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
			o.refuse(field.Invalid(path.Child("partitionTypeAttribute"), field.OmitValueType{}, "must be the same in all slices of the driver "+driver))
		}
		if !slices.Equal(d.template.Spec.SkipNodeOperations, spec.SkipNodeOperations) {
			o.refuse(field.Invalid(path.Child("skipNodeOperations"), field.OmitValueType{}, "must be the same in all slices of the driver "+driver))
		}
		return d
	}
	d := newDraft(templateName("nodeoverlay-"+o.name, driver), driver, o.priority())
	for _, name := range []string{"driver", "devices", "partitionTypeAttribute", "skipNodeOperations"} {
		d.from(field.NewPath("spec", name), path.Child(name))
	}
	d.template.Spec.PartitionTypeAttribute, d.template.Spec.SkipNodeOperations = spec.PartitionTypeAttribute, spec.SkipNodeOperations
	for i, requirement := range o.spec.Requirements {
		o.requireOverlaid(d, requirement, field.NewPath("spec", "requirements").Index(i))
	}
	o.drafts = append(o.drafts, d)
	return d
}

func (o *nodeOverlay) addCounters(d *draft, given []resourcev1.CounterSet, path *field.Path) {
	for i, set := range given {
		o.checkName(set.Name, path.Index(i).Child("name"))
		spec := &d.template.Spec
		d.from(field.NewPath("spec", "sharedCounters").Index(len(spec.SharedCounters)), path.Index(i))
		spec.SharedCounters = append(spec.SharedCounters, v1alpha1.CounterSetTemplate{Name: set.Name, Counters: set.Counters})
	}
}
