package adapters

import (
	"encoding/json"
	"fmt"

	"go.yaml.in/yaml/v3"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/kwok-dra/kwok-dra/pkg/api/v1alpha1"
)

// maxWeight is the most that Karpenter takes.
const maxWeight = 10_000

// overlaySpec is what there is to know of a NodeOverlay. Prices and more are
// Karpenter's.
type overlaySpec struct {
	Weight         *int32                           `json:"weight"`
	Requirements   []corev1.NodeSelectorRequirement `json:"requirements"`
	ResourceSlices []json.RawMessage                `json:"resourceSlices"`
}

// nodeOverlay adapts a NodeOverlay.
type nodeOverlay struct {
	adapter
	name    string
	spec    overlaySpec
	written []written
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
	data, err := json.Marshal(source.Object["spec"])
	if err != nil {
		return nil, fmt.Errorf("encode spec: %w", err)
	}
	o.problems.decodeLoosely(data, &o.spec, path)
	given, at := o.spec.ResourceSlices, path.Child("resourceSlices")
	if annotationPath := field.NewPath("metadata", "annotations").Key(v1alpha1.ResourceSlicesAnnotation); len(given) == 0 {
		given, at = o.annotated(annotation, annotationPath), annotationPath
	} else if annotation != "" {
		o.change("%s is ignored, since the NodeOverlay has %s", annotationPath, at)
	}
	if weight := o.spec.Weight; weight != nil && (*weight < 0 || *weight > maxWeight) {
		o.problems.addErrors(field.Invalid(path.Child("weight"), *weight, fmt.Sprintf("must be between 1 and %d", maxWeight)))
	}
	for i, raw := range given {
		o.addSlice(raw, o.writtenIn(i), at.Index(i))
	}
	for _, d := range o.drafts {
		// Where the API server wants counter sets depends on its version.
		if len(d.template.Spec.SharedCounters) > 0 {
			d.template.Spec.Slices = nil
		}
	}
	return o.finish()
}

// annotated are the slices in the annotation.
func (o *nodeOverlay) annotated(text string, path *field.Path) []json.RawMessage {
	document, err := readYAML(text)
	if err != nil {
		o.problems.add(path.String(), err.Error())
		return nil
	}
	var given []json.RawMessage
	if document == nil || !o.problems.decodeLoosely(document, &given, path) {
		return nil
	}
	var all []struct {
		Spec written `yaml:"spec"`
	}
	_ = yaml.Unmarshal([]byte(text), &all) // valid, or else reported already
	for i := range all {
		o.written = append(o.written, all[i].Spec)
	}
	return given
}

// writtenIn finds the attributes of a slice as they are written, where they are.
func (o *nodeOverlay) writtenIn(slice int) written {
	if slice < len(o.written) {
		return o.written[slice]
	}
	return written{}
}

// priority ranks the overlay's templates by its weight.
func (o *nodeOverlay) priority() int32 {
	if o.spec.Weight == nil {
		return NodeOverlayPriority
	}
	return NodeOverlayPriority + *o.spec.Weight
}
