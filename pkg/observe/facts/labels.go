package facts

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

// SetLabels labels a slice as kwok-dra's, and as templates say.
func SetLabels(slice *metav1.ObjectMeta, fromTemplates map[string]string) {
	slice.Labels = map[string]string{v1alpha1.ManagedByLabel: v1alpha1.ManagedByValue}
	if len(fromTemplates) == 0 {
		return
	}
	maps.Copy(slice.Labels, fromTemplates)
	slice.Annotations = map[string]string{labelsAnnotation: strings.Join(slices.Sorted(maps.Keys(fromTemplates)), ",")}
}

// OwnLabels are the labels of a slice but for those of others. Those of two slices are
// equal if their labels need not be changed.
type OwnLabels struct {
	// names is the annotation.
	names string
	// labels are kwok-dra's and those that are named, joined: the cache of a fleet is
	// large.
	labels string
}

// OwnLabelsOf are the labels of a slice that are kwok-dra's or a template's.
func OwnLabelsOf(slice *resourcev1.ResourceSlice) OwnLabels {
	own := OwnLabels{names: slice.Annotations[labelsAnnotation]}
	for key := range strings.SplitSeq(v1alpha1.ManagedByLabel+","+own.names, ",") {
		if value, ok := slice.Labels[key]; ok {
			own.labels += key + "=" + value + ","
		}
	}
	return own
}

// Patch is what of the metadata makes the labels those that the slice should
// have. Labels that templates no longer have are removed.
func (o OwnLabels) Patch(want *resourcev1.ResourceSlice) (labels, annotations map[string]any) {
	labels, annotations = map[string]any{}, map[string]any{}
	if o.names != "" {
		annotations[labelsAnnotation] = nil
		for key := range strings.SplitSeq(o.names, ",") {
			labels[key] = nil
		}
	}
	for key, value := range want.Labels {
		labels[key] = value
	}
	for key, value := range want.Annotations {
		annotations[key] = value
	}
	return labels, annotations
}
