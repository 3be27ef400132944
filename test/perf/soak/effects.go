package main

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/client-go/informers"
	coreinformers "k8s.io/client-go/informers/core/v1"
	resourceinformers "k8s.io/client-go/informers/resource/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/kwok-dra/kwok-dra/test/internal/fleet"
)

// The kinds of changes of which the effect is waited for.
const (
	published = "publish" // from a node's turning Ready to its slice
	prepared  = "prepare" // from a Pod's binding to PodReadyToStartContainers
	tainted   = "taint"   // from a node's annotation to its slice
	templated = "template"
)

var kinds = []string{published, prepared, tainted, templated}

// change is something that is to have an effect.
type change struct{ kind, of string }

// effects are those of the changes, as a client sees them.
type effects struct {
	mu   sync.Mutex
	due  map[change]time.Time
	lags map[string][]time.Duration // by kind, since they were last taken
	// rounds maps nodes to the round of the template that their slices are of.
	rounds map[string]string
}

func newEffects() *effects {
	return &effects{due: map[change]time.Time{}, lags: map[string][]time.Duration{}, rounds: map[string]string{}}
}

// watchEffects watches until ctx ends.
func watchEffects(ctx context.Context, client kubernetes.Interface) (*effects, error) {
	e := newEffects()
	factory := informers.NewSharedInformerFactory(client, 0)
	_, err := coreinformers.ToTypedNodeInformer(factory.Core().V1().Nodes()).TypedInformer().AddTypedEventHandler(coreinformers.NodeHandlerFuncs{
		UpdateFunc: func(old, node *corev1.Node) {
			if !isReady(old) && isReady(node) {
				e.expectSlice(node.Name)
			}
		},
		DeleteFunc: func(node coreinformers.DeletedNode) { e.forgetNode(node.GetObjectName().Name) },
	})
	if err != nil {
		return nil, fmt.Errorf("watch nodes: %w", err)
	}
	_, err = resourceinformers.ToTypedResourceSliceInformer(factory.Resource().V1().ResourceSlices()).TypedInformer().AddTypedEventHandler(resourceinformers.ResourceSliceHandlerFuncs{
		AddFunc:    e.sawSlice,
		UpdateFunc: func(_, slice *resourcev1.ResourceSlice) { e.sawSlice(slice) },
		DeleteFunc: e.missedSlice,
	})
	if err != nil {
		return nil, fmt.Errorf("watch slices: %w", err)
	}
	_, err = coreinformers.ToTypedPodInformer(factory.Core().V1().Pods()).TypedInformer().AddTypedEventHandler(coreinformers.PodHandlerFuncs{
		UpdateFunc: func(_, pod *corev1.Pod) {
			if fleet.IsPrepared(pod) {
				e.noteEffect(change{prepared, pod.Name})
			}
		},
	})
	if err != nil {
		return nil, fmt.Errorf("watch pods: %w", err)
	}
	factory.StartWithContext(ctx)
	factory.WaitForCacheSyncWithContext(ctx)
	return e, nil
}

func isReady(node *corev1.Node) bool {
	return slices.ContainsFunc(node.Status.Conditions, func(c corev1.NodeCondition) bool {
		return c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue
	})
}

// expectEffect notes a change that is made now.
func (e *effects) expectEffect(c change) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.due[c] = time.Now()
}

// expectSlice expects the slice of a node, unless it was seen before the node was.
func (e *effects) expectSlice(node string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.due[change{published, node}] = time.Now()
	if _, seen := e.rounds[node]; seen {
		e.happenedLocked(change{published, node})
	}
}

// cancelEffect drops a change whose effect does not count any more, and reports whether
// it was still waited for.
func (e *effects) cancelEffect(c change) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	_, due := e.due[c]
	delete(e.due, c)
	return due
}

func (e *effects) noteEffect(c change) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.happenedLocked(c)
}

func (e *effects) happenedLocked(c change) {
	if since, due := e.due[c]; due {
		e.lags[c.kind] = append(e.lags[c.kind], time.Since(since))
		delete(e.due, c)
	}
}

func (e *effects) forgetNode(name string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for c := range e.due {
		if c.of == name || strings.HasPrefix(c.of, name+"/") {
			delete(e.due, c)
		}
	}
}

func (e *effects) sawSlice(slice *resourcev1.ResourceSlice) {
	if slice.Spec.Driver != fleet.Driver || slice.Spec.NodeName == nil || len(slice.Spec.Devices) == 0 {
		return
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	node, device := *slice.Spec.NodeName, &slice.Spec.Devices[0]
	e.happenedLocked(change{published, node})
	e.happenedLocked(change{tainted, taintOf(node, len(device.Taints) > 0)})
	if round := device.Attributes["round"].StringValue; round != nil {
		e.rounds[node] = *round
	}
	e.checkRound()
}

func (e *effects) missedSlice(slice resourceinformers.DeletedResourceSlice) {
	gone := slice.OptionalObj
	if gone == nil || gone.Spec.Driver != fleet.Driver || gone.Spec.NodeName == nil {
		return
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	delete(e.rounds, *gone.Spec.NodeName)
	e.checkRound()
}

// taintOf is what a change to a node's taints is of.
func taintOf(node string, on bool) string {
	return fmt.Sprintf("%s/%t", node, on)
}

// checkRound looks whether all nodes have a round of the template.
func (e *effects) checkRound() {
	for c := range e.due {
		if c.kind == templated && !slices.ContainsFunc(slices.Collect(maps.Values(e.rounds)), func(round string) bool { return round != c.of }) {
			e.happenedLocked(c)
		}
	}
}

// takeLags returns the lags since it was last called, and how many changes have not
// had their effect for longer than that.
func (e *effects) takeLags(limit time.Duration) (lags map[string][]time.Duration, stuck int) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, since := range e.due {
		if time.Since(since) > limit {
			stuck++
		}
	}
	lags, e.lags = e.lags, map[string][]time.Duration{}
	return lags, stuck
}
