package faults

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	resourceinformers "k8s.io/client-go/informers/resource/v1"
	"k8s.io/client-go/tools/cache"
	"sigs.k8s.io/yaml"
)

// retirements are the pools that have gone, as the API server says it.
type retirements struct {
	mu sync.Mutex
	// published are the slices of each pool, by name.
	published map[poolKey]map[string]bool
	// gone has when a pool went first.
	gone map[poolKey]time.Time
}

// watchRetirements notes what goes until it is told to end.
func (c clients) watchRetirements(ctx context.Context) (*retirements, func(), error) {
	r := &retirements{published: map[poolKey]map[string]bool{}, gone: map[poolKey]time.Time{}}
	informer := resourceinformers.NewResourceSliceInformer(c.client, 0, nil)
	_, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: func(object any) { r.came(object.(*resourcev1.ResourceSlice)) },
		DeleteFunc: func(object any) {
			if unseen, ok := object.(cache.DeletedFinalStateUnknown); ok {
				object = unseen.Obj
			}
			r.went(object.(*resourcev1.ResourceSlice))
		},
	})
	if err != nil {
		return nil, nil, fmt.Errorf("watch slices: %w", err)
	}
	ctx, cancel := context.WithCancel(ctx)
	var running sync.WaitGroup
	running.Go(func() { informer.RunWithContext(ctx) })
	return r, func() { cancel(); running.Wait() }, nil
}

func (r *retirements) came(slice *resourcev1.ResourceSlice) {
	r.mu.Lock()
	defer r.mu.Unlock()
	key := poolOf(slice)
	if r.published[key] == nil {
		r.published[key] = map[string]bool{}
	}
	r.published[key][slice.Name] = true
}

func (r *retirements) went(slice *resourcev1.ResourceSlice) {
	r.mu.Lock()
	defer r.mu.Unlock()
	key := poolOf(slice)
	delete(r.published[key], slice.Name)
	if len(r.published[key]) == 0 && r.gone[key].IsZero() {
		r.gone[key] = time.Now()
	}
}

// wrong says which pools have gone although the templates, and their nodes, had them
// exist all the time.
func (r *retirements) wrong(l *workload) []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	var wrong []string
	for key, at := range r.gone {
		if l.steady(key, at) {
			wrong = append(wrong, fmt.Sprintf("retired: %+v has gone, and nothing was a reason for it", key))
		}
	}
	slices.Sort(wrong)
	return wrong
}

// nodePast is all that a node may have been, whatever came of the operations.
type nodePast struct {
	kinds []string
	// unsteady tells that its pools had a reason to go, or were spoiled by hand.
	unsteady bool
}

func (l *nodeLoad) past(i int) *nodePast {
	name := l.nodeName(i)
	if l.pasts[name] == nil {
		l.pasts[name] = &nodePast{}
	}
	return l.pasts[name]
}

// steady reports whether a pool was to exist at a time, and ever since it was first
// published, whichever templates a sidecar saw with whichever version of the node.
func (l *workload) steady(key poolKey, at time.Time) bool {
	past := l.pasts[key.node]
	if past == nil || past.unsteady {
		return false
	}
	if key.driver == diskDriver {
		return l.ended.IsZero() || at.Before(l.ended)
	}
	for name := range l.all {
		if !slices.ContainsFunc(l.history, func(all templates) bool {
			t, ok := all[name]
			return !ok || t.driver != key.driver || t.shared || t.tier != "" ||
				slices.ContainsFunc(past.kinds, func(kind string) bool { return !slices.Contains(t.kinds, kind) })
		}) {
			return true
		}
	}
	return false
}

// diskDriver is that of a template that is a custom resource, and that nobody changes.
const diskDriver = "disk.example.com"

var disks = poolTemplate{name: "disks", driver: diskDriver, kinds: []string{"a", "b", "c", "d"}, device: "disk", count: 2, revision: 1}

// addDisks has all nodes have disks while there are faults.
func (l *configLoad) addDisks(ctx context.Context) error {
	object := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(strings.Trim(disks.yaml(), "-\n")), &object.Object); err != nil {
		return fmt.Errorf("read template: %w", err)
	}
	_, err := l.world.objects(kindTemplate).Create(ctx, object, metav1.CreateOptions{})
	return err
}

// removeDisks has them go: what is to be at rest does not depend on them.
func (l *configLoad) removeDisks() operation {
	return operation{"remove the disks", slicesOfFleet, 0, func(ctx context.Context) error {
		if l.ended.IsZero() {
			l.ended = time.Now()
		}
		return l.world.objects(kindTemplate).Delete(ctx, disks.name, metav1.DeleteOptions{})
	}}
}
