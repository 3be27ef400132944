package fleet

import (
	"context"
	"fmt"
	"maps"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/informers"
	coreinformers "k8s.io/client-go/informers/core/v1"
	"k8s.io/client-go/kubernetes"
)

// Step is how far a Pod has come.
type Step int

// The steps: Prepared is PodReadyToStartContainers=True.
const (
	Bound Step = iota
	Prepared
	Running
)

var stepNames = [...]string{"bound Pods", "prepared Pods", "running Pods"}

// PodEvents is what a client sees of the Pods, and when.
type PodEvents struct {
	watched
	// seen has for each step the time at which Pods were first seen to have come so
	// far.
	seen [len(stepNames)]map[string]time.Time
}

// WatchPods watches the Pods until ctx ends.
func WatchPods(ctx context.Context, client kubernetes.Interface) (*PodEvents, error) {
	e := &PodEvents{watched: newWatched()}
	for step := range e.seen {
		e.seen[step] = map[string]time.Time{}
	}
	factory := informers.NewSharedInformerFactoryWithOptions(client, 0, informers.WithTransform(dropUnusedFields))
	pods := coreinformers.ToTypedPodInformer(factory.Core().V1().Pods()).TypedInformer()
	_, err := pods.AddTypedEventHandler(coreinformers.PodHandlerFuncs{
		AddFunc:    e.notePod,
		UpdateFunc: func(_, pod *corev1.Pod) { e.notePod(pod) },
	})
	if err != nil {
		return nil, fmt.Errorf("watch pods: %w", err)
	}
	factory.StartWithContext(ctx)
	factory.WaitForCacheSyncWithContext(ctx)
	return e, nil
}

func (e *PodEvents) notePod(pod *corev1.Pod) {
	e.mu.Lock()
	defer e.mu.Unlock()
	name := pod.Namespace + "/" + pod.Name
	first := func(step Step, holds bool) {
		if holds && e.seen[step][name].IsZero() {
			e.seen[step][name] = time.Now()
		}
	}
	first(Bound, pod.Spec.NodeName != "")
	first(Prepared, IsPrepared(pod))
	first(Running, pod.Status.Phase == corev1.PodRunning)
	e.wakeWaiters()
}

// IsPrepared reports whether all claims of a Pod are prepared.
func IsPrepared(pod *corev1.Pod) bool {
	for _, condition := range pod.Status.Conditions {
		if condition.Type == corev1.PodReadyToStartContainers {
			return condition.Status == corev1.ConditionTrue
		}
	}
	return false
}

// Await waits until that many Pods have come so far, and returns when the first
// and the last of them did.
func (e *PodEvents) Await(ctx context.Context, step Step, count int) (first, last time.Time, err error) {
	err = e.awaitCount(ctx, stepNames[step], count, func() int { return min(count, len(e.seen[step])) })
	e.mu.Lock()
	defer e.mu.Unlock()
	first, last = firstAndLast(e.seen[step])
	return first, last, err
}

func firstAndLast(times map[string]time.Time) (first, last time.Time) {
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

// Times returns when each Pod, by its namespace and name, was first seen to have come so far.
func (e *PodEvents) Times(step Step) map[string]time.Time {
	e.mu.Lock()
	defer e.mu.Unlock()
	return maps.Clone(e.seen[step])
}

// Forget drops what was seen.
func (e *PodEvents) Forget() {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, seen := range e.seen {
		clear(seen)
	}
}
