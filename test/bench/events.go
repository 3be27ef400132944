package main

import (
	"context"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
)

// waitLimit bounds each wait.
const waitLimit = 2 * time.Minute

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
	heartbeats  int
}

// watchEvents watches nodes and slices from now on.
func watchEvents(ctx context.Context, client kubernetes.Interface) (*events, error) {
	e := &events{change: make(chan struct{}), ready: map[string]time.Time{}, sliced: map[string]time.Time{}, slices: map[string]bool{}}
	nodes, err := client.CoreV1().Nodes().Watch(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, fmt.Errorf("watch nodes: %w", err)
	}
	slices, err := client.ResourceV1().ResourceSlices().Watch(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, fmt.Errorf("watch slices: %w", err)
	}
	go follow(nodes, e.sawNode)
	go follow(slices, e.sawSlice)
	return e, nil
}

func follow[T any](stream watch.Interface, saw func(watch.EventType, T)) {
	for event := range stream.ResultChan() {
		if object, ok := event.Object.(T); ok {
			saw(event.Type, object)
		}
	}
}

func (e *events) sawNode(kind watch.EventType, node *corev1.Node) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if kind == watch.Deleted {
		delete(e.ready, node.Name)
		delete(e.sliced, node.Name)
		return
	}
	e.heartbeats++
	for _, condition := range node.Status.Conditions {
		if condition.Type == corev1.NodeReady && condition.Status == corev1.ConditionTrue && e.ready[node.Name].IsZero() {
			e.ready[node.Name] = time.Now()
			e.changed()
		}
	}
}

func (e *events) sawSlice(kind watch.EventType, slice *resourcev1.ResourceSlice) {
	e.mu.Lock()
	defer e.mu.Unlock()
	defer e.changed()
	if kind == watch.Deleted {
		delete(e.slices, slice.Name)
		return
	}
	if kind == watch.Added {
		if e.last = time.Now(); len(e.slices) == 0 {
			e.first = e.last
		}
	}
	e.slices[slice.Name] = true
	if e.sliced[*slice.Spec.NodeName].IsZero() {
		e.sliced[*slice.Spec.NodeName] = time.Now()
	}
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
	return e.await(ctx, fmt.Sprintf("%d slices", count), func() bool { return len(e.slices) == count })
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

func (e *events) nodeEvents() int {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.heartbeats
}

func pause(ctx context.Context, length time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(length):
		return nil
	}
}
