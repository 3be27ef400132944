package main

import (
	"context"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/informers"
	coreinformers "k8s.io/client-go/informers/core/v1"
	"k8s.io/client-go/kubernetes"
)

// podEvents is what a client sees of the Pods, and when.
type podEvents struct {
	mu     sync.Mutex
	change chan struct{}
	// bound, ready and running map Pods to the time at which they were first seen
	// bound, with PodReadyToStartContainers=True, and Running.
	bound, ready, running map[string]time.Time
}

func watchPods(ctx context.Context, client kubernetes.Interface) (*podEvents, error) {
	e := &podEvents{change: make(chan struct{}), bound: map[string]time.Time{}, ready: map[string]time.Time{}, running: map[string]time.Time{}}
	factory := informers.NewSharedInformerFactory(client, 0)
	pods := coreinformers.ToTypedPodInformer(factory.Core().V1().Pods()).TypedInformer()
	_, err := pods.AddTypedEventHandler(coreinformers.PodHandlerFuncs{
		AddFunc:    e.saw,
		UpdateFunc: func(_, pod *corev1.Pod) { e.saw(pod) },
	})
	if err != nil {
		return nil, fmt.Errorf("watch pods: %w", err)
	}
	factory.StartWithContext(ctx)
	factory.WaitForCacheSyncWithContext(ctx)
	return e, nil
}

func (e *podEvents) saw(pod *corev1.Pod) {
	e.mu.Lock()
	defer e.mu.Unlock()
	name := pod.Namespace + "/" + pod.Name
	first := func(times map[string]time.Time, holds bool) {
		if holds && times[name].IsZero() {
			times[name] = time.Now()
		}
	}
	first(e.bound, pod.Spec.NodeName != "")
	first(e.ready, isReady(pod))
	first(e.running, pod.Status.Phase == corev1.PodRunning)
	close(e.change)
	e.change = make(chan struct{})
}

func isReady(pod *corev1.Pod) bool {
	for _, condition := range pod.Status.Conditions {
		if condition.Type == corev1.PodReadyToStartContainers {
			return condition.Status == corev1.ConditionTrue
		}
	}
	return false
}

// await waits until that many Pods are in the map, and returns the time from the
// first of them to the last.
func (e *podEvents) await(ctx context.Context, times map[string]time.Time, count int) (first, last time.Time, err error) {
	ctx, cancel := context.WithTimeout(ctx, waitLimit)
	defer cancel()
	for {
		e.mu.Lock()
		have, change := len(times), e.change
		if have >= count {
			defer e.mu.Unlock()
			first, last = bounds(times)
			return first, last, nil
		}
		e.mu.Unlock()
		select {
		case <-change:
		case <-ctx.Done():
			return first, last, fmt.Errorf("wait for %d pods, there are %d: %w", count, have, ctx.Err())
		}
	}
}

func bounds(times map[string]time.Time) (first, last time.Time) {
	for _, at := range times {
		if first.IsZero() || at.Before(first) {
			first = at
		}
		if at.After(last) {
			last = at
		}
	}
	return first, last
}

// forget drops what was seen.
func (e *podEvents) forget() {
	e.mu.Lock()
	defer e.mu.Unlock()
	clear(e.bound)
	clear(e.ready)
	clear(e.running)
}
