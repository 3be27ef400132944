package scale

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"

	"github.com/kwok-dra/kwok-dra/pkg/api/v1alpha1"
)

// watch follows the nodes of a target, and the pools on them.
type watch struct {
	mutex sync.Mutex
	// nodes says for each node whether it is Ready.
	nodes map[string]bool
	// pools has for each node its slices by driver, pool and name.
	pools map[string]map[poolKey]map[string]part
}

type poolKey struct{ driver, pool string }

// part is what a slice says of its pool.
type part struct{ generation, slices int64 }

// startWatch watches until ctx ends. Events say what is there when this returns, which is an error if the API server does not
// say that within timeout. It calls fail, which ends ctx, if the user has no right to watch: no other try helps.
func startWatch(ctx context.Context, fail context.CancelCauseFunc, client kubernetes.Interface, target string, timeout time.Duration) (*watch, error) {
	w := &watch{nodes: map[string]bool{}, pools: map[string]map[poolKey]map[string]part{}}
	nodes := informers.NewSharedInformerFactoryWithOptions(client, 0, informers.WithTransform(keepCounted),
		informers.WithTweakListOptions(func(options *metav1.ListOptions) { options.LabelSelector = v1alpha1.ScaleLabel + "=" + target }))
	slices := informers.NewSharedInformerFactoryWithOptions(client, 0, informers.WithTransform(keepCounted),
		informers.WithTweakListOptions(func(options *metav1.ListOptions) {
			options.LabelSelector = v1alpha1.ManagedByLabel + "=" + v1alpha1.ManagedByValue
		}))
	handler := cache.ResourceEventHandlerFuncs{
		AddFunc:    w.recordObject,
		UpdateFunc: func(_, object any) { w.recordObject(object) },
		DeleteFunc: func(object any) {
			if gone, is := object.(cache.DeletedFinalStateUnknown); is {
				object = gone.Obj
			}
			w.mutex.Lock()
			defer w.mutex.Unlock()
			switch o := object.(type) {
			case *corev1.Node:
				delete(w.nodes, o.Name)
			case *resourcev1.ResourceSlice:
				if o.Spec.NodeName != nil {
					delete(w.pools[*o.Spec.NodeName][poolKey{o.Spec.Driver, o.Spec.Pool.Name}], o.Name)
				}
			}
		},
	}
	for resource, informer := range map[string]cache.SharedIndexInformer{
		"nodes": nodes.Core().V1().Nodes().Informer(), "resourceslices": slices.Resource().V1().ResourceSlices().Informer(),
	} {
		err := informer.SetWatchErrorHandlerWithContext(func(ctx context.Context, reflector *cache.Reflector, err error) {
			if apierrors.IsForbidden(err) {
				fail(fmt.Errorf("watch %s: %w: the verbs list and watch are needed; without them, --timeout 0 makes nodes and does not wait", resource, err))
				return
			}
			cache.DefaultWatchErrorHandler(ctx, reflector, err)
		})
		if err == nil {
			_, err = informer.AddEventHandler(handler)
		}
		if err != nil {
			return nil, fmt.Errorf("watch %s: %w", resource, err)
		}
	}
	nodes.StartWithContext(ctx)
	slices.StartWithContext(ctx)
	syncing, cancel := context.WithTimeoutCause(ctx, timeout, fmt.Errorf("list nodes and resourceslices: the API server has not listed them within --timeout %s", timeout))
	defer cancel()
	nodes.WaitForCacheSyncWithContext(syncing)
	slices.WaitForCacheSyncWithContext(syncing)
	return w, context.Cause(syncing)
}

// keepCounted drops what takes the memory and is not counted.
func keepCounted(object any) (any, error) {
	switch o := object.(type) {
	case *corev1.Node:
		return &corev1.Node{ObjectMeta: identifyingMeta(&o.ObjectMeta), Status: corev1.NodeStatus{Conditions: o.Status.Conditions}}, nil
	case *resourcev1.ResourceSlice:
		return &resourcev1.ResourceSlice{ObjectMeta: identifyingMeta(&o.ObjectMeta), Spec: resourcev1.ResourceSliceSpec{Driver: o.Spec.Driver, Pool: o.Spec.Pool, NodeName: o.Spec.NodeName}}, nil
	}
	return object, nil
}

func identifyingMeta(of *metav1.ObjectMeta) metav1.ObjectMeta {
	return metav1.ObjectMeta{Name: of.Name, UID: of.UID, ResourceVersion: of.ResourceVersion}
}

func (w *watch) recordObject(object any) {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	switch o := object.(type) {
	case *corev1.Node:
		w.nodes[o.Name] = slices.ContainsFunc(o.Status.Conditions, func(c corev1.NodeCondition) bool {
			return c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue
		})
	case *resourcev1.ResourceSlice:
		if o.Spec.NodeName == nil {
			return
		}
		on := w.pools[*o.Spec.NodeName]
		if on == nil {
			on = map[poolKey]map[string]part{}
			w.pools[*o.Spec.NodeName] = on
		}
		key := poolKey{o.Spec.Driver, o.Spec.Pool.Name}
		if on[key] == nil {
			on[key] = map[string]part{}
		}
		on[key][o.Name] = part{o.Spec.Pool.Generation, o.Spec.Pool.ResourceSliceCount}
	}
}

// counts is how far the fleet is.
type counts struct{ nodes, ready, pools int }

// countProgress counts the nodes, and their pools of the drivers of which all slices are there.
func (w *watch) countProgress(drivers map[string]bool) counts {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	c := counts{nodes: len(w.nodes)}
	for name, ready := range w.nodes {
		if ready {
			c.ready++
		}
		for key, parts := range w.pools[name] {
			if drivers[key.driver] && isComplete(parts) {
				c.pools++
			}
		}
	}
	return c
}

func isComplete(parts map[string]part) bool {
	var newest part
	found := int64(0)
	for _, p := range parts {
		switch {
		case p.generation > newest.generation || found == 0:
			newest, found = p, 1
		case p.generation == newest.generation:
			found++
		}
	}
	return found > 0 && found == newest.slices
}
