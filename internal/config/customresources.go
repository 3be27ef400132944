package config

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/record"
	"k8s.io/klog/v2"

	"github.com/kwok-dra/kwok-dra/internal/devices"
	"github.com/kwok-dra/kwok-dra/internal/observe/cached"
	"github.com/kwok-dra/kwok-dra/internal/util/strict"
	"github.com/kwok-dra/kwok-dra/pkg/api/v1alpha1"
)

// ObjectsCarrier is the carrier of the custom resources.
const ObjectsCarrier = "custom resources"

// Objects hands custom resources to a Store. Each is a source of its own: if a version is
// refused, the last good version of that object stays in force, and the other objects are not
// affected.
type Objects struct {
	store   *Store
	carrier *carrier
	// onChange is called when the acceptance of an object may have changed.
	onChange func()
}

// NewObjects fills the carrier ObjectsCarrier of a Store; Replace hands the objects over.
func NewObjects(store *Store, recorder record.EventRecorder, onChange func()) *Objects {
	o := &Objects{store: store, carrier: store.carrierNamed(ObjectsCarrier), onChange: onChange}
	o.carrier.recorder = recorder
	return o
}

// Replace replaces all objects by those that exist now. It calls list under the Store's lock, so
// that of two calls the later one has the newer list. Nothing is in force before the first call.
func (o *Objects) Replace(ctx context.Context, list func() []*unstructured.Unstructured) {
	o.store.syncCarrier(klog.FromContext(ctx), o.carrier, func() []*source { return sourcesOfObjects(list()) })
	o.onChange()
}

// customResource is the source of documents that are objects of their own.
const customResource = "custom resource"

// sourcesOfObjects makes a source of each object. An edit of the status is not a new version;
// the slices in the annotation of a NodeOverlay count as its spec does.
func sourcesOfObjects(objects []*unstructured.Unstructured) []*source {
	var all []*source
	for _, object := range objects {
		all = append(all, &source{
			key:     fmt.Sprint(object.GetKind(), " ", object.GetName(), " ", object.GetUID()),
			version: fmt.Sprint(object.GetGeneration(), " ", object.GetAnnotations()[v1alpha1.ResourceSlicesAnnotation]),
			object:  object,
			decode: func(s *source) {
				s.newest, s.decodeErr = decodeObject(object)
				// Defaults must not replace selectors that cannot be read. A configuration that only
				// contradicts an older one was not in force before either.
				s.required = s.decodeErr != nil && object.GetKind() == v1alpha1.KwokDRAConfigurationKind
			},
		})
	}
	return all
}

// decodeObject decodes a custom resource of any kind that is read.
func decodeObject(object *unstructured.Unstructured) (*Documents, error) {
	carrier := &corev1.ObjectReference{APIVersion: object.GetAPIVersion(), Kind: object.GetKind(), Name: object.GetName(), UID: object.GetUID()}
	if kind, isAdapted := adaptedKinds[object.GetKind()]; isAdapted {
		origin := devices.Origin{Document: kind.Name + " " + object.GetName(), Created: object.GetCreationTimestamp().Time, Carrier: carrier}
		adapted, err := kind.Adapt(object)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", origin.Document, err)
		}
		return compileAdapted(origin, adapted, kind.PartOf)
	}
	encoded, _ := json.Marshal(object.Object) // an object of the API server is valid JSON
	document, problems := strict.Parse(encoded)
	if len(problems) > 0 {
		return nil, &Refusal{Source: customResource, Object: nameObject(object.Object), Problems: problems}
	}
	documents := &Documents{carrier: carrier}
	return documents, documents.addObject(customResource, document)
}

// discoveryInterval is how often discovery is asked which kinds are defined. Watching the
// definitions instead would take the right to read all of them.
const discoveryInterval = 5 * time.Second

// listTimeout bounds how long listing one kind delays the others. Its definition may be deleted
// before the list is complete.
const listTimeout = 30 * time.Second

// CustomResources watches the custom resources and hands them to Objects. A kind without a
// definition has no objects.
type CustomResources struct {
	client      dynamic.Interface
	discovery   discovery.ServerResourcesInterfaceWithContext
	objects     *Objects
	definitions []*definition
	running     sync.WaitGroup
	// isListed reports whether the objects of all defined kinds have been listed. They are handed
	// over at once: a template must not be published before the configuration that says when.
	isListed atomic.Bool
}

