package slices

import (
	"maps"
	"slices"
	"strings"

	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kwok-dra/kwok-dra/pkg/api/v1alpha1"
)

// labelsAnnotation names the labels of a slice that are from templates, so that
// those can be told from others' that a template no longer has.
const labelsAnnotation = v1alpha1.GroupName + "/slice-labels"

// setLabels labels a slice as kwok-dra's, and as templates say.
func setLabels(slice *metav1.ObjectMeta, fromTemplates map[string]string) {
	slice.Labels = map[string]string{v1alpha1.ManagedByLabel: v1alpha1.ManagedByValue}
	if len(fromTemplates) == 0 {
		return
	}
	maps.Copy(slice.Labels, fromTemplates)
	slice.Annotations = map[string]string{labelsAnnotation: strings.Join(slices.Sorted(maps.Keys(fromTemplates)), ",")}
}

// ownLabels are the labels and the annotation of a slice, as far as they tell
// what templates say. Most slices have kwok-dra's label only, which is not kept: the
// cache of a fleet is large.
type ownLabels struct {
	// labels are nil where there is kwok-dra's only.
	labels map[string]string
	names  string
}

func ownLabelsOf(slice *resourcev1.ResourceSlice) ownLabels {
	names := slice.Annotations[labelsAnnotation]
	switch {
	case isOwned(slice) && len(slice.Labels) == 1 && names == "":
		return ownLabels{}
	case slice.Labels == nil:
		return ownLabels{labels: map[string]string{}, names: names}
	}
	return ownLabels{labels: slice.Labels, names: names}
}

// isOwned reports whether a slice has the label of kwok-dra's.
func isOwned(slice *resourcev1.ResourceSlice) bool {
	return slice.Labels[v1alpha1.ManagedByLabel] == v1alpha1.ManagedByValue
}

// match reports whether a slice has the labels that it should have. It
// ignores the labels of others.
func (o ownLabels) match(want *resourcev1.ResourceSlice) bool {
	if o.names != want.Annotations[labelsAnnotation] {
		return false
	}
	for key, value := range want.Labels {
		got, has := o.labels[key]
		if o.labels == nil && key == v1alpha1.ManagedByLabel {
			continue
		}
		if !has || got != value {
			return false
		}
	}
	return true
}

// patch is what of the metadata makes the labels those that the slice should
// have. Labels that templates no longer have are removed.
func (o ownLabels) patch(want *resourcev1.ResourceSlice) (labels, annotations map[string]any) {
	labels, annotations = map[string]any{}, map[string]any{}
	for key := range strings.SplitSeq(o.names, ",") {
		if _, has := o.labels[key]; has {
			labels[key] = nil
		}
	}
	for key, value := range want.Labels {
		labels[key] = value
	}
	if o.names != "" {
		annotations[labelsAnnotation] = nil
	}
	for key, value := range want.Annotations {
		annotations[key] = value
	}
	return labels, annotations
}
