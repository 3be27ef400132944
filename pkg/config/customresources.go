package config

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
)

// lookForKinds is how often it is looked whether the custom resource definitions
// have come or gone. To watch them would take the right to read all there are.
const lookForKinds = 5 * time.Second

// listLimit bounds how long the list of a kind may hold up the others. A
// definition may go before all there are have been listed.
const listLimit = 30 * time.Second

// CustomResources watches the custom resources and hands them to Objects. While
// a kind has no definition there are none of it.
type CustomResources struct {
	client    dynamic.Interface
	discovery discovery.ServerResourcesInterfaceWithContext
	objects   *Objects
	kinds     []Kind
	synced    *once

	// running holds what ends the watch of a kind.
	running map[string]func()
	// missing holds since when the list of a kind has answered that there is none.
	missing map[string]time.Time
}

// NewCustomResources prepares to watch the kinds; Run starts it.
func NewCustomResources(client dynamic.Interface, discovery discovery.ServerResourcesInterfaceWithContext, objects *Objects, kinds ...Kind) *CustomResources {
	return &CustomResources{client: client, discovery: discovery, objects: objects, kinds: kinds, synced: newOnce(ObjectsCarrier), running: map[string]func(){}, missing: map[string]time.Time{}}
}

// Synced is done when all that there were at the start have been taken or
// refused.
func (c *CustomResources) Synced() cache.DoneChecker {
	return c.synced
}

// Run watches until ctx ends.
func (c *CustomResources) Run(ctx context.Context) {
	var running sync.WaitGroup
	defer running.Wait()
	ticker := time.NewTicker(lookForKinds)
	defer ticker.Stop()
	for ctx.Err() == nil {
		if err := c.look(ctx, &running); err != nil && ctx.Err() == nil {
			klog.FromContext(ctx).V(2).Info("Cannot tell which custom resources there are", "err", err)
		}
		select {
		case <-ctx.Done():
		case <-ticker.C:
		}
	}
}

// look starts and ends watches as the definitions come and go.
func (c *CustomResources) look(ctx context.Context, running *sync.WaitGroup) error {
	served, err := c.served(ctx)
	if err != nil {
		return err
	}
	changed := map[string]func() []*unstructured.Unstructured{}
	var failed []error
	for _, kind := range c.kinds {
		content, err := c.lookFor(ctx, kind, served[kind.Resource], running)
		if content != nil {
			changed[kind.Name] = content
		}
		if err != nil {
			failed = append(failed, err)
		}
	}
	// All kinds at once: templates are not to be published before it is known when.
	if !c.synced.is() && len(failed) > 0 {
		c.stop(slices.Collect(maps.Keys(changed))...)
		return errors.Join(failed...)
	}
	if len(changed) > 0 || !c.synced.is() {
		c.objects.Replace(ctx, changed)
	}
	c.synced.do()
	return errors.Join(failed...)
}

// lookFor starts or ends the watch of a kind, and returns what there is of it where
// that has changed. The error says why that cannot be told.
func (c *CustomResources) lookFor(ctx context.Context, kind Kind, served bool, running *sync.WaitGroup) (func() []*unstructured.Unstructured, error) {
	_, watched := c.running[kind.Name]
	if served {
		delete(c.missing, kind.Name)
	}
	switch {
	case served && watched:
	case served:
		informer, err := c.watch(ctx, kind, running)
		if err != nil {
			return nil, err
		}
		return func() []*unstructured.Unstructured { return contentOf(informer) }, nil
	case !c.gone(ctx, kind):
		return nil, fmt.Errorf("find %s: the API server does not name them among its resources", kind.Resource.Resource)
	case watched:
		c.stop(kind.Name)
		klog.FromContext(ctx).Info("The custom resource definition is gone", "kind", kind.Name)
		return func() []*unstructured.Unstructured { return nil }, nil
	}
	return nil, nil
}

