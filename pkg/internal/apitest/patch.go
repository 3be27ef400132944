package apitest

import (
	"encoding/json"
	"fmt"
	"reflect"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
	"k8s.io/client-go/applyconfigurations"
	"k8s.io/client-go/kubernetes/scheme"
	clienttesting "k8s.io/client-go/testing"
)

func (s *Server) patch(action *clienttesting.PatchActionImpl) (runtime.Object, error) {
	live, err := s.tracker.Get(action.Resource, action.Namespace, action.Name)
	if err != nil {
		return nil, err
	}
	if action.PatchType == types.ApplyPatchType {
		return s.apply(action, live)
	}
	patched, err := Patched(live, action.PatchType, action.Patch)
	if err != nil {
		return nil, apierrors.NewInvalid(kindOf(live).GroupKind(), action.Name, nil)
	}
	return s.replace(action.Resource, live, patched)
}

// Patched returns what a patch that is none to apply makes of an object.
func Patched(live runtime.Object, patchType types.PatchType, patch []byte) (runtime.Object, error) {
	before, err := json.Marshal(live)
	if err != nil {
		return nil, err
	}
	object := reflect.New(reflect.TypeOf(live).Elem()).Interface().(runtime.Object)
	var after []byte
	switch patchType {
	case types.MergePatchType:
		after, err = jsonpatch.MergePatch(before, patch)
	case types.StrategicMergePatchType:
		after, err = strategicpatch.StrategicMergePatch(before, patch, object)
	case types.JSONPatchType:
		var operations jsonpatch.Patch
		if operations, err = jsonpatch.DecodePatch(patch); err == nil {
			after, err = operations.Apply(before)
		}
	default:
		err = fmt.Errorf("unexpected patch type %s", patchType)
	}
	if err != nil {
		return nil, err
	}
	return object, json.Unmarshal(after, object)
}

func (s *Server) apply(action *clienttesting.PatchActionImpl, live runtime.Object) (runtime.Object, error) {
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
	return s.replace(action.Resource, live, merged)
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
