package checkscheduler

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"

	"github.com/kwok-dra/kwok-dra/pkg/drajudge"
)

// api reads the objects of one kind.
type api[L runtime.Object] interface {
	List(ctx context.Context, options metav1.ListOptions) (L, error)
	Watch(ctx context.Context, options metav1.ListOptions) (watch.Interface, error)
}

// source reads the objects of one kind that belong to a story.
type source struct {
	kind  string
	list  func(ctx context.Context) (runtime.Object, error)
	watch func(ctx context.Context, version string) (watch.Interface, error)
}

// newSource is of the objects that listed selects. It watches those that watched selects, which may be more.
func newSource[L runtime.Object](kind string, listed, watched api[L], options metav1.ListOptions) source {
	return source{
		kind: kind,
		list: func(ctx context.Context) (runtime.Object, error) { return listed.List(ctx, options) },
		watch: func(ctx context.Context, version string) (watch.Interface, error) {
			options := options
			options.ResourceVersion = version
			return watched.Watch(ctx, options)
		},
	}
}

// sourcesOf are those of a story. Pods are watched in all namespaces: those of a DaemonSet take room on the nodes of
// the story.
func sourcesOf(ctx context.Context, client kubernetes.Interface, namespace, selector string) ([]source, error) {
	labelled := metav1.ListOptions{LabelSelector: selector}
	sources := []source{
		newSource("Namespace", client.CoreV1().Namespaces(), client.CoreV1().Namespaces(), labelled),
		newSource("Node", client.CoreV1().Nodes(), client.CoreV1().Nodes(), labelled),
		newSource("Pod", client.CoreV1().Pods(namespace), client.CoreV1().Pods(metav1.NamespaceAll), metav1.ListOptions{}),
		newSource("ResourceQuota", client.CoreV1().ResourceQuotas(namespace), client.CoreV1().ResourceQuotas(namespace), metav1.ListOptions{}),
		newSource("ResourceClaim", client.ResourceV1().ResourceClaims(namespace), client.ResourceV1().ResourceClaims(namespace), metav1.ListOptions{}),
		newSource("ResourceSlice", client.ResourceV1().ResourceSlices(), client.ResourceV1().ResourceSlices(), labelled),
		newSource("DeviceClass", client.ResourceV1().DeviceClasses(), client.ResourceV1().DeviceClasses(), labelled),
	}
	// The newest version of rules that the API server has. Their fields are the same.
	for _, rules := range []source{
		newSource("DeviceTaintRule", client.ResourceV1().DeviceTaintRules(), client.ResourceV1().DeviceTaintRules(), labelled),
		newSource("DeviceTaintRule", client.ResourceV1beta2().DeviceTaintRules(), client.ResourceV1beta2().DeviceTaintRules(), labelled),
		newSource("DeviceTaintRule", client.ResourceV1alpha3().DeviceTaintRules(), client.ResourceV1alpha3().DeviceTaintRules(), labelled),
	} {
		_, err := rules.list(ctx)
		if err == nil {
			return append(sources, rules), nil
		}
		if !apierrors.IsNotFound(err) {
			return nil, fmt.Errorf("list DeviceTaintRules: %w", err)
		}
	}
	return sources, nil
}

// recorder records what happens to the objects of a story.
type recorder struct {
	sources   []source
	namespace string
	nodes     map[string]bool
	running   sync.WaitGroup
	stop      context.CancelFunc

	mu sync.Mutex
	// events are those that have not been taken yet, and count is of all.
	events drajudge.History
	count  int
	// newest is when the last event came.
	newest time.Time
	// lead is how much later events are said to be than they are, see skipTime.
	lead time.Duration
	// versions are those of the objects that exist.
	versions map[types.UID]string
	err      error
}

// startRecorder starts to watch, from one resource version. End it with stopWatching.
func startRecorder(ctx context.Context, sources []source, version, namespace string, nodes map[string]bool) (*recorder, error) {
	r := &recorder{sources: sources, namespace: namespace, nodes: nodes, versions: map[types.UID]string{}, newest: time.Now()}
	ctx, r.stop = context.WithCancel(ctx)
	for _, s := range sources {
		watcher, err := s.watch(ctx, version)
		if err != nil {
			r.stopWatching()
			return nil, fmt.Errorf("watch %s objects: %w", s.kind, err)
		}
		r.running.Go(func() { r.follow(ctx, s, watcher, version) })
	}
	return r, nil
}

