package follow

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"sync"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	"github.com/kwok-dra/kwok-dra/internal/dractl/clusterdevices"
	"github.com/kwok-dra/kwok-dra/internal/extensions/inventory"
	"github.com/kwok-dra/kwok-dra/internal/extensions/inventory/taintrules"
	"github.com/kwok-dra/kwok-dra/internal/extensions/util/groupclient"
)

// Live keeps the objects that a command shows up to date.
type Live struct {
	// Those that are nil are not read.
	Slices, Claims, Pods, Events cache.SharedIndexInformer
	// Nodes are those that selector selects by their labels, or all.
	Nodes cache.SharedIndexInformer
	// Rules may be nil too.
	Rules *taintrules.Watcher
	// ErrOut is told when updates begin to fail and when they come again. It is nil where the view says so.
	ErrOut io.Writer
	// listClaims finds out whether the API server answers.
	listClaims func(context.Context, metav1.ListOptions) (*resourcev1.ResourceClaimList, error)
	// mayLack reports whether the answer can do without a resource that the user may not read.
	mayLack func(resource string) bool
	// unseen has why such resources cannot be read, by their names.
	unseen  sync.Map
	changes atomic.Uint64
	running sync.WaitGroup
	// failures are the resources whose last request has failed, by their names.
	failures     map[string]failure
	failuresLock sync.Mutex
	// hasReportedStale says that the user knows of them.
	hasReportedStale bool
}

// NewCluster watches what there is, and which nodes have the labels of a selector.
func NewCluster(client groupclient.Interface, selector string) *Live {
	l := newLive(client, metav1.NamespaceAll, "", selectAll, selectLabels(selector))
	l.mayLack = func(resource string) bool { return resource == "nodes" && selector == "" }
	return l
}

// NewVisible watches what there is, without resources that a function says are unseen, and with the claims and
// Pods of a namespace only, or of all.
func NewVisible(client groupclient.Interface, namespace string, isUnseen func(resource string) bool) *Live {
	l := newLive(client, namespace, "", selectAll, selectAll)
	for resource, informer := range map[string]*cache.SharedIndexInformer{
		"resourceslices": &l.Slices, "resourceclaims": &l.Claims, "pods": &l.Pods, "events": &l.Events, "nodes": &l.Nodes,
	} {
		if isUnseen(resource) {
			*informer = nil
		}
	}
	if isUnseen("devicetaintrules") {
		l.Rules = nil
	}
	return l
}

// keepReadiness saves memory.
func keepReadiness(object any) (any, error) {
	node, ok := object.(*corev1.Node)
	if !ok {
		return object, nil
	}
	kept := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: node.Name, Labels: node.Labels, ResourceVersion: node.ResourceVersion}}
	if !inventory.IsNodeReady(node) {
		kept.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionFalse}}
	}
	return kept, nil
}

// NewNode watches what is on a node.
func NewNode(client groupclient.Interface, node string) *Live {
	return newLive(client, metav1.NamespaceAll, "spec.nodeName="+node, selectFields("spec.nodeName="+node), selectFields("metadata.name="+node))
}

// NewUsage watches who has which device, with the claims of a namespace, or of all, and those of its Pods that a selector of
// labels selects. The answer can do without each resource.
func NewUsage(client groupclient.Interface, namespace, selector string) *Live {
	l := newLive(client, namespace, "", selectLabels(selector), selectAll)
	l.Nodes = nil
	l.mayLack = func(string) bool { return true }
	return l
}

// newLive watches what there is, or what selectors choose: of slices one of fields.
func newLive(client groupclient.Interface, namespace, slicesOn string, selectPods, selectNodes metav1.ListOptions) *Live {
	l := newNamespaced(client, namespace, "", selectPods, selectFields("reason="+clusterdevices.FailedPrepare))
	l.Slices = groupclient.NewInformer(client, recordRequests(l, "resourceslices", client.ResourceV1().ResourceSlices()), &resourcev1.ResourceSlice{}, selectFields(slicesOn))
	l.Nodes = groupclient.NewInformer(client, recordRequests(l, "nodes", client.CoreV1().Nodes()), &corev1.Node{}, selectNodes)
	l.Rules = taintrules.NewWatcher(client)
	l.mayLack = func(resource string) bool { return resource == "nodes" }
	for _, informer := range l.listInformers() {
		// Managed fields are a good part of an object.
		_ = informer.SetTransform(func(object any) (any, error) {
			if accessor, err := meta.Accessor(object); err == nil {
				accessor.SetManagedFields(nil)
			}
			return object, nil
		})
	}
	_ = l.Nodes.SetTransform(keepReadiness)
	return l
}

// NewClaim watches a claim, and what may have to do with it.
func NewClaim(client groupclient.Interface, namespace, name string) *Live {
	return newNamespaced(client, namespace, "metadata.name="+name, selectAll, selectAll)
}

// newNamespaced watches the claims of a namespace, or of all, that a selector of fields selects, and Pods and events.
func newNamespaced(client groupclient.Interface, namespace, claims string, selectPods, selectEvents metav1.ListOptions) *Live {
	l := &Live{
		listClaims: client.ResourceV1().ResourceClaims(namespace).List,
		mayLack:    func(string) bool { return false },
		failures:   map[string]failure{},
	}
	l.Claims = groupclient.NewInformer(client, recordRequests(l, "resourceclaims", client.ResourceV1().ResourceClaims(namespace)), &resourcev1.ResourceClaim{}, selectFields(claims))
	l.Pods = groupclient.NewInformer(client, recordRequests(l, "pods", client.CoreV1().Pods(namespace)), &corev1.Pod{}, selectPods)
	l.Events = groupclient.NewInformer(client, recordRequests(l, "events", client.CoreV1().Events(namespace)), &corev1.Event{}, selectEvents)
	return l
}

