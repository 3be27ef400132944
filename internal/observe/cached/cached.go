package cached

import (
	"context"
	"fmt"
	"iter"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"k8s.io/client-go/tools/cache"
)

// Identified is what a cache keeps of an object, with its name and UID.
type Identified interface {
	cache.Object
	GetUID() types.UID
}

// Informer is the cache of one kind, and the watch that fills it. T is what the cache keeps of an object.
type Informer[T Identified] struct {
	shared cache.TypedSharedIndexInformer[T]
	synced []cache.DoneChecker
}

// NewInformer wraps an informer that has not been started. The transform, if there is one, makes a T of an object.
func NewInformer[T Identified](shared cache.SharedIndexInformer, transform cache.TransformFunc) Informer[T] {
	if err := shared.SetTransform(transform); err != nil {
		panic(fmt.Sprintf("set the transform of an informer that has not been started: %v", err))
	}
	return Informer[T]{cache.NewTypedSharedIndexInformer[T](shared), []cache.DoneChecker{shared.HasSyncedChecker()}}
}

// Transform makes a TransformFunc that keeps a To of each object. An informer may pass it its own result.
func Transform[From, To any](keep func(From) To) cache.TransformFunc {
	return func(object any) (any, error) {
		if received, ok := object.(From); ok {
			return keep(received), nil
		}
		return object, nil
	}
}

// Handle calls a handler with each object and with each change. Call it before Run.
//
// An object that replaces another one of its name is added after that is deleted, even if the watch was broken
// meanwhile and the informer sees one update. So no handler mistakes two objects for one.
func (i *Informer[T]) Handle(handler cache.TypedResourceEventHandler[T]) {
	registration, err := i.shared.AddTypedEventHandler(replacing[T]{handler})
	if err != nil {
		panic(fmt.Sprintf("add a handler to an informer that has not been started: %v", err))
	}
	i.synced = append(i.synced, registration.HasSyncedChecker())
}

// replacing turns an update to an object of another UID into a deletion and an addition.
type replacing[T Identified] struct {
	cache.TypedResourceEventHandler[T]
}

// OnUpdate implements cache.TypedResourceEventHandler.
func (r replacing[T]) OnUpdate(before, now T) {
	if before.GetUID() == now.GetUID() {
		r.TypedResourceEventHandler.OnUpdate(before, now)
		return
	}
	r.OnDelete(cache.DeletedObject[T]{OptionalObj: before})
	r.OnAdd(now, false)
}

// Synced is done when the cache is complete and each handler has been called with all objects that existed at the
// start. Call it when all handlers are added.
func (i *Informer[T]) Synced() []cache.DoneChecker {
	return i.synced
}

// Run watches until ctx ends.
func (i *Informer[T]) Run(ctx context.Context) {
	i.shared.RunWithContext(ctx)
}

// Get returns what the cache has under a key, or nil.
func (i *Informer[T]) Get(key string) (found T) {
	if object, exists, err := i.shared.GetStore().GetByKey(key); err == nil && exists {
		found = object.(T)
	}
	return found
}

// Keys lists the keys of the objects in the cache.
func (i *Informer[T]) Keys() []string {
	return i.shared.GetStore().ListKeys()
}

// All iterates over the objects in the cache.
func (i *Informer[T]) All() iter.Seq[T] {
	return func(yield func(T) bool) {
		for _, object := range i.shared.GetStore().List() {
			if !yield(object.(T)) {
				return
			}
		}
	}
}

// By returns the objects that an index has under a value.
func (i *Informer[T]) By(index, value string) []T {
	found, err := i.shared.GetTypedIndexer().ByTypedIndex(index, value)
	if err != nil {
		panic(fmt.Sprintf("list by %s: %v", index, err)) // there is no such index
	}
	return found
}

// Object is an object of type T in a cache that keeps all of it, but encoded, which takes much less memory.
type Object[T any, P encodable[T]] struct {
	Meta
	// Encoded has all but the resource version, so it is equal for objects that differ in nothing else.
	Encoded string
}

// encodable is a pointer to an API type.
type encodable[T any] interface {
	*T
	metav1.Object
	Marshal() ([]byte, error)
	Unmarshal(data []byte) error
}

// Keep encodes an object, which loses its resource version. If nothing else has changed, the Object shares the string
// that was encoded before.
func Keep[T any, P encodable[T]](object P, before string) Object[T, P] {
	kept := Object[T, P]{Meta: MetaOf(object), Encoded: before}
	object.SetResourceVersion("")
	data, err := object.Marshal()
	if err != nil {
		panic(fmt.Sprintf("encode what was decoded: %v", err))
	}
	if string(data) != before {
		kept.Encoded = string(data)
	}
	return kept
}

// Decode returns a copy of the object, with its version.
func (o *Object[T, P]) Decode() P {
	object := P(new(T))
	if err := object.Unmarshal([]byte(o.Encoded)); err != nil {
		panic(fmt.Sprintf("decode what was encoded: %v", err))
	}
	object.SetResourceVersion(o.ResourceVersion)
	return object
}

// Meta identifies an object, for types that keep a part of it. A metav1.ObjectMeta takes four times the memory.
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

// Older reports whether one resource version is older than another. Versions that are not numbers count as equal; no
// API server has such.
func Older(version, than string) bool {
	order, err := resourceversion.CompareResourceVersion(version, than)
	return err == nil && order < 0
}
