package trial

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
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/kwok-dra/kwok-dra/pkg/drajudge"
)

// API reads the objects of one kind.
type API[L runtime.Object] interface {
	List(ctx context.Context, options metav1.ListOptions) (L, error)
	Watch(ctx context.Context, options metav1.ListOptions) (watch.Interface, error)
}

// Source reads the objects of one kind that belong to a story.
type Source struct {
	kind string
	// List lists the objects.
	List  func(ctx context.Context) (runtime.Object, error)
	watch func(ctx context.Context, version string) (watch.Interface, error)
}

// NewSource is of the objects that listed selects. It watches those that watched selects, which may be more.
func NewSource[L runtime.Object](kind string, listed, watched API[L], options metav1.ListOptions) Source {
	return Source{
		kind: kind,
		List: func(ctx context.Context) (runtime.Object, error) { return listed.List(ctx, options) },
		watch: func(ctx context.Context, version string) (watch.Interface, error) {
			options := options
			options.ResourceVersion = version
			return watched.Watch(ctx, options)
		},
	}
}

// Recorder records what happens to the objects of a story.
type Recorder struct {
	sources   []Source
	namespace string
	matters   func(event watch.Event) bool
	running   sync.WaitGroup
	stop      context.CancelFunc

	mu sync.Mutex
	// events are those that have not been taken yet, and count is of all.
	events drajudge.History
	count  int
	// newest is when the last event came.
	newest time.Time
	// lead is how much later events are said to be than they are, see SkipTime.
	lead time.Duration
	// objects are those that exist, as they were seen last.
	objects map[types.UID]metav1.Object
	err     error
}

// StartRecorder starts to watch, from one resource version; without one, from the objects that exist, which it records as
// added. It skips events that do not matter, and compares with the API server what is in the namespace or in none. End it
// with Stop.
func StartRecorder(ctx context.Context, sources []Source, version, namespace string, matters func(event watch.Event) bool) (*Recorder, error) {
	r := &Recorder{sources: sources, namespace: namespace, matters: matters, objects: map[types.UID]metav1.Object{}, newest: time.Now()}
	ctx, r.stop = context.WithCancel(ctx)
	for _, s := range sources {
		version := version
		var err error
		if version == "" {
			version, err = r.recordExisting(ctx, s)
		}
		var watcher watch.Interface
		if err == nil {
			watcher, err = s.watch(ctx, version)
		}
		if err != nil {
			r.Stop()
			return nil, fmt.Errorf("watch %s objects: %w", s.kind, err)
		}
		r.running.Go(func() { r.follow(ctx, s, watcher, version) })
	}
	return r, nil
}

// recordExisting records the objects that exist as added, and returns the version of the list.
func (r *Recorder) recordExisting(ctx context.Context, s Source) (version string, err error) {
	list, err := s.List(ctx)
	if err != nil {
		return "", err
	}
	accessor, err := meta.ListAccessor(list)
	if err != nil {
		return "", err
	}
	return accessor.GetResourceVersion(), meta.EachListItem(list, func(object runtime.Object) error {
		accessor, err := meta.Accessor(object)
		if err != nil {
			return err
		}
		return r.recordEvent(watch.Event{Type: watch.Added, Object: object}, accessor)
	})
}

// Stop ends the watches.
func (r *Recorder) Stop() {
	r.stop()
	r.running.Wait()
}

// follow records the events of a kind. API servers end watches now and then; the next one goes on where that has ended.
func (r *Recorder) follow(ctx context.Context, s Source, watcher watch.Interface, version string) {
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
func (r *Recorder) recordEvents(ctx context.Context, watcher watch.Interface, version string) (string, error) {
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

func (r *Recorder) recordEvent(event watch.Event, accessor metav1.Object) error {
	if event.Type == watch.Bookmark {
		return nil
	}
	object, err := convertRule(event.Object)
	if err != nil {
		return err
	}
	matters := r.matters(event)
	r.mu.Lock()
	defer r.mu.Unlock()
	if matters {
		now := time.Now()
		r.events = append(r.events, drajudge.Event{Type: event.Type, Object: object, Time: now.Add(r.lead)})
		if !isReworded(r.objects[accessor.GetUID()], accessor) {
			r.newest = now
			r.count++
		}
	}
	switch {
	case accessor.GetNamespace() != "" && accessor.GetNamespace() != r.namespace:
	case event.Type == watch.Deleted:
		delete(r.objects, accessor.GetUID())
	default:
		r.objects[accessor.GetUID()] = accessor
	}
	return nil
}

// isReworded reports whether all that has changed of a Pod is what the messages of its conditions say. Schedulers explain again
// and again why a Pod waits, some each time in other words: nothing happens by that.
func isReworded(old, updated metav1.Object) bool {
	before, wasPod := old.(*corev1.Pod)
	after, isPod := updated.(*corev1.Pod)
	return wasPod && isPod && equality.Semantic.DeepEqual(withoutMessages(before), withoutMessages(after))
}

// withoutMessages returns a Pod without what differs after a scheduler has explained again why it waits.
func withoutMessages(pod *corev1.Pod) *corev1.Pod {
	pod = pod.DeepCopy()
	pod.ResourceVersion, pod.ManagedFields = "", nil
	for i := range pod.Status.Conditions {
		condition := &pod.Status.Conditions[i]
		condition.Message, condition.LastProbeTime, condition.LastTransitionTime = "", metav1.Time{}, metav1.Time{}
	}
	return pod
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

// State says how many events there are, and how long ago the last one came.
func (r *Recorder) State() (count int, quiet time.Duration, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.count, time.Since(r.newest), r.err
}

// TakeQuiet waits until nothing has happened for a while, and returns the events since the last time. It takes none if
// something happens meanwhile, or if the watches have not shown yet all that the API server has.
func (r *Recorder) TakeQuiet(ctx context.Context, quiet time.Duration) (events drajudge.History, isTaken bool, err error) {
	count, since, err := r.State()
	if err != nil {
		return nil, false, err
	}
	if err := Pause(ctx, quiet-since); err != nil {
		return nil, false, err
	}
	isCurrent, err := r.isCurrent(ctx)
	if err != nil || !isCurrent {
		return nil, false, err
	}
	events, isTaken = r.takeEvents(count)
	return events, isTaken, nil
}

// takeEvents returns the events since the last time, unless there are more than count in all.
func (r *Recorder) takeEvents(count int) (events drajudge.History, isTaken bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.count > count {
		return nil, false
	}
	events, r.events = r.events, nil
	return events.Sorted(), true
}

// SkipTime makes all later events that much later for the judge: what was decided from now on rests on nothing that was
// written before.
func (r *Recorder) SkipTime(by time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.lead += by
}

// isCurrent reports whether the recorder has seen all that the API server has: watches of several kinds may lag
// behind each other.
func (r *Recorder) isCurrent(ctx context.Context) (bool, error) {
	listed := map[types.UID]string{}
	for _, s := range r.sources {
		list, err := s.List(ctx)
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
	return maps.EqualFunc(listed, r.objects, func(version string, object metav1.Object) bool {
		// What has happened since the list counts as an event.
		isNewer, err := resourceversion.CompareResourceVersion(object.GetResourceVersion(), version)
		return err == nil && isNewer >= 0
	}), nil
}

// Pause waits, unless ctx ends.
func Pause(ctx context.Context, duration time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(duration):
		return nil
	}
}
