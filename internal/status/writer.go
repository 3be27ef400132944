package status

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/record"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/klog/v2"

	"github.com/kwok-dra/kwok-dra/internal/config"
	"github.com/kwok-dra/kwok-dra/internal/controller/loop"
	"github.com/kwok-dra/kwok-dra/internal/controller/shard"
	"github.com/kwok-dra/kwok-dra/internal/resourceslice"
	"github.com/kwok-dra/kwok-dra/pkg/api/v1alpha1"
)

// passInterval is the least time from one pass over all objects to the next. While a fleet comes up,
// the counts change with each node.
const passInterval = time.Second

// longestRetry is the longest time until a status is tried again that cannot be written.
const longestRetry = time.Minute

// Writer writes the status of objects when it changes, and at no other time.
type Writer struct {
	client dynamic.Interface
	owner  *shard.Owner
	// acceptance returns the existing objects of a kind.
	acceptance func(kind string) map[string]config.Acceptance
	kinds      []config.Kind
	// isIdle reports whether all outcomes are known, and wasIdle whether they have been known once.
	// Until then the shown statuses are from before a restart, and right.
	isIdle  func() bool
	wasIdle bool
	// loop has one key for all objects, so it handles one object at a time.
	loop *loop.Loop[struct{}]
	// next is when the next pass may begin.
	next time.Time

	writes
	observed
}

// writes are what has become of those to each object.
type writes struct {
	recorder record.EventRecorder
	// written has the last one, and failures counts those that have failed since one succeeded.
	written  map[object]lastWrite
	failures workqueue.TypedRateLimiter[object]
}

// observed has the outcomes of publishing.
type observed struct {
	mu sync.Mutex
	// outcomes maps a place, which is a node or a shared pool, to the outcomes of templates there.
	outcomes map[string]map[string]resourceslice.Outcome
	// unselected maps templates that select no node to the reason.
	unselected map[string]string
}

// object identifies an object with a status.
type object struct {
	kind, name string
	uid        types.UID
}

// lastWrite is what this Writer remembers of an object.
type lastWrite struct {
	content any
	// replacedAt is when it last replaced somebody else's status.
	replacedAt time.Time
	// isLogged reports whether the log says already that somebody else writes the status.
	isLogged bool
	// retry is when to try again to write the status, which has failed.
	retry time.Time
}

// New makes a Writer for those of the kinds that have a status; Run starts it. It writes while the owner leads.
func New(client dynamic.Interface, owner *shard.Owner, recorder record.EventRecorder, acceptance func(kind string) map[string]config.Acceptance, kinds ...config.Kind) *Writer {
	w := &Writer{
		client:     client,
		owner:      owner,
		acceptance: acceptance,
		kinds:      slices.DeleteFunc(slices.Clone(kinds), func(kind config.Kind) bool { return plans[kind.Name] == nil }),
		writes: writes{
			recorder: recorder, written: map[object]lastWrite{},
			failures: workqueue.NewTypedItemExponentialFailureRateLimiter[object](passInterval, longestRetry),
		},
		observed: observed{outcomes: map[string]map[string]resourceslice.Outcome{}},
	}
	w.loop = loop.New("status", w.writeStatuses)
	owner.OnChange(func(string) {}, w.Changed)
	return w
}

// Outcomes replaces the outcomes of templates in one place: on a node, or of a shared pool.
func (w *Writer) Outcomes(place string, templates map[string]resourceslice.Outcome) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(templates) == 0 {
		delete(w.outcomes, place)
	} else {
		w.outcomes[place] = templates
	}
	w.Changed()
}

// Unselected replaces the reasons why templates select no node, by the names of the templates.
func (w *Writer) Unselected(byTemplate map[string]string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !maps.Equal(w.unselected, byTemplate) {
		w.unselected = byTemplate
		w.Changed()
	}
}

// Changed queues a pass over all objects.
func (w *Writer) Changed() {
	w.loop.Add(struct{}{})
}

// CheckHealth returns an error if the Writer's loop is stuck.
func (w *Writer) CheckHealth() error {
	return w.loop.CheckHealth()
}

// Run writes until ctx ends, and not before isIdle has reported once that all outcomes are known.
func (w *Writer) Run(ctx context.Context, isIdle func() bool) {
	w.isIdle = isIdle
	w.loop.Run(ctx, 1)
}

// writeStatuses brings the status of every object up to date. If one cannot be written, the next pass
// tries again; it does not delay the others.
func (w *Writer) writeStatuses(ctx context.Context, _ struct{}) error {
	if wait := time.Until(w.next); wait > 0 {
		w.loop.AddAfter(struct{}{}, wait)
		return nil
	}
	w.next = time.Now().Add(passInterval)
	if !w.owner.Leads() {
		return nil
	}
	isIdle := w.isIdle()
	if w.wasIdle = w.wasIdle || isIdle; !w.wasIdle {
		w.Changed()
		return nil
	}
	existing := map[object]bool{}
	for _, kind := range w.kinds {
		objects := w.acceptance(kind.Name)
		all := w.sumOutcomes(objects)
		for _, name := range slices.Sorted(maps.Keys(objects)) {
			totals, hasOutcome := all[name]
			o := object{kind.Name, name, objects[name].Source.GetUID()}
			existing[o] = true
			if !isIdle && !hasOutcome && objects[name].Err == nil { // a node that has not been reconciled yet may have one
				w.Changed()
				continue
			}
			patch := plans[kind.Name](w.owner.Installation(), objects[name], totals, metav1.Now())
			if patch == nil {
				continue
			}
			if err := w.writePatch(ctx, kind, o, patch); err != nil && !apierrors.IsNotFound(err) && ctx.Err() == nil {
				w.recordFailure(ctx, o, fmt.Errorf("write status of %s %s: %w", kind.Name, name, err), objects[name].Source)
			}
		}
	}
	maps.DeleteFunc(w.written, func(o object, _ lastWrite) bool {
		if !existing[o] {
			w.failures.Forget(o)
		}
		return !existing[o]
	})
	return nil
}