// selectAll selects all objects.
var selectAll = metav1.ListOptions{}

func selectFields(fields string) metav1.ListOptions { return metav1.ListOptions{FieldSelector: fields} }

func selectLabels(labels string) metav1.ListOptions { return metav1.ListOptions{LabelSelector: labels} }

// listInformers returns the informers by their resources.
func (l *Live) listInformers() map[string]cache.SharedIndexInformer {
	all := map[string]cache.SharedIndexInformer{"resourceslices": l.Slices, "resourceclaims": l.Claims, "pods": l.Pods, "events": l.Events, "nodes": l.Nodes}
	maps.DeleteFunc(all, func(_ string, informer cache.SharedIndexInformer) bool { return informer == nil })
	return all
}

// Run watches, and calls show again and again once all is known that there was at the start, until the user has seen enough
// or something fails. Once something has been shown, updates may fail: Stale says so.
func (l *Live) Run(ctx context.Context, show func() error) error {
	if err := l.checkServer(ctx); err != nil || ctx.Err() != nil {
		return err
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer l.running.Wait()
	defer cancel(nil)
	l.start(ctx, cancel)
	ticker := time.NewTicker(Interval)
	defer ticker.Stop()
	for {
		if l.hasSynced() {
			l.reportStale()
			if err := show(); err != nil {
				return err
			}
		} else if failed, isLasting := l.longestFailure(firstViewTimeout); isLasting {
			return fmt.Errorf("watch %s: %w", failed.resource, failed.err)
		}
		select {
		case <-ctx.Done():
			if errors.Is(context.Cause(ctx), context.Canceled) {
				return nil // the user ends it
			}
			return context.Cause(ctx)
		case <-ticker.C:
		}
	}
}

// checkServer fails if the API server does not answer, or does not serve claims. An informer tries again for ever then.
func (l *Live) checkServer(ctx context.Context) error {
	_, err := l.listClaims(ctx, metav1.ListOptions{Limit: 1})
	if apierrors.IsNotFound(err) {
		return groupclient.ErrUnserved
	}
	if err != nil && !apierrors.IsForbidden(err) && ctx.Err() == nil { // informers say what may not be read
		return fmt.Errorf("list resourceclaims: %w", err)
	}
	return nil
}

// start watches until the context is done. It calls fail when something cannot be read that the answer needs.
func (l *Live) start(ctx context.Context, fail context.CancelCauseFunc) {
	changed := func() { l.changes.Add(1) }
	for resource, informer := range l.listInformers() {
		// These fail only once an informer runs.
		_, _ = informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
			AddFunc: func(any) { changed() }, DeleteFunc: func(any) { changed() },
			UpdateFunc: func(old, now any) {
				if informer != l.Nodes || hasNodeChanged(old.(*corev1.Node), now.(*corev1.Node)) {
					changed()
				}
			},
		})
		_ = informer.SetWatchErrorHandler(func(r *cache.Reflector, err error) {
			switch {
			case apierrors.IsForbidden(err) && l.mayLack(resource):
				l.unseen.Store(resource, err.Error())
				changed()
			case apierrors.IsNotFound(err):
				fail(groupclient.ErrUnserved)
			case apierrors.IsForbidden(err), apierrors.IsUnauthorized(err):
				fail(fmt.Errorf("watch %s: %w", r.TypeDescription(), err))
			}
		})
		l.running.Go(func() { informer.RunWithContext(ctx) })
	}
	if l.Rules != nil {
		// The view says what cannot be read. A line of a log would be amid the tables.
		quiet := klog.NewContext(ctx, klog.Logger{})
		l.running.Go(func() { l.Rules.Run(quiet) })
	}
}

func (l *Live) hasSynced() bool {
	for resource, informer := range l.listInformers() {
		if !informer.HasSynced() && l.Unseen(resource) == "" {
			return false
		}
	}
	return l.Rules == nil || l.Rules.Synced()
}

// hasNodeChanged reports whether something of a node has changed that devices depend on. Kubelets write the
// rest all the time.
func hasNodeChanged(old, now *corev1.Node) bool {
	return inventory.IsNodeReady(old) != inventory.IsNodeReady(now) || !maps.Equal(old.Labels, now.Labels)
}

// Changes counts what has changed.
func (l *Live) Changes() uint64 {
	changes := l.changes.Load()
	if l.Rules != nil {
		changes += l.Rules.Changes()
	}
	return changes
}

// Objects are the current ones.
func (l *Live) Objects() clusterdevices.Objects {
	o := clusterdevices.Objects{
		Slices: Current[*resourcev1.ResourceSlice](l.Slices), Claims: Current[*resourcev1.ResourceClaim](l.Claims),
		Pods: Current[*corev1.Pod](l.Pods), Failures: Current[*corev1.Event](l.Events),
	}
	o.AddReadiness(Current[*corev1.Node](l.Nodes))
	if l.Rules != nil {
		o.Rules, o.Unseen = l.Rules.Rules()
	}
	return o
}

// Unseen says why a resource cannot be read, or is empty.
func (l *Live) Unseen(resource string) string {
	if why, isKnown := l.unseen.Load(resource); isKnown && !l.listInformers()[resource].HasSynced() {
		return why.(string)
	}
	return ""
}

// Current returns what an informer has, or nothing where there is none.
func Current[T any](informer cache.SharedIndexInformer) []T {
	if informer == nil {
		return nil
	}
	objects := informer.GetStore().List()
	all := make([]T, len(objects))
	for i := range objects {
		all[i] = objects[i].(T)
	}
	return all
}
