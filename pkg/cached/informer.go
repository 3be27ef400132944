package cached

import (
	"context"
	"fmt"
	"iter"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"
)

// Kept is what a cache can keep of an object.
type Kept interface {
	cache.Object
	GetUID() types.UID
}

// Informer is the cache of one kind, and the watch that fills it. T is what the cache
// keeps of an object.
type Informer[T Kept] struct {
	shared cache.TypedSharedIndexInformer[T]
	synced []cache.DoneChecker
}

// NewInformer makes an Informer of one that has not been started. The transform, if
// there is one, makes a T of an object.
func NewInformer[T Kept](shared cache.SharedIndexInformer, transform cache.TransformFunc) Informer[T] {
	if err := shared.SetTransform(transform); err != nil {
		panic(fmt.Sprintf("set the transform of an informer that has not been started: %v", err))
	}
	return Informer[T]{cache.NewTypedSharedIndexInformer[T](shared), []cache.DoneChecker{shared.HasSyncedChecker()}}
}

// Transform is the transform that keeps a To of each object. An informer may pass it
// its own result.
func Transform[From, To any](keep func(From) To) cache.TransformFunc {
	return func(object any) (any, error) {
		if received, ok := object.(From); ok {
			return keep(received), nil
		}
		return object, nil
	}
}

// Handle calls a handler with what there is and with each change. Call it before Run.
//
// An object that replaces another of its name is added after the other is deleted, even if the
// watch was broken meanwhile and the informer sees one update. So no handler mistakes two objects for one.
func (i *Informer[T]) Handle(handler cache.TypedResourceEventHandler[T]) {
	registration, err := i.shared.AddTypedEventHandler(replacing[T]{handler})
	if err != nil {
		panic(fmt.Sprintf("add a handler to an informer that has not been started: %v", err))
	}
	i.synced = append(i.synced, registration.HasSyncedChecker())
}

// replacing turns an update to an object of another UID into a deletion and an addition.
type replacing[T Kept] struct {
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

// Synced are done when the cache is complete, and each handler has been called with
// all that there was at the start. Call it when all handlers are added.
func (i *Informer[T]) Synced() []cache.DoneChecker {
	return i.synced
}

// Run watches until ctx ends.
func (i *Informer[T]) Run(ctx context.Context) {
	i.shared.RunWithContext(ctx)
}

// Get returns what the cache has under a key, or nil.
func (i *Informer[T]) Get(key string) (kept T) {
	if object, exists, err := i.shared.GetStore().GetByKey(key); err == nil && exists {
		kept = object.(T)
	}
	return kept
}

// Keys are the keys of all objects in the cache.
func (i *Informer[T]) Keys() []string {
	return i.shared.GetStore().ListKeys()
}

// All are all objects in the cache.
func (i *Informer[T]) All() iter.Seq[T] {
	return func(yield func(T) bool) {
		for _, object := range i.shared.GetStore().List() {
			if !yield(object.(T)) {
				return
			}
		}
	}
}

// By are the objects that an index has under a value.
func (i *Informer[T]) By(index, value string) []T {
	found, err := i.shared.GetTypedIndexer().ByTypedIndex(index, value)
	if err != nil {
		panic(fmt.Sprintf("list by %s: %v", index, err)) // there is no such index
	}
	return found
}