// A status that somebody else has written is replaced once, and then left alone for a while. If the other writer lives, it
// has written its status again by then; if it does not, the status was out of date for no longer than that.
const (
	// takeoverInterval applies to the status of another installation.
	takeoverInterval = time.Hour
	// repairInterval applies to a status that is recorded to this installation: an earlier leader,
	// a person, or a version without records has changed it.
	repairInterval = 10 * time.Minute
)

// writePatch writes a status, and records that. A status that is applied yields to a field manager that has written one in
// the meantime.
func (w *Writer) writePatch(ctx context.Context, kind config.Kind, o object, patch *Patch) error {
	last, interval := w.written[o], repairInterval
	if patch.isContested {
		interval = takeoverInterval
	}
	isForeign := patch.isContested || apiequality.Semantic.DeepEqual(last.content, patch.Content) // what was written last has changed since
	if wait := time.Until(last.retry); wait > 0 {
		w.loop.AddAfter(struct{}{}, wait)
		return nil
	}
	if wait := interval - time.Since(last.replacedAt); isForeign && wait > 0 {
		if !last.isLogged {
			klog.FromContext(ctx).Info("Skipped the status of an object that someone else writes too; look for another kwok-dra", "kind", o.kind, "name", o.name, "installation", patch.owner)
			last.isLogged = true
			w.written[o] = last
		}
		w.loop.AddAfter(struct{}{}, wait)
		return nil
	}
	body, err := json.Marshal(patch.Body)
	if err == nil {
		_, err = w.client.Resource(kind.Resource).Patch(ctx, o.name, patch.Type, body, patch.Options, "status")
	}
	if patch.Type == types.ApplyPatchType && apierrors.IsConflict(err) {
		klog.FromContext(ctx).Info("Skipped the status of an object; another field manager owns it", "kind", o.kind, "name", o.name, "err", err)
	} else if err != nil {
		return err
	}
	if isForeign {
		last.replacedAt = time.Now()
	}
	last.content, last.retry = patch.Content, time.Time{}
	w.written[o] = last
	w.failures.Forget(o)
	return nil
}

// recordFailure reports that a status cannot be written, and says when to try again: after a second, two, four and so on. What
// the API server refuses, such as for lack of permission, it refuses for all objects, and for long.
func (w *Writer) recordFailure(ctx context.Context, o object, err error, source runtime.Object) {
	last, wait := w.written[o], w.failures.When(o)
	last.retry = time.Now().Add(wait)
	w.written[o] = last
	klog.FromContext(ctx).Error(err, "Failed to write the status of an object; retrying", "after", wait)
	if w.failures.NumRequeues(o) == loop.FailuresBeforeEvent {
		w.recorder.Event(source, corev1.EventTypeWarning, v1alpha1.ReasonStatusFailed, v1alpha1.EventMessage(err))
	}
	w.loop.AddAfter(struct{}{}, wait)
}

// sumOutcomes sums up the outcomes of each object's templates in all places.
func (o *observed) sumOutcomes(objects map[string]config.Acceptance) map[string]Totals {
	owners := map[string]string{}
	for name, object := range objects {
		for _, template := range object.Templates {
			owners[template] = name
		}
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	all := map[string]Totals{}
	for _, place := range slices.Sorted(maps.Keys(o.outcomes)) {
		merged := map[string]resourceslice.Outcome{} // a place counts once, even if several templates of an object select it
		for _, template := range slices.Sorted(maps.Keys(o.outcomes[place])) {
			if name, isOwned := owners[template]; isOwned {
				merged[name] = merged[name].Add(o.outcomes[place][template])
			}
		}
		for name, here := range merged {
			totals := all[name]
			totals.Slices += here.Slices
			totals.Devices += here.Devices
			switch {
			case here.Problem != nil:
				totals.Failing++
				totals.Problem = cmp.Or(totals.Problem, fmt.Errorf("%s: %w", place, here.Problem))
			case here.Slices > 0:
				totals.Published++
			case here.HiddenBy != "":
				totals.Hidden++
				totals.HiddenBy = cmp.Or(totals.HiddenBy, here.HiddenBy)
			default:
				totals.Waiting++
			}
			all[name] = totals
		}
	}
	for _, template := range slices.Sorted(maps.Keys(o.unselected)) {
		if name, isOwned := owners[template]; isOwned {
			totals := all[name]
			totals.unselected = cmp.Or(totals.unselected, o.unselected[template])
			all[name] = totals
		}
	}
	return all
}
