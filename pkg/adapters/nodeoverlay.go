package adapters

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/kwok-dra/kwok-dra/pkg/api/v1alpha1"
	"github.com/kwok-dra/kwok-dra/pkg/strict"
)

// maxWeight is the most that Karpenter takes.
const maxWeight = 10_000

// overlaySpec is what there is to know of a NodeOverlay. Prices and more are
// Karpenter's.
type overlaySpec struct {
	Weight         *int32                           `json:"weight"`
	Requirements   []corev1.NodeSelectorRequirement `json:"requirements"`
	ResourceSlices []overlaySlice                   `json:"resourceSlices"`
}

// nodeOverlay adapts a NodeOverlay.
type nodeOverlay struct {
	adapter
	name string
	spec overlaySpec
}

// NodeOverlay adapts a NodeOverlay of Karpenter. The slices of each driver become
// a template for the nodes that meet the requirements; the overlay's weight is
// in its priority. One without slices gives no templates.
//
// Slices are whole ResourceSlices, in spec.resourceSlices or else in the
// annotation v1alpha1.ResourceSlicesAnnotation. Attributes may be plain strings, integers
// and bools too, and a "/" in a driver's name becomes "." and a "-" in an
// attribute's "_". What is each node's own, the pool, the name of the slice and
// that of the node, is made up for it.
func NodeOverlay(source *unstructured.Unstructured) (*Adapted, error) {
	o := &nodeOverlay{name: source.GetName()}
	path := field.NewPath("spec")
	annotation := source.GetAnnotations()[v1alpha1.ResourceSlicesAnnotation]
	inSpec, _, _ := unstructured.NestedFieldNoCopy(source.Object, "spec", "resourceSlices")
	if list, isList := inSpec.([]any); annotation == "" && (inSpec == nil || isList && len(list) == 0) {
		return &Adapted{}, nil
	}
	if err := o.decodeSpec(source, &o.spec); err != nil {
		return nil, err
	}
	given, at := o.spec.ResourceSlices, path.Child("resourceSlices")
	o.misfits = slices.DeleteFunc(o.misfits, func(p strict.Problem) bool { return p.Unknown && !strict.Within(at.String(), p.Path) })
	if annotationPath := field.NewPath("metadata", "annotations").Key(v1alpha1.ResourceSlicesAnnotation); len(given) == 0 {
		given, at = o.annotated(annotation, annotationPath), annotationPath
	} else if annotation != "" {
		o.change("%s is ignored, since the NodeOverlay has %s", annotationPath, at)
	}
	if weight := o.spec.Weight; weight != nil && (*weight < 0 || *weight > maxWeight) {
		o.refuse(field.Invalid(path.Child("weight"), *weight, fmt.Sprintf("must be between 1 and %d", maxWeight)))
	}
	for i := range given {
		o.addSlice(&given[i], at.Index(i))
	}
	adapted, err := o.finish()
	if err != nil {
		return nil, err
	}
	leaveToLayout(adapted.Templates)
	return adapted, nil
}

// leaveToLayout has templates with counter sets divided into slices when they are
// published: where the API server wants counter sets depends on its version.
func leaveToLayout(templates []v1alpha1.ResourcePoolTemplate) {
	for i := range templates {
		if spec := &templates[i].Spec; len(spec.SharedCounters) > 0 {
			spec.Slices = nil
		}
	}
}

// annotated are the slices in the annotation.
func (o *nodeOverlay) annotated(text string, path *field.Path) []overlaySlice {
	document, problems := parse(text)
	for _, p := range problems {
		o.misfits = append(o.misfits, strict.Problem{Path: path.String(), Text: p.String()})
	}
	var given []overlaySlice
	if len(problems) == 0 {
		o.misfits = append(o.misfits, document.Decode(&given, path)...)
	}
	return given
}

// priority ranks the overlay's templates by its weight.
func (o *nodeOverlay) priority() int32 {
	if o.spec.Weight == nil {
		return NodeOverlayPriority
	}
	return NodeOverlayPriority + *o.spec.Weight
}
