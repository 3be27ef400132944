package config

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/record"
	"k8s.io/klog/v2"

	"github.com/kwok-dra/kwok-dra/pkg/api/v1alpha1"
	"github.com/kwok-dra/kwok-dra/pkg/cached"
)

// ObjectsCarrier is the carrier of the custom resources.
const ObjectsCarrier = "custom resources"

// Objects are the custom resources of a cluster, as they come and go. Each
// stands for itself: where a version is refused, that object's last good version
// stays in force, and the others are as they are.
type Objects struct {
	store   *Store
	carrier *carrier
	// onChange is called when what was accepted may have changed.
	onChange func()
}

// NewObjects makes the carrier of a Store, which Replace fills.
func NewObjects(store *Store, recorder record.EventRecorder, onChange func()) *Objects {
	o := &Objects{store: store, carrier: store.carrier(ObjectsCarrier), onChange: onChange}
	o.carrier.recorder = recorder
	return o
}

// Replace takes all objects there are now. They are listed while nobody else takes
// any. Nothing is in force before the first Replace.
func (o *Objects) Replace(ctx context.Context, list func() []*unstructured.Unstructured) {
	o.store.sync(klog.FromContext(ctx), o.carrier, func() []version {
		var all []version
		for _, object := range list() {
			all = append(all, versionOf(object))
		}
		return all
	})
	o.onChange()
}

// versionOf is an object's newest version. What differs in its status only is not
// another one; the slices in the annotation of a NodeOverlay count as its spec does.
func versionOf(object *unstructured.Unstructured) version {
	return version{
		key:    key{object.GetKind(), object.GetName(), object.GetUID()},
		id:     fmt.Sprint(object.GetGeneration(), " ", object.GetAnnotations()[v1alpha1.ResourceSlicesAnnotation]),
		object: object,
		read: func() content {
			documents, err := decodeObject(object)
			// What says when is not replaced by its defaults. One that contradicts an older
			// one was not in force before either.
			return content{newest: documents, broken: err, required: err != nil && object.GetKind() == v1alpha1.KwokDRAConfigurationKind}
		},
	}
}

// lookForKinds is how often it is looked whether the custom resource definitions
// have come or gone. To watch them would take the right to read all there are.
const lookForKinds = 5 * time.Second

// listLimit bounds how long the list of a kind may hold up the others. A
// definition may go before all there are have been listed.
const listLimit = 30 * time.Second

// CustomResources watches the custom resources and hands them to Objects. While
// a kind has no definition there are none of it.
type CustomResources struct {
	client      dynamic.Interface
	discovery   discovery.ServerResourcesInterfaceWithContext
	objects     *Objects
	definitions []*definition
	running     sync.WaitGroup
	// complete tells that all objects are listed of the kinds that are watched. They are
	// taken at once: templates are not to be published before it is known when.
	complete atomic.Bool
}

// definition is what is known of the definition of a kind.
type definition struct {
	Kind
	// watched is the watch of the kind while it is defined, or nil.
	watched atomic.Pointer[watch]
	// missing is since when the list of the kind has answered that there is none.
	missing time.Time
}

// watch is the watch of a kind.
type watch struct {
	cached.Informer[*unstructured.Unstructured]
	stop func()
}

// NewCustomResources prepares to watch the kinds; Run starts it.
func NewCustomResources(client dynamic.Interface, discovery discovery.ServerResourcesInterfaceWithContext, objects *Objects, kinds ...Kind) *CustomResources {
	c := &CustomResources{client: client, discovery: discovery, objects: objects}
	for _, kind := range kinds {
		c.definitions = append(c.definitions, &definition{Kind: kind})
	}
	return c
}

// Run watches until ctx ends.
func (c *CustomResources) Run(ctx context.Context) {
	defer c.running.Wait()
	wait.NonSlidingUntilWithContext(ctx, func(ctx context.Context) {
		if err := c.look(ctx); err != nil && ctx.Err() == nil {
			klog.FromContext(ctx).V(2).Info("Cannot tell which custom resources there are", "err", err)
		}
	}, lookForKinds)
}

