package fleet

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	coreinformers "k8s.io/client-go/informers/core/v1"
	resourceinformers "k8s.io/client-go/informers/resource/v1"
	"k8s.io/client-go/kubernetes"
)

// Events is what a client sees of nodes and slices, and when.
type Events struct {
	watched
	// ready and sliced map nodes to the time at which they were first seen Ready,
	// and with a slice.
	ready, sliced map[string]time.Time
	slices        map[string]bool
	// first and last are when the first and the last slice came, since there was
	// none, or since Forget.
	first, last time.Time
	// nodes counts the events of nodes, and touched has the nodes that they were of
	// since Forget.
	nodes   int
	touched map[string]bool
}

// WatchEvents watches nodes and slices until ctx ends, by informers: a plain
// watch is closed by the API server when this process does not keep up.
func WatchEvents(ctx context.Context, client kubernetes.Interface) (*Events, error) {
	e := &Events{watched: newWatched(), ready: map[string]time.Time{}, sliced: map[string]time.Time{}, slices: map[string]bool{}, touched: map[string]bool{}}
	factory := informers.NewSharedInformerFactoryWithOptions(client, 0, informers.WithTransform(dropUnusedFields))
	nodes := coreinformers.ToTypedNodeInformer(factory.Core().V1().Nodes()).TypedInformer()
	_, err := nodes.AddTypedEventHandler(coreinformers.NodeHandlerFuncs{
		AddFunc:    e.sawNode,
		UpdateFunc: func(_, node *corev1.Node) { e.sawNode(node) },
		DeleteFunc: e.missedNode,
	})
	if err != nil {
		return nil, fmt.Errorf("watch nodes: %w", err)
	}
	slices := resourceinformers.ToTypedResourceSliceInformer(factory.Resource().V1().ResourceSlices()).TypedInformer()
	_, err = slices.AddTypedEventHandler(resourceinformers.ResourceSliceHandlerFuncs{AddFunc: e.sawSlice, DeleteFunc: e.missedSlice})
	if err != nil {
		return nil, fmt.Errorf("watch slices: %w", err)
	}
	factory.StartWithContext(ctx)
	factory.WaitForCacheSyncWithContext(ctx)
	return e, nil
}

// dropUnusedFields drops what takes the memory and is not looked at.
func dropUnusedFields(object any) (any, error) {
	switch o := object.(type) {
	case *corev1.Node:
		return &corev1.Node{ObjectMeta: withNameOnly(&o.ObjectMeta), Status: corev1.NodeStatus{Conditions: o.Status.Conditions}}, nil
	case *resourcev1.ResourceSlice:
		return &resourcev1.ResourceSlice{ObjectMeta: withNameOnly(&o.ObjectMeta), Spec: resourcev1.ResourceSliceSpec{NodeName: o.Spec.NodeName}}, nil
	case *corev1.Pod:
		return &corev1.Pod{
			ObjectMeta: withNameOnly(&o.ObjectMeta),
			Spec:       corev1.PodSpec{NodeName: o.Spec.NodeName},
			Status:     corev1.PodStatus{Phase: o.Status.Phase, Conditions: o.Status.Conditions},
		}, nil
	}
	return object, nil
}

func withNameOnly(o *metav1.ObjectMeta) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: o.Namespace, Name: o.Name, UID: o.UID, ResourceVersion: o.ResourceVersion}
}

func (e *Events) sawNode(node *corev1.Node) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.nodes++
	e.touched[node.Name] = true
	for _, condition := range node.Status.Conditions {
		if condition.Type == corev1.NodeReady && condition.Status == corev1.ConditionTrue && e.ready[node.Name].IsZero() {
			e.ready[node.Name] = time.Now()
			e.wakeWaiters()
		}
	}
}

func (e *Events) missedNode(node coreinformers.DeletedNode) {
	e.mu.Lock()
	defer e.mu.Unlock()
	defer e.wakeWaiters()
	delete(e.ready, node.GetObjectName().Name)
	delete(e.sliced, node.GetObjectName().Name)
}

func (e *Events) sawSlice(slice *resourcev1.ResourceSlice) {
	e.mu.Lock()
	defer e.mu.Unlock()
	defer e.wakeWaiters()
	if e.last = time.Now(); len(e.slices) == 0 || e.first.IsZero() {
		e.first = e.last
	}
	e.slices[slice.Name] = true
	if e.sliced[*slice.Spec.NodeName].IsZero() {
		e.sliced[*slice.Spec.NodeName] = e.last
	}
}

func (e *Events) missedSlice(slice resourceinformers.DeletedResourceSlice) {
	e.mu.Lock()
	defer e.mu.Unlock()
	defer e.wakeWaiters()
	delete(e.slices, slice.GetObjectName().Name)
}

// Forget has Published and Touched count from the next event on.
func (e *Events) Forget() {
	e.mu.Lock()
	defer e.mu.Unlock()
	clear(e.touched)
	e.first, e.last = time.Time{}, time.Time{}
}

// AwaitReady waits for that many nodes that are or were Ready.
func (e *Events) AwaitReady(ctx context.Context, count int) error {
	return e.awaitCount(ctx, "ready nodes", count, func() int { return min(count, len(e.ready)) })
}

// AwaitSlices waits until there are that many slices.
func (e *Events) AwaitSlices(ctx context.Context, count int) error {
	return e.awaitCount(ctx, "slices", count, func() int { return len(e.slices) })
}

// Published waits for that many slices and returns the time from the first of
// them to the last: what it takes without how it was set off.
func (e *Events) Published(ctx context.Context, count int) (time.Duration, error) {
	err := e.AwaitSlices(ctx, count)
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.last.Sub(e.first), err
}

// Latency waits for the node's slice and returns the time from Ready to it.
func (e *Events) Latency(ctx context.Context, node string) (time.Duration, error) {
	err := e.awaitCount(ctx, "steps, Ready and a slice, of node "+node, 2, func() int {
		steps := 0
		for _, at := range []time.Time{e.ready[node], e.sliced[node]} {
			if !at.IsZero() {
				steps++
			}
		}
		return steps
	})
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.sliced[node].Sub(e.ready[node]), err
}

// Nodes counts the events of nodes.
func (e *Events) Nodes() int {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.nodes
}

// Touched counts the nodes that events were of since Forget.
func (e *Events) Touched() int {
	e.mu.Lock()
	defer e.mu.Unlock()
	return len(e.touched)
}
