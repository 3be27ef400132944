package v1alpha1

import (
	"reflect"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
)

func TestAddToScheme(t *testing.T) {
	t.Parallel()
	scheme := runtime.NewScheme()
	require.NoError(t, AddToScheme(scheme))
	text := "apiVersion: " + APIVersion + "\nkind: ResourcePoolTemplateList\nitems: [{metadata: {name: a}, spec: {driver: d, devices: [{name: gpu, attributes: {index: 1}}]}}]"
	decoded, _, err := serializer.NewCodecFactory(scheme).UniversalDeserializer().Decode([]byte(text), nil, nil)
	require.NoError(t, err)
	require.Equal(t, Attribute{Type: AttributeInt, Value: "1"}, decoded.(*ResourcePoolTemplateList).Items[0].Spec.Devices[0].Attributes["index"])
}

// TestDeepCopy: `make generate` has been run since the types changed. A copy would
// share memory with its original.
func TestDeepCopy(t *testing.T) {
	t.Parallel()
	for _, object := range []runtime.Object{&ResourcePoolTemplate{}, &ResourcePoolTemplateList{}, &KwokDRAConfiguration{}, &KwokDRAConfigurationList{}} {
		fill(reflect.ValueOf(object).Elem())
		copied := object.DeepCopyObject()
		require.Equal(t, object, copied)
		requireApart(t, reflect.TypeOf(object).String(), reflect.ValueOf(object), reflect.ValueOf(copied))
	}
}

// fill gives every field a value, but for those of a type within itself.
func fill(v reflect.Value, within ...reflect.Type) {
	switch v.Kind() {
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(v.Elem(), within...)
	case reflect.Struct:
		if slices.Contains(within, v.Type()) {
			return
		}
		within = append(slices.Clone(within), v.Type())
		for _, inner := range v.Fields() {
			if inner.CanSet() {
				fill(inner, within...)
			}
		}
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		fill(v.Index(0), within...)
	case reflect.Map:
		element := reflect.New(v.Type().Elem()).Elem()
		fill(element, within...)
		v.Set(reflect.MakeMap(v.Type()))
		v.SetMapIndex(reflect.Zero(v.Type().Key()), element)
	case reflect.String:
		v.SetString("x")
	case reflect.Bool:
		v.SetBool(true)
	}
}

// requireApart wants two values without common memory.
func requireApart(t *testing.T, path string, a, b reflect.Value) {
	t.Helper()
	if hasMemory := a.Kind() == reflect.Pointer || a.Kind() == reflect.Slice || a.Kind() == reflect.Map; hasMemory {
		if a.IsNil() {
			return
		}
		require.NotEqual(t, a.Pointer(), b.Pointer(), path)
	}
	switch a.Kind() {
	case reflect.Pointer:
		requireApart(t, path, a.Elem(), b.Elem())
	case reflect.Struct:
		for field, inner := range a.Fields() {
			if field.IsExported() {
				requireApart(t, path+"."+field.Name, inner, b.FieldByIndex(field.Index))
			}
		}
	case reflect.Slice:
		for i, inner := range a.Seq2() {
			requireApart(t, path+"[]", inner, b.Index(int(i.Int())))
		}
	case reflect.Map:
		for key, inner := range a.Seq2() {
			requireApart(t, path+"{}", inner, b.MapIndex(key))
		}
	}
}
