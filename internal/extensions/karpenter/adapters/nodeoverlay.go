package adapters

import (
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/kwok-dra/kwok-dra/internal/config"
	"github.com/kwok-dra/kwok-dra/internal/util/strict"
	"github.com/kwok-dra/kwok-dra/pkg/api/v1alpha1"
)

// maxWeight is the most that Karpenter takes.
const maxWeight = 10_000

// overlaySpec is what there is to know of a NodeOverlay. The rest is Karpenter's.
type overlaySpec struct {
	Weight         int32                            `json:"weight"`
	Requirements   []corev1.NodeSelectorRequirement `json:"requirements"`
	ResourceSlices []overlaySlice                   `json:"resourceSlices"`
}

// nodeOverlay adapts a NodeOverlay.
type nodeOverlay struct {
	adapter
	name string
	spec overlaySpec
}

// NodeOverlay adapts a NodeOverlay of Karpenter. The slices of each driver become a template for the
// nodes that meet the requirements; its priority includes the overlay's weight. A NodeOverlay
// without slices has no templates.
//
// Slices are whole ResourceSlices, in spec.resourceSlices or else in the annotation
// v1alpha1.ResourceSlicesAnnotation. Attributes may also be plain strings, integers and bools. A "/"
// in the name of a driver becomes ".", and a "-" in the name of an attribute "_". The pool and the
// names of the slice and the node are replaced by each node's own.
func NodeOverlay(source *unstructured.Unstructured) (*config.Adapted, error) {
	o := &nodeOverlay{adapter: newAdapter(), name: source.GetName()}
	path := field.NewPath("spec")
	annotation := source.GetAnnotations()[v1alpha1.ResourceSlicesAnnotation]
	inSpec, _, _ := unstructured.NestedFieldNoCopy(source.Object, "spec", "resourceSlices")
	if list, isList := inSpec.([]any); annotation == "" && (inSpec == nil || isList && len(list) == 0) {
		return &config.Adapted{}, nil
	}
	o.decodeSpec(source, &o.spec)
	given, at := o.spec.ResourceSlices, path.Child("resourceSlices")
	o.misfits = slices.DeleteFunc(o.misfits, func(p strict.Problem) bool { return p.Unknown && !strict.Within(at.String(), p.Path) })
	if annotationPath := field.NewPath("metadata", "annotations").Key(v1alpha1.ResourceSlicesAnnotation); len(given) == 0 {
		given, at = o.decodeAnnotation(annotation, annotationPath), annotationPath
	} else if annotation != "" {
		o.noteChange("%s is ignored, since the NodeOverlay has %s", annotationPath, at)
	}
	if weight := o.spec.Weight; weight < 0 || weight > maxWeight {
		o.addProblems(field.Invalid(path.Child("weight"), weight, fmt.Sprintf("must be between 1 and %d", maxWeight)))
	}
	for i := range given {
		o.addSlice(&given[i], at.Index(i))
	}
	adapted, err := o.validateDrafts()
	if err != nil {
		return nil, err
	}
	for i := range adapted.Templates {
		// Publishing divides templates with counter sets into slices, since the place of counter sets
		// depends on the API server's version.
		if spec := &adapted.Templates[i].Spec; len(spec.SharedCounters) > 0 {
			spec.Slices = nil
		}
	}
	return adapted, nil
}

// decodeAnnotation decodes the slices in the annotation.
func (o *nodeOverlay) decodeAnnotation(text string, path *field.Path) []overlaySlice {
	document, problems := parseDocument(text)
	for _, p := range problems {
		o.misfits = append(o.misfits, strict.Problem{Path: path.String(), Text: p.String()})
	}
	var given []overlaySlice
	if len(problems) == 0 {
		o.misfits = append(o.misfits, document.Decode(&given, path)...)
	}
	return given
}

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

// overlayDevice is a device that may repeat its driver.
type overlayDevice struct {
	v1alpha1.DeviceTemplate `json:",inline"`
	Driver                  *string `json:"driver"`
}