// definition is the definition of a kind, if it exists.
type definition struct {
	Kind
	// watched is the watch of the kind. It is nil while the kind is not defined.
	watched atomic.Pointer[kindWatch]
	// missingSince is when listing the kind first failed because it is not defined. It is zero
	// if the last list succeeded.
	missingSince time.Time
}

type kindWatch struct {
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

// Run watches until ctx ends. It starts and ends watches as definitions come and go.
func (c *CustomResources) Run(ctx context.Context) {
	defer c.running.Wait()
	wait.NonSlidingUntilWithContext(ctx, func(ctx context.Context) {
		var err error
		for _, d := range c.definitions {
			err = errors.Join(err, c.updateWatch(ctx, d))
		}
		if err != nil && ctx.Err() == nil {
			klog.FromContext(ctx).V(2).Info("Failed to find out which custom resources exist", "err", err)
		}
		if !c.isListed.Load() && (err == nil || cache.IsDone(c.objects.carrier)) {
			c.isListed.Store(true)
			c.replaceObjects(ctx)
		}
	}, discoveryInterval)
}

// updateWatch starts or ends the watch of a kind. It returns an error if it is not known whether
// the kind is defined, or which objects exist.
func (c *CustomResources) updateWatch(ctx context.Context, d *definition) error {
	served, err := c.discovery.ServerResourcesForGroupVersionWithContext(ctx, d.Resource.GroupVersion().String())
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("find %s: %w", d.Resource.Resource, err)
	}
	isServed := err == nil && slices.ContainsFunc(served.APIResources, func(r metav1.APIResource) bool { return r.Name == d.Resource.Resource })
	watched := d.watched.Load()
	if isServed {
		d.missingSince = time.Time{}
		if watched == nil {
			return c.startWatch(ctx, d)
		}
		return nil
	}
	// While an API server starts, it answers that a resource does not exist even if it does. So
	// listing the kind must fail twice, some time apart.
	listCtx, cancel := context.WithTimeout(ctx, listTimeout)
	defer cancel()
	_, err = c.client.Resource(d.Resource).List(listCtx, metav1.ListOptions{Limit: 1})
	switch isMissing := apierrors.IsNotFound(err) || watched == nil && apierrors.IsForbidden(err); {
	case !isMissing:
		d.missingSince = time.Time{}
	case d.missingSince.IsZero():
		d.missingSince = time.Now()
	}
	if d.missingSince.IsZero() || time.Since(d.missingSince) < discoveryInterval/2 {
		return fmt.Errorf("find %s: the API server does not name them among its resources", d.Resource.Resource)
	}
	if watched != nil {
		watched.stop()
		d.watched.Store(nil)
		klog.FromContext(ctx).Info("Custom resource definition was deleted", "kind", d.Name)
		c.replaceObjects(ctx)
	}
	return nil
}

// startWatch watches a kind, and returns when its objects have been listed.
func (c *CustomResources) startWatch(ctx context.Context, d *definition) error {
	ctx, stop := context.WithCancel(ctx)
	informer := cached.NewInformer[*unstructured.Unstructured](dynamicinformer.NewFilteredDynamicInformer(c.client, d.Resource, "", 0, nil, nil).Informer(), nil)
	informer.Handle(cache.TypedResourceEventHandlerFuncs[*unstructured.Unstructured]{
		AddFunc:    func(*unstructured.Unstructured) { c.replaceObjects(ctx) },
		UpdateFunc: func(_, _ *unstructured.Unstructured) { c.replaceObjects(ctx) },
		DeleteFunc: func(cache.DeletedObject[*unstructured.Unstructured]) { c.replaceObjects(ctx) },
	})
	c.running.Go(func() { informer.Run(ctx) })
	listCtx, cancel := context.WithTimeout(ctx, listTimeout)
	defer cancel()
	if !cache.WaitFor(listCtx, "", informer.Synced()...) {
		stop()
		return fmt.Errorf("list %s: %w", d.Resource.Resource, listCtx.Err())
	}
	c.isListed.Store(false)
	d.watched.Store(&kindWatch{informer, stop})
	klog.FromContext(ctx).Info("Watching custom resources", "kind", d.Name)
	return nil
}

// replaceObjects hands over all objects that exist now, unless another kind is still to be listed.
func (c *CustomResources) replaceObjects(ctx context.Context) {
	if !c.isListed.Load() {
		return
	}
	c.objects.Replace(ctx, func() (all []*unstructured.Unstructured) {
		for _, d := range c.definitions {
			if watched := d.watched.Load(); watched != nil {
				all = slices.AppendSeq(all, watched.All())
			}
		}
		return all
	})
}
