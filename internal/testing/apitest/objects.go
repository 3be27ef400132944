package apitest

import (
	"encoding/json"
	"errors"
	"strconv"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/client-go/applyconfigurations"
	"k8s.io/client-go/kubernetes/scheme"
	clienttesting "k8s.io/client-go/testing"
)

// objects are what the server stores.
type objects struct {
	clienttesting.ObjectTracker
	admit   func(object runtime.Object) error
	version int
}

func newObjects(admit func(object runtime.Object) error) *objects {
	return &objects{clienttesting.NewObjectTracker(scheme.Scheme, scheme.Codecs.UniversalDecoder()), admit, 0}
}

// Create stores a new object.
func (o *objects) Create(resource schema.GroupVersionResource, object runtime.Object, namespace string, _ ...metav1.CreateOptions) error {
	if err := o.prepare(object); err != nil {
		return err
	}
	return o.ObjectTracker.Create(resource, object, namespace)
}

// prepare completes a new object.
func (o *objects) prepare(object runtime.Object) error {
	if err := o.admit(object); err != nil {
		return err
	}
	version := o.number(object)
	if m := metaOf(object); m.GetUID() == "" {
		m.SetUID(types.UID("uid-" + version))
	}
	if m := metaOf(object); m.GetName() == "" {
		m.SetName(m.GetGenerateName() + version)
	}
	return nil
}

// Update stores what a call makes of an object, unless the call is about an older one.
func (o *objects) Update(resource schema.GroupVersionResource, object runtime.Object, namespace string, _ ...metav1.UpdateOptions) error {
	live, err := o.Get(resource, namespace, metaOf(object).GetName())
	if err != nil {
		return err
	}
	if err := expect(resource, metaOf(live), metaOf(object).GetUID(), metaOf(object).GetResourceVersion()); err != nil {
		return err
	}
	if err := o.admit(object); err != nil {
		return err
	}
	return o.store(resource, live, object)
}

// Patch stores what a patch that is none to apply makes of an object.
func (o *objects) Patch(resource schema.GroupVersionResource, object runtime.Object, namespace string, _ ...metav1.PatchOptions) error {
	return o.Update(resource, object, namespace)
}

// Delete deletes an object, unless the call is about an older one.
func (o *objects) Delete(resource schema.GroupVersionResource, namespace, name string, options ...metav1.DeleteOptions) error {
	live, err := o.Get(resource, namespace, name)
	if err != nil {
		return err
	}
	for _, option := range options {
		if p := option.Preconditions; p != nil {
			err = expect(resource, metaOf(live), valueOf(p.UID), valueOf(p.ResourceVersion))
		}
	}
	if err != nil {
		return err
	}
	return o.ObjectTracker.Delete(resource, namespace, name)
}

// apply is Apply with the subresource, which the tracker is not told.
func (o *objects) apply(action *clienttesting.PatchActionImpl) (runtime.Object, error) {
	live, err := o.Get(action.Resource, action.Namespace, action.Name)
	if err != nil {
		return nil, err
	}
	applied := &unstructured.Unstructured{}
	if err := json.Unmarshal(action.Patch, &applied.Object); err != nil {
		return nil, err
	}
	if err := expect(action.Resource, metaOf(live), applied.GetUID(), applied.GetResourceVersion()); err != nil {
		return nil, err
	}
	manager, err := managerOf(live, action.Subresource)
	if err != nil {
		return nil, err
	}
	merged, err := manager.Apply(live, applied, action.PatchOptions.FieldManager, true)
	if err != nil {
		return nil, err
	}
	if err := o.Update(action.Resource, merged, action.Namespace); err != nil {
		return nil, err
	}
	return o.Get(action.Resource, action.Namespace, action.Name)
}

// update is Update with the subresource and the field manager, which the tracker is not told.
func (o *objects) update(action *clienttesting.UpdateActionImpl) (runtime.Object, error) {
	live, err := o.Get(action.Resource, action.Namespace, metaOf(action.Object).GetName())
	if err != nil {
		return nil, err
	}
	object := action.Object.DeepCopyObject()
	object.GetObjectKind().SetGroupVersionKind(kindOf(object))
	manager, err := managerOf(object, action.Subresource)
	if err != nil {
		return nil, err
	}
	if metaOf(live).GetManagedFields() == nil { // nobody's updates are tracked where it has none
		metaOf(live).SetManagedFields([]metav1.ManagedFieldsEntry{{
			Manager: "someone", Operation: metav1.ManagedFieldsOperationUpdate, APIVersion: kindOf(object).GroupVersion().String(),
			FieldsType: "FieldsV1", FieldsV1: metav1.NewFieldsV1(`{"f:metadata":{}}`),
		}})
	}
	if object, err = manager.Update(live, object, action.UpdateOptions.FieldManager); err != nil {
		return nil, err
	}
	if err := o.Update(action.Resource, object, action.Namespace); err != nil {
		return nil, err
	}
	return o.Get(action.Resource, action.Namespace, metaOf(object).GetName())
}

// managerOf manages the fields of objects of a kind.
func managerOf(object runtime.Object, subresource string) (*managedfields.FieldManager, error) {
	kind := kindOf(object)
	return managedfields.NewDefaultFieldManager(applyconfigurations.NewTypeConverter(scheme.Scheme), scheme.Scheme, noDefaults{}, scheme.Scheme,
		kind, kind.GroupVersion(), subresource, nil)
}

type noDefaults struct{}

func (noDefaults) Default(runtime.Object) {}

func kindOf(object runtime.Object) schema.GroupVersionKind {
	kinds, _, err := scheme.Scheme.ObjectKinds(object)
	must(err)
	return kinds[0]
}

func valueOf[T any](pointer *T) (value T) {
	if pointer != nil {
		value = *pointer
	}
	return value
}

// expect reports a conflict if an object is not the one that a call is about.
func expect(resource schema.GroupVersionResource, live metav1.Object, uid types.UID, version string) error {
	switch {
	case uid != "" && uid != live.GetUID():
		return apierrors.NewConflict(resource.GroupResource(), live.GetName(), errors.New("precondition failed: UID"))
	case version != "" && version != live.GetResourceVersion():
		return apierrors.NewConflict(resource.GroupResource(), live.GetName(), errors.New("it has changed"))
	}
	return nil
}

// store stores an object under a new resource version if it has changed.
func (o *objects) store(resource schema.GroupVersionResource, live, object runtime.Object) error {
	if equalButTimes(live, object) {
		return nil
	}
	o.number(object)
	return o.ObjectTracker.Update(resource, object, metaOf(live).GetNamespace())
}

// number gives an object the next resource version.
func (o *objects) number(object runtime.Object) string {
	o.version++
	version := strconv.Itoa(o.version)
	metaOf(object).SetResourceVersion(version)
	return version
}

// equalButTimes passes over the times in managedFields, as the API server does.
func equalButTimes(a, b runtime.Object) bool {
	a, b = a.DeepCopyObject(), b.DeepCopyObject()
	for _, object := range []runtime.Object{a, b} {
		fields := metaOf(object).GetManagedFields()
		for i := range fields {
			fields[i].Time = nil
		}
	}
	return apiequality.Semantic.DeepEqual(a, b)
}
