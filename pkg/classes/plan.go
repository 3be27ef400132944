package classes

import (
	"maps"

	resourcev1 "k8s.io/api/resource/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kwok-dra/kwok-dra/pkg/api/v1alpha1"
	"github.com/kwok-dra/kwok-dra/pkg/config"
	"github.com/kwok-dra/kwok-dra/pkg/installation"
)

// verb is what to do with a DeviceClass.
type verb string

const (
	nothing verb = ""
	create  verb = "create"
	update  verb = "update"
	remove  verb = "delete"
	// leave means that the class belongs to someone else.
	leave verb = "leave"
)

// step is what brings a DeviceClass to the state it should be in.
type step struct {
	verb  verb
	class *resourcev1.DeviceClass
}

// plan compares the class that is wanted, or nil, with the one there is, or nil, as an
// installation does. It plans an update for nothing but a field that the API server has
// dropped only if ask.
func plan(as installation.ID, want *config.Class, existing *resourcev1.DeviceClass, ask bool) step {
	ours := existing != nil && existing.Labels[v1alpha1.ManagedByLabel] == v1alpha1.ManagedByValue && !as.IsAnother(installation.Of(existing))
	switch {
	case want == nil && ours:
		return step{remove, existing}
	case want == nil:
		return step{}
	case existing == nil:
		return step{create, recorded(as, &want.DeviceClass)}
	case !ours:
		return step{leave, existing}
	}
	wanted := recorded(as, &want.DeviceClass)
	changed := existing.DeepCopy()
	maps.Copy(changed.Labels, wanted.Labels)
	as.Record(&changed.ObjectMeta)
	changed.Spec = wanted.Spec
	expected := changed.DeepCopy()
	if !ask && dropped(changed, existing) {
		expected.Spec.ExtendedResourceName = nil
	}
	if apiequality.Semantic.DeepEqual(expected, existing) {
		return step{}
	}
	return step{update, changed}
}

// recorded is a class with what says whose it is.
func recorded(as installation.ID, class *resourcev1.DeviceClass) *resourcev1.DeviceClass {
	made := class.DeepCopy()
	as.Record(&made.ObjectMeta)
	metav1.SetMetaDataLabel(&made.ObjectMeta, v1alpha1.ManagedByLabel, v1alpha1.ManagedByValue)
	return made
}

// dropped reports whether the API server has dropped the name of the extended
// resource.
func dropped(sent, stored *resourcev1.DeviceClass) bool {
	return sent.Spec.ExtendedResourceName != nil && stored.Spec.ExtendedResourceName == nil
}