func (r *recorder) stopWatching() {
	r.stop()
	r.running.Wait()
}

// follow records the events of a kind. API servers end watches now and then; the next one goes on where that has ended.
func (r *recorder) follow(ctx context.Context, s source, watcher watch.Interface, version string) {
	for {
		var err error
		if version, err = r.recordEvents(ctx, watcher, version); err == nil && ctx.Err() == nil {
			watcher, err = s.watch(ctx, version)
		}
		if ctx.Err() != nil {
			return
		}
		if err != nil {
			r.mu.Lock()
			r.err = errors.Join(r.err, fmt.Errorf("watch %s objects: %w", s.kind, err))
			r.mu.Unlock()
			return
		}
	}
}

// recordEvents records events until the watch or ctx ends, and returns the last version that it has seen.
func (r *recorder) recordEvents(ctx context.Context, watcher watch.Interface, version string) (string, error) {
	defer watcher.Stop()
	for {
		select {
		case <-ctx.Done():
			return version, nil
		case event, isOpen := <-watcher.ResultChan():
			if !isOpen {
				return version, nil
			}
			if event.Type == watch.Error {
				return version, apierrors.FromObject(event.Object)
			}
			accessor, err := meta.Accessor(event.Object)
			if err != nil {
				return version, err
			}
			version = accessor.GetResourceVersion()
			if err := r.recordEvent(event, accessor); err != nil {
				return version, err
			}
		}
	}
}

func (r *recorder) recordEvent(event watch.Event, accessor metav1.Object) error {
	pod, isPod := event.Object.(*corev1.Pod)
	isOfOthers := isPod && pod.Namespace != r.namespace
	if event.Type == watch.Bookmark || isOfOthers && !r.nodes[pod.Spec.NodeName] {
		return nil
	}
	object, err := convertRule(event.Object)
	if err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	now := time.Now()
	r.events = append(r.events, drajudge.Event{Type: event.Type, Object: object, Time: now.Add(r.lead)})
	r.newest = now
	r.count++
	switch {
	case isOfOthers:
	case event.Type == watch.Deleted:
		delete(r.versions, accessor.GetUID())
	default:
		r.versions[accessor.GetUID()] = accessor.GetResourceVersion()
	}
	return nil
}

// convertRule makes a DeviceTaintRule of v1 of one of another version, and returns other objects as they are.
func convertRule(object runtime.Object) (runtime.Object, error) {
	switch object.(type) {
	case *corev1.Namespace, *corev1.Node, *corev1.Pod, *corev1.ResourceQuota, *resourcev1.ResourceClaim, *resourcev1.ResourceSlice, *resourcev1.DeviceClass, *resourcev1.DeviceTaintRule:
		return object, nil
	}
	rule := &resourcev1.DeviceTaintRule{}
	text, err := json.Marshal(object)
	if err == nil {
		err = json.Unmarshal(text, rule)
	}
	if err != nil {
		return nil, fmt.Errorf("convert a DeviceTaintRule to v1: %w", err)
	}
	return rule, nil
}

// state says how many events there are, and how long ago the last one came.
func (r *recorder) state() (count int, quiet time.Duration, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.count, time.Since(r.newest), r.err
}

// takeEvents returns the events since the last time, unless there are more than count in all.
func (r *recorder) takeEvents(count int) (events drajudge.History, isTaken bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.count > count {
		return nil, false
	}
	events, r.events = r.events, nil
	return events.Sorted(), true
}

// skipTime makes all later events that much later for the judge: what was decided from now on rests on nothing that was
// written before.
func (r *recorder) skipTime(by time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.lead += by
}

// isCurrent reports whether the recorder has seen all that the API server has: watches of several kinds may lag
// behind each other.
func (r *recorder) isCurrent(ctx context.Context) (bool, error) {
	listed := map[types.UID]string{}
	for _, s := range r.sources {
		list, err := s.list(ctx)
		if err != nil {
			return false, fmt.Errorf("list %s objects: %w", s.kind, err)
		}
		if err := meta.EachListItem(list, func(object runtime.Object) error {
			accessor, err := meta.Accessor(object)
			if err == nil {
				listed[accessor.GetUID()] = accessor.GetResourceVersion()
			}
			return err
		}); err != nil {
			return false, fmt.Errorf("read a list of %s objects: %w", s.kind, err)
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return maps.Equal(listed, r.versions), nil
}