// look starts and ends watches as the definitions come and go.
func (c *CustomResources) look(ctx context.Context) error {
	var err error
	for _, d := range c.definitions {
		err = errors.Join(err, c.lookFor(ctx, d))
	}
	if !c.complete.Load() && (err == nil || cache.IsDone(c.objects.carrier)) {
		c.complete.Store(true)
		c.sync(ctx)
	}
	return err
}

// lookFor starts or ends the watch of a kind. The error says why it cannot be told
// what there is of it.
func (c *CustomResources) lookFor(ctx context.Context, d *definition) error {
	served, err := c.served(ctx, d.Resource)
	if err != nil {
		return err
	}
	if served {
		d.missing = time.Time{}
	}
	watched := d.watched.Load()
	switch {
	case served && watched == nil:
		return c.watch(ctx, d)
	case served:
	case !c.gone(ctx, d):
		return fmt.Errorf("find %s: the API server does not name them among its resources", d.Resource.Resource)
	case watched != nil:
		watched.stop()
		d.watched.Store(nil)
		klog.FromContext(ctx).Info("The custom resource definition is gone", "kind", d.Name)
		c.sync(ctx)
	}
	return nil
}

// gone reports whether the definition of a kind is gone: discovery does not name it,
// and its own list says so as well, twice and some time apart. An API server that
// starts answers that there is no such resource, also where there is.
func (c *CustomResources) gone(ctx context.Context, d *definition) bool {
	ctx, cancel := context.WithTimeout(ctx, listLimit)
	defer cancel()
	_, err := c.client.Resource(d.Resource).List(ctx, metav1.ListOptions{Limit: 1})
	if !apierrors.IsNotFound(err) && (d.watched.Load() != nil || !apierrors.IsForbidden(err)) {
		d.missing = time.Time{}
		return false
	}
	if d.missing.IsZero() {
		d.missing = time.Now()
	}
	return time.Since(d.missing) >= lookForKinds/2
}

// served reports whether discovery names a resource.
func (c *CustomResources) served(ctx context.Context, resource schema.GroupVersionResource) (bool, error) {
	list, err := c.discovery.ServerResourcesForGroupVersionWithContext(ctx, resource.GroupVersion().String())
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("find %s: %w", resource.Resource, err)
	}
	return slices.ContainsFunc(list.APIResources, func(r metav1.APIResource) bool { return r.Name == resource.Resource }), nil
}

// watch watches a kind, and returns when all there are have been listed.
func (c *CustomResources) watch(ctx context.Context, d *definition) error {
	ctx, stop := context.WithCancel(ctx)
	informer := cached.NewInformer[*unstructured.Unstructured](dynamicinformer.NewFilteredDynamicInformer(c.client, d.Resource, "", 0, nil, nil).Informer(), nil)
	informer.Handle(onEach[*unstructured.Unstructured](func() { c.sync(ctx) }))
	c.running.Go(func() { informer.Run(ctx) })
	listing, done := context.WithTimeout(ctx, listLimit)
	defer done()
	if !cache.WaitFor(listing, "", informer.Synced()...) {
		stop()
		return fmt.Errorf("list %s: %w", d.Resource.Resource, listing.Err())
	}
	c.complete.Store(false)
	d.watched.Store(&watch{informer, stop})
	klog.FromContext(ctx).Info("Watching custom resources", "kind", d.Name)
	return nil
}

// sync takes all there are now, unless more are about to be listed.
func (c *CustomResources) sync(ctx context.Context) {
	if c.complete.Load() {
		c.objects.Replace(ctx, c.list)
	}
}

func (c *CustomResources) list() []*unstructured.Unstructured {
	var all []*unstructured.Unstructured
	for _, d := range c.definitions {
		if watched := d.watched.Load(); watched != nil {
			all = slices.AppendSeq(all, watched.All())
		}
	}
	return all
}
