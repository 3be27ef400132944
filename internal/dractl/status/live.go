package status

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	coreinformers "k8s.io/client-go/informers/core/v1"
	resourceinformers "k8s.io/client-go/informers/resource/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	"github.com/kwok-dra/kwok-dra/internal/extensions/inventory"
	"github.com/kwok-dra/kwok-dra/internal/extensions/inventory/taintrules"
)

// live keeps what a command shows up to date.
type live struct {
	// slices is nil if none are shown.
	slices, claims, pods, events cache.SharedIndexInformer
	// nodes are those that selector selects by their labels, or all. It is nil where devices have
	// no states.
	nodes    cache.SharedIndexInformer
	selector string
	// unseenNodes says why nodes cannot be read, or is nil.
	unseenNodes atomic.Pointer[string]
	// rules is nil where devices have no states.
	rules   *taintrules.Watcher
	changes atomic.Uint64
	running sync.WaitGroup
}

// liveCluster watches what there is, and which nodes have the labels of a selector.
func liveCluster(client kubernetes.Interface, selector string) *live {
	l := liveWorld(client, "", func(options *metav1.ListOptions) { options.LabelSelector = selector })
	l.selector = selector
	return l
}

// keepNameAndReadiness saves memory.
func keepNameAndReadiness(object any) (any, error) {
	node, ok := object.(*corev1.Node)
	if !ok {
		return object, nil
	}
	kept := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: node.Name, ResourceVersion: node.ResourceVersion}}
	if !inventory.IsNodeReady(node) {
		kept.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionFalse}}
	}
	return kept, nil
}

// liveNode watches what is on a node.
func liveNode(client kubernetes.Interface, node string) *live {
	return liveWorld(client, "spec.nodeName="+node, selectFields("metadata.name="+node))
}

// liveWorld watches what there is, or what a field selector of Pods and slices chooses.
func liveWorld(client kubernetes.Interface, on string, selectNodes func(*metav1.ListOptions)) *live {
	all := cache.Indexers{}
	l := &live{
		slices: resourceinformers.NewFilteredResourceSliceInformer(client, 0, all, selectFields(on)),
		claims: resourceinformers.NewResourceClaimInformer(client, "", 0, all),
		pods:   coreinformers.NewFilteredPodInformer(client, "", 0, all, selectFields(on)),
		events: coreinformers.NewFilteredEventInformer(client, "", 0, all, selectFields("reason="+failedPrepare)),
		nodes:  coreinformers.NewFilteredNodeInformer(client, 0, all, selectNodes),
		rules:  taintrules.NewWatcher(client),
	}
	for _, informer := range l.listInformers() {
		// Managed fields are a good part of an object.
		_ = informer.SetTransform(func(object any) (any, error) {
			if accessor, err := meta.Accessor(object); err == nil {
				accessor.SetManagedFields(nil)
			}
			return object, nil
		})
	}
	_ = l.nodes.SetTransform(keepNameAndReadiness)
	return l
}

// liveClaim watches a claim, and what may have to do with it.
func liveClaim(client kubernetes.Interface, namespace, name string) *live {
	all := cache.Indexers{}
	return &live{
		claims: resourceinformers.NewFilteredResourceClaimInformer(client, namespace, 0, all, selectFields("metadata.name="+name)),
		pods:   coreinformers.NewPodInformer(client, namespace, 0, all),
		events: coreinformers.NewEventInformer(client, namespace, 0, all),
	}
}

func selectFields(fields string) func(*metav1.ListOptions) {
	return func(options *metav1.ListOptions) { options.FieldSelector = fields }
}

func (l *live) listInformers() []cache.SharedIndexInformer {
	all := []cache.SharedIndexInformer{l.claims, l.pods, l.events}
	if l.slices != nil {
		all = append(all, l.slices)
	}
	if l.nodes != nil {
		all = append(all, l.nodes)
	}
	return all
}

// startInformers watches until the context is done. It calls fail when something cannot be read.
func (l *live) startInformers(ctx context.Context, fail context.CancelCauseFunc) {
	changed := func() { l.changes.Add(1) }
	for _, informer := range l.listInformers() {
		// These fail only once an informer runs.
		_, _ = informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
			AddFunc: func(any) { changed() }, DeleteFunc: func(any) { changed() },
			UpdateFunc: func(old, now any) {
				if informer != l.nodes || inventory.IsNodeReady(old.(*corev1.Node)) != inventory.IsNodeReady(now.(*corev1.Node)) {
					changed()
				}
			},
		})
		_ = informer.SetWatchErrorHandler(func(r *cache.Reflector, err error) {
			switch {
			case informer == l.nodes && l.selector == "" && apierrors.IsForbidden(err):
				l.unseenNodes.Store(new(describeUnseenNodes(err)))
				changed()
			case apierrors.IsForbidden(err), apierrors.IsUnauthorized(err), apierrors.IsNotFound(err):
				fail(fmt.Errorf("watch %s: %w", r.TypeDescription(), err))
			}
		})
		l.running.Go(func() { informer.RunWithContext(ctx) })
	}
	if l.rules != nil {
		// The view says what cannot be read. A line of a log would be amid the tables.
		quiet := klog.NewContext(ctx, klog.Logger{})
		l.running.Go(func() { l.rules.Run(quiet) })
	}
}

func (l *live) hasSynced() bool {
	for _, informer := range l.listInformers() {
		isUnseen := informer == l.nodes && l.unseenNodes.Load() != nil
		if !informer.HasSynced() && !isUnseen {
			return false
		}
	}
	return l.rules == nil || l.rules.Synced()
}

func (l *live) currentWorld() *world {
	w := &world{
		slices: listStore[*resourcev1.ResourceSlice](l.slices), claims: listStore[*resourcev1.ResourceClaim](l.claims),
		pods: listStore[*corev1.Pod](l.pods), failures: listStore[*corev1.Event](l.events),
	}
	w.addNodes(listStore[*corev1.Node](l.nodes), l.selector != "")
	w.rules, w.unseen = l.rules.Rules()
	if unseen := l.unseenNodes.Load(); unseen != nil && !l.nodes.HasSynced() {
		w.addUnseen(*unseen)
	}
	return w
}

func listStore[T any](informer cache.SharedIndexInformer) []T {
	objects := informer.GetStore().List()
	all := make([]T, len(objects))
	for i := range objects {
		all[i] = objects[i].(T)
	}
	return all
}
