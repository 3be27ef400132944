// Package cached has what all caches of API objects share.
package cached

import (
	"fmt"

	"k8s.io/apimachinery/pkg/util/resourceversion"
	"k8s.io/client-go/tools/cache"
)

// MustTransform sets the transform of an informer that has not been started,
// the only case in which it cannot fail.
func MustTransform(informer cache.SharedIndexInformer, transform cache.TransformFunc) {
	if err := informer.SetTransform(transform); err != nil {
		panic(fmt.Sprintf("set the transform of an informer that has not been started: %v", err))
	}
}

// Get returns what a store has under a key, or nil.
func Get[T any](store cache.Store, key string) *T {
	object, exists, err := store.GetByKey(key)
	if err != nil || !exists {
		return nil
	}
	return object.(*T)
}

// Older reports whether one resource version is older than another. Those that
// are not numbers, as no API server's, count as equal.
func Older(version, than string) bool {
	order, err := resourceversion.CompareResourceVersion(version, than)
	return err == nil && order < 0
}