// addSlice adds a slice to the draft for its driver.
func (o *nodeOverlay) addSlice(slice *overlaySlice, path *field.Path) {
	spec, specPath := &slice.Spec, path.Child("spec")
	version, kind := resourcev1.SchemeGroupVersion.String(), "ResourceSlice"
	if slice.APIVersion != "" && slice.APIVersion != version {
		o.addProblems(field.NotSupported(path.Child("apiVersion"), slice.APIVersion, []string{version}))
	}
	if slice.Kind != "" && slice.Kind != kind {
		o.addProblems(field.NotSupported(path.Child("kind"), slice.Kind, []string{kind}))
	}
	o.checkNodes(spec, specPath)
	o.requireField(len(spec.Devices)+len(spec.SharedCounters) > 0, specPath.Child("devices"), "give at least one device")
	if !o.requireField(spec.Driver != "", specPath.Child("driver"), exampleDriver) {
		return
	}
	d := o.draftFor(spec, specPath)
	d.incomplete = d.incomplete || o.misfits.Hides(path.String()) || o.misfits.Hides("spec.requirements")
	for i, set := range spec.SharedCounters {
		at, added := specPath.Child("sharedCounters").Index(i), &d.template.Spec.SharedCounters
		o.checkName(set.Name, at.Child("name"))
		d.setOrigin(field.NewPath("spec", "sharedCounters").Index(len(*added)), at)
		*added = append(*added, v1alpha1.CounterSetTemplate{Name: set.Name, Counters: set.Counters})
	}
	var devices []v1alpha1.DeviceTemplate
	for i := range spec.Devices {
		devices = append(devices, o.adaptDevice(&spec.Devices[i], spec.Driver, specPath.Child("devices").Index(i)))
	}
	if len(devices) > 0 {
		o.adapter.addSlice(d, devices, specPath)
	}
}

// checkNodes refuses slices of several nodes, and notes fields that are replaced by each node's own.
func (o *nodeOverlay) checkNodes(spec *overlaySliceSpec, path *field.Path) {
	o.forbidFields(map[string]bool{
		"nodeSelector":           spec.NodeSelector != nil,
		"allNodes":               spec.AllNodes,
		"perDeviceNodeSelection": spec.PerDeviceNodeSelection,
	}, path, "each node that meets the requirements has slices of its own; a pool that nodes share needs a ResourcePoolTemplate with sharedWith")
	if spec.Pool != nil {
		o.noteChange("%s is left out, since each node has a pool of its own", path.Child("pool"))
	}
	if spec.NodeName != nil {
		o.noteChange("%s is left out, since each node that meets the requirements has slices of its own", path.Child("nodeName"))
	}
}

// adaptDevice checks the driver of a device, and gives its attributes the names to publish.
func (o *nodeOverlay) adaptDevice(given *overlayDevice, driver string, path *field.Path) v1alpha1.DeviceTemplate {
	if given.Driver != nil && *given.Driver != driver {
		o.addProblems(field.Invalid(path.Child("driver"), *given.Driver, fmt.Sprintf("must be the driver of the slice, %q, or left out", driver)))
	}
	device := given.DeviceTemplate
	device.Attributes = map[resourcev1.QualifiedName]v1alpha1.Attribute{}
	for name, published := range o.attributeNames(maps.Keys(given.Attributes), path.Child("attributes")) {
		device.Attributes[published] = given.Attributes[name]
	}
	return device
}

// draftFor finds or makes the draft for a slice's driver. Fields of the pool must be the same in all
// of its slices.
func (o *nodeOverlay) draftFor(spec *overlaySliceSpec, path *field.Path) *draft {
	driver := o.driverName(spec.Driver, path.Child("driver").String())
	for _, d := range o.drafts {
		if d.template.Spec.Driver != driver {
			continue
		}
		if !apiequality.Semantic.DeepEqual(d.template.Spec.PartitionTypeAttribute, spec.PartitionTypeAttribute) {
			o.addProblems(field.Invalid(path.Child("partitionTypeAttribute"), field.OmitValueType{}, "must be the same in all slices of the driver "+driver))
		}
		if !slices.Equal(d.template.Spec.SkipNodeOperations, spec.SkipNodeOperations) {
			o.addProblems(field.Invalid(path.Child("skipNodeOperations"), field.OmitValueType{}, "must be the same in all slices of the driver "+driver))
		}
		return d
	}
	d := newDraft(templateName("nodeoverlay-"+o.name, driver), driver, nodeOverlayPriority+o.spec.Weight)
	for _, name := range []string{"driver", "devices", "partitionTypeAttribute", "skipNodeOperations"} {
		d.setOrigin(field.NewPath("spec", name), path.Child(name))
	}
	d.template.Spec.PartitionTypeAttribute, d.template.Spec.SkipNodeOperations = spec.PartitionTypeAttribute, spec.SkipNodeOperations
	for i, requirement := range o.spec.Requirements {
		o.requireOverlaid(d, requirement, field.NewPath("spec", "requirements").Index(i))
	}
	o.drafts = append(o.drafts, d)
	return d
}
