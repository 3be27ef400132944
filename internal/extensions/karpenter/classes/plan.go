package classes

import (
	"maps"

	resourcev1 "k8s.io/api/resource/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kwok-dra/kwok-dra/internal/config"
	"github.com/kwok-dra/kwok-dra/internal/controller/installation"
	"github.com/kwok-dra/kwok-dra/pkg/api/v1alpha1"
)

// verb is what to do with a DeviceClass.
type verb string

const (
	nothing verb = ""
	create  verb = "create"
	update  verb = "update"
	remove  verb = "delete"
	// leave means that the class belongs to somebody else.
	leave verb = "leave"
)

// step is the next API call that brings a DeviceClass up to date.
type step struct {
	verb  verb
	class *resourcev1.DeviceClass
}

// planClass compares the wanted class with the existing one, either of which may be nil. If only a
// field differs that the API server has dropped, it plans an update only if retryDropped is set.
func planClass(as installation.ID, want *config.Class, existing *resourcev1.DeviceClass, retryDropped bool) step {
	isOurs := existing != nil && existing.Labels[v1alpha1.ManagedByLabel] == v1alpha1.ManagedByValue && !as.IsAnother(installation.Of(existing))
	switch {
	case want == nil && isOurs:
		return step{remove, existing}
	case want == nil:
		return step{}
	case existing == nil:
		return step{create, withRecord(as, &want.DeviceClass)}
	case !isOurs:
		return step{leave, existing}
	}
	wanted := withRecord(as, &want.DeviceClass)
	changed := existing.DeepCopy()
	maps.Copy(changed.Labels, wanted.Labels)
	as.Record(&changed.ObjectMeta)
	changed.Spec = wanted.Spec
	expected := changed.DeepCopy()
	if !retryDropped && dropsExtendedResource(changed, existing) {
		expected.Spec.ExtendedResourceName = nil
	}
	if apiequality.Semantic.DeepEqual(expected, existing) {
		return step{}
	}
	return step{update, changed}
}

// withRecord returns a class with the label and the record of its installation.
func withRecord(as installation.ID, class *resourcev1.DeviceClass) *resourcev1.DeviceClass {
	made := class.DeepCopy()
	as.Record(&made.ObjectMeta)
	metav1.SetMetaDataLabel(&made.ObjectMeta, v1alpha1.ManagedByLabel, v1alpha1.ManagedByValue)
	return made
}

// dropsExtendedResource reports whether the API server dropped the name of the extended resource.
func dropsExtendedResource(sent, stored *resourcev1.DeviceClass) bool {
	return sent.Spec.ExtendedResourceName != nil && stored.Spec.ExtendedResourceName == nil
}
