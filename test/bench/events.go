package main

import (
	"context"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/client-go/informers"
	coreinformers "k8s.io/client-go/informers/core/v1"
	resourceinformers "k8s.io/client-go/informers/resource/v1"
	"k8s.io/client-go/kubernetes"
)

// waitLimit bounds each wait.
const waitLimit = time.Minute

// events is what a client sees of the cluster, and when.
type events struct {
	mu     sync.Mutex
	change chan struct{}
	// ready and sliced map nodes to the time at which they were first seen Ready,
	// and with a slice.
	ready, sliced map[string]time.Time
	slices        map[string]bool
	// first and last are when the first and the last slice came, since there was
	// none.
	first, last time.Time
	// nodes counts the events of nodes.
	nodes int
}

// watchEvents watches nodes and slices until ctx ends, by informers: a plain
// watch is closed by the API server when this process does not keep up.
func watchEvents(ctx context.Context, client kubernetes.Interface) (*events, error) {
	e := &events{change: make(chan struct{}), ready: map[string]time.Time{}, sliced: map[string]time.Time{}, slices: map[string]bool{}}
	factory := informers.NewSharedInformerFactory(client, 0)
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

func (e *events) sawNode(node *corev1.Node) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.nodes++
	for _, condition := range node.Status.Conditions {
		if condition.Type == corev1.NodeReady && condition.Status == corev1.ConditionTrue && e.ready[node.Name].IsZero() {
			e.ready[node.Name] = time.Now()
			e.changed()
		}
	}
}

func (e *events) missedNode(node coreinformers.DeletedNode) {
	e.mu.Lock()
	defer e.mu.Unlock()
	delete(e.ready, node.GetObjectName().Name)
	delete(e.sliced, node.GetObjectName().Name)
}

func (e *events) sawSlice(slice *resourcev1.ResourceSlice) {
	e.mu.Lock()
	defer e.mu.Unlock()
	defer e.changed()
	if e.last = time.Now(); len(e.slices) == 0 {
		e.first = e.last
	}
	e.slices[slice.Name] = true
	if e.sliced[*slice.Spec.NodeName].IsZero() {
		e.sliced[*slice.Spec.NodeName] = e.last
	}
}

func (e *events) missedSlice(slice resourceinformers.DeletedResourceSlice) {
	e.mu.Lock()
	defer e.mu.Unlock()
	defer e.changed()
	delete(e.slices, slice.GetObjectName().Name)
}

// changed wakes those who wait. The lock must be held.
func (e *events) changed() {
	close(e.change)
	e.change = make(chan struct{})
}

// await waits until done, which is called with the lock held.
func (e *events) await(ctx context.Context, what string, done func() bool) error {
	ctx, cancel := context.WithTimeout(ctx, waitLimit)
	defer cancel()
	for {
		e.mu.Lock()
		finished, change := done(), e.change
		e.mu.Unlock()
		if finished {
			return nil
		}
		select {
		case <-change:
		case <-ctx.Done():
			return fmt.Errorf("wait for %s: %w", what, ctx.Err())
		}
	}
}

func (e *events) awaitReady(ctx context.Context, nodes int) error {
	return e.await(ctx, fmt.Sprintf("%d ready nodes", nodes), func() bool { return len(e.ready) >= nodes })
}

func (e *events) awaitSlices(ctx context.Context, count int) error {
	err := e.await(ctx, fmt.Sprintf("%d slices", count), func() bool { return len(e.slices) == count })
	if err != nil {
		return fmt.Errorf("%w, there are %d", err, e.sliceCount())
	}
	return nil
}

// published waits for that many slices and returns the time from the first of
// them to the last: what it takes without how it was set off.
func (e *events) published(ctx context.Context, count int) (time.Duration, error) {
	err := e.awaitSlices(ctx, count)
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.last.Sub(e.first), err
}

// latency waits for the node's slice and returns the time from Ready to it.
func (e *events) latency(ctx context.Context, node string) (time.Duration, error) {
	err := e.await(ctx, "the slice of node "+node, func() bool { return !e.ready[node].IsZero() && !e.sliced[node].IsZero() })
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.sliced[node].Sub(e.ready[node]), err
}

func (e *events) sliceCount() int {
	e.mu.Lock()
	defer e.mu.Unlock()
	return len(e.slices)
}

func (e *events) nodeEvents() int {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.nodes
}

func pause(ctx context.Context, length time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(length):
		return nil
	}
}
