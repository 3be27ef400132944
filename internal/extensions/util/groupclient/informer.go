package groupclient

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
)

// Resource is the client of a resource, in a namespace or in all.
type Resource[L runtime.Object] interface {
	List(ctx context.Context, options metav1.ListOptions) (L, error)
	Watch(ctx context.Context, options metav1.ListOptions) (watch.Interface, error)
}

// NewInformer watches the objects of a resource that the options select by their fields and labels. The informers of
// client-go need a whole kubernetes.Interface.
func NewInformer[L runtime.Object](client Interface, of Resource[L], object runtime.Object, selected metav1.ListOptions) cache.SharedIndexInformer {
	choose := func(options metav1.ListOptions) metav1.ListOptions {
		options.FieldSelector, options.LabelSelector = selected.FieldSelector, selected.LabelSelector
		return options
	}
	listWatch := &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			return of.List(ctx, choose(options))
		},
		WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
			return of.Watch(ctx, choose(options))
		},
	}
	// The client says whether it can begin a watch with a list; fakes cannot.
	return cache.NewSharedIndexInformer(cache.ToListWatcherWithWatchListSemantics(listWatch, client), object, 0, nil)
}
