// Package cached has what all caches of API objects share.
package cached

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"
)

// Meta is what a cache needs to know of an object, for types that keep part of
// one. A metav1.ObjectMeta takes four times the memory.
type Meta struct {
	Namespace, Name string
	UID             types.UID
	ResourceVersion string
}

// MetaOf is the Meta of an object.
func MetaOf(object metav1.Object) Meta {
	return Meta{object.GetNamespace(), object.GetName(), object.GetUID(), object.GetResourceVersion()}
}

// GetNamespace is the namespace of the object.
func (m *Meta) GetNamespace() string { return m.Namespace }

// GetName is the name of the object.
func (m *Meta) GetName() string { return m.Name }

// GetUID is the UID of the object.
func (m *Meta) GetUID() types.UID { return m.UID }

// GetObjectMeta implements metav1.ObjectMetaAccessor, with a copy.
func (m *Meta) GetObjectMeta() metav1.Object {
	return &metav1.ObjectMeta{Namespace: m.Namespace, Name: m.Name, UID: m.UID, ResourceVersion: m.ResourceVersion}
}

// Older reports whether one resource version is older than another. Those that
// are not numbers, as no API server's, count as equal.
func Older(version, than string) bool {
	order, err := resourceversion.CompareResourceVersion(version, than)
	return err == nil && order < 0
}