// gone reports whether the definition of a kind is gone: discovery does not name it,
// and its own list says so as well, twice and some time apart. An API server that
// starts answers that there is no such resource, also where there is.
func (c *CustomResources) gone(ctx context.Context, kind Kind) bool {
	_, err := c.client.Resource(kind.Resource).List(ctx, metav1.ListOptions{Limit: 1})
	_, watched := c.running[kind.Name]
	if !apierrors.IsNotFound(err) && (watched || !apierrors.IsForbidden(err)) {
		delete(c.missing, kind.Name)
		return false
	}
	if c.missing[kind.Name].IsZero() {
		c.missing[kind.Name] = time.Now()
	}
	return time.Since(c.missing[kind.Name]) >= lookForKinds/2
}

func (c *CustomResources) stop(kinds ...string) {
	for _, kind := range kinds {
		c.running[kind]()
		delete(c.running, kind)
	}
}

// served tells which resources have a definition.
func (c *CustomResources) served(ctx context.Context) (map[schema.GroupVersionResource]bool, error) {
	served := map[schema.GroupVersionResource]bool{}
	asked := map[schema.GroupVersion]bool{}
	for _, kind := range c.kinds {
		version := kind.Resource.GroupVersion()
		if asked[version] {
			continue
		}
		asked[version] = true
		list, err := c.discovery.ServerResourcesForGroupVersionWithContext(ctx, version.String())
		if apierrors.IsNotFound(err) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("find the custom resources of %s: %w", version, err)
		}
		for _, resource := range list.APIResources {
			served[version.WithResource(resource.Name)] = true
		}
	}
	return served, nil
}

// watch watches a kind, and returns when all there are have been listed.
func (c *CustomResources) watch(ctx context.Context, kind Kind, running *sync.WaitGroup) (cache.SharedIndexInformer, error) {
	ctx, cancel := context.WithCancel(ctx)
	informer := dynamicinformer.NewFilteredDynamicInformer(c.client, kind.Resource, "", 0, nil, nil).Informer()
	running.Go(func() { informer.RunWithContext(ctx) })
	listing, done := context.WithTimeout(ctx, listLimit)
	defer done()
	if !cache.WaitForCacheSync(listing.Done(), informer.HasSynced) {
		cancel()
		return nil, fmt.Errorf("list %s: %w", kind.Resource.Resource, listing.Err())
	}
	// Before the content is taken, so that nothing that changes meanwhile is missed.
	if err := c.handle(ctx, kind.Name, informer); err != nil {
		cancel()
		return nil, err
	}
	c.running[kind.Name] = cancel
	klog.FromContext(ctx).Info("Watching custom resources", "kind", kind.Name)
	return informer, nil
}

func contentOf(informer cache.SharedIndexInformer) []*unstructured.Unstructured {
	var all []*unstructured.Unstructured
	for _, object := range informer.GetStore().List() {
		all = append(all, object.(*unstructured.Unstructured))
	}
	return all
}

func (c *CustomResources) handle(ctx context.Context, kind string, informer cache.SharedIndexInformer) error {
	_, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(object any) { c.objects.Take(ctx, object.(*unstructured.Unstructured)) },
		UpdateFunc: func(_, object any) { c.objects.Take(ctx, object.(*unstructured.Unstructured)) },
		DeleteFunc: func(object any) {
			if name, err := cache.DeletionHandlingMetaNamespaceKeyFunc(object); err == nil {
				c.objects.Drop(ctx, kind, name)
			}
		},
	})
	if err != nil {
		return fmt.Errorf("watch %s: %w", kind, err)
	}
	return nil
}

// once is done once something has happened.
type once struct {
	name string
	done chan struct{}
}

func newOnce(name string) *once { return &once{name: name, done: make(chan struct{})} }

// Name and Done implement cache.DoneChecker.
func (o *once) Name() string { return o.name }

// Done implements cache.DoneChecker.
func (o *once) Done() <-chan struct{} { return o.done }

func (o *once) do() {
	if !o.is() {
		close(o.done)
	}
}

func (o *once) is() bool {
	select {
	case <-o.done:
		return true
	default:
		return false
	}
}
