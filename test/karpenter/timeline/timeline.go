// Package timeline tells when what happens between a Pod that waits for devices
// and the end of the node that was made for it, as a client sees it.
package timeline

import (
	"context"
	"fmt"
	"sync"
	"time"

	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// Step is something that happens to an object.
type Step string

// The steps, in the order of the closed loop.
const (
	PodCreated           Step = "Pod created"
	NodeClaimCreated     Step = "NodeClaim created"
	NodeClaimLaunched    Step = "NodeClaim launched"
	NodeCreated          Step = "Node created"
	NodeReady            Step = "Node Ready"
	PoolComplete         Step = "pool complete"
	NodeClaimRegistered  Step = "NodeClaim registered"
	NodeClaimInitialized Step = "NodeClaim initialized"
	ClaimAllocated       Step = "ResourceClaim allocated"
	PodBound             Step = "Pod bound"
	PodPrepared          Step = "Pod prepared"
	PodRunning           Step = "Pod running"
	PodGone              Step = "Pod gone"
	NodeClaimDeleted     Step = "NodeClaim deleted"
	NodeGone             Step = "Node gone"
	SlicesGone           Step = "slices gone"
)

// Mark says that a step was first seen to happen to an object.
type Mark struct {
	At   time.Time
	Step Step
	// Name is that of the object; of PoolComplete that of node and driver, see Pool.
	Name string
	// Detail is what is worth telling, such as the node of a Pod.
	Detail string
}

// Pool names the pool of a driver on a node in the marks of PoolComplete.
func Pool(node, driver string) string {
	return node + "/" + driver
}

// Timeline collects marks.
type Timeline struct {
	tell func(Mark)

	mu     sync.Mutex
	change chan struct{}
	marks  map[Step]map[string]Mark
	// slices are those of each node, by name.
	slices map[string]map[string]seenSlice
}

// Watch collects marks until ctx ends. Each is given to tell, one at a time, if
// there is such a function.
func Watch(ctx context.Context, config *rest.Config, tell func(Mark)) (*Timeline, error) {
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("make client: %w", err)
	}
	dynamicClient, err := dynamic.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("make client: %w", err)
	}
	t := &Timeline{tell: tell, change: make(chan struct{}), marks: map[Step]map[string]Mark{}, slices: map[string]map[string]seenSlice{}}
	return t, t.startWatching(ctx, client, dynamicClient)
}

// Find returns a mark, if there is one yet.
func (t *Timeline) Find(step Step, name string) (Mark, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	mark, found := t.marks[step][name]
	return mark, found
}

// All returns the marks of a step, by name.
func (t *Timeline) All(step Step) []Mark {
	t.mu.Lock()
	defer t.mu.Unlock()
	var all []Mark
	for _, mark := range t.marks[step] {
		all = append(all, mark)
	}
	return all
}

// Await waits for a mark.
func (t *Timeline) Await(ctx context.Context, step Step, name string) (Mark, error) {
	for {
		t.mu.Lock()
		mark, found := t.marks[step][name]
		change := t.change
		t.mu.Unlock()
		if found {
			return mark, nil
		}
		select {
		case <-change:
		case <-ctx.Done():
			return mark, fmt.Errorf("wait for %s %s: %w", name, step, ctx.Err())
		}
	}
}

// markOnce marks a step that happens for the first time.
func (t *Timeline) markOnce(step Step, name, detail string) {
	now := time.Now()
	t.mu.Lock()
	defer t.mu.Unlock()
	if _, found := t.marks[step][name]; found {
		return
	}
	if t.marks[step] == nil {
		t.marks[step] = map[string]Mark{}
	}
	mark := Mark{At: now, Step: step, Name: name, Detail: detail}
	t.marks[step][name] = mark
	close(t.change)
	t.change = make(chan struct{})
	if t.tell != nil {
		t.tell(mark)
	}
}
