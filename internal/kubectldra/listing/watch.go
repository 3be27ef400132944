package listing

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	coreinformers "k8s.io/client-go/informers/core/v1"
	resourceinformers "k8s.io/client-go/informers/resource/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	"github.com/kwok-dra/kwok-dra/internal/dractl/screen"
	"github.com/kwok-dra/kwok-dra/internal/extensions/inventory/taintrules"
	"github.com/kwok-dra/kwok-dra/internal/kubectldra/printing"
	"github.com/kwok-dra/kwok-dra/internal/kubectldra/usage"
)

// interval is how often an answer is shown at most.
const interval = time.Second

// watched is what is watched of a cluster.
type watched struct {
	*lister
	pods, claims, slices, events cache.SharedIndexInformer
	rules                        *taintrules.Watcher
	changes                      atomic.Uint64
	running                      sync.WaitGroup
	// unseen are the informers that may not read.
	unseen sync.Map
}

// watch shows the answer, and then each change, until the user ends it.
func (l *lister) watch(ctx context.Context) (err error) {
	ctx, cancel := context.WithCancelCause(ctx)
	w := l.newWatched()
	defer w.running.Wait()
	defer cancel(nil)
	w.start(ctx, cancel)
	f := &follower{lister: l}
	if l.IsForPeople() {
		f.screen = screen.Of(l.Out)
	}
	defer func() { err = errors.Join(err, f.closeScreen()) }()
	ticker := time.NewTicker(interval)
	defer ticker.Stop()
	for {
		if err := w.printChanges(f); err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			if errors.Is(context.Cause(ctx), context.Canceled) {
				return nil // the user ends it
			}
			return context.Cause(ctx)
		case <-ticker.C:
		}
	}
}

// printChanges shows what is known, once all has been read.
func (w *watched) printChanges(f *follower) error {
	if !w.hasSynced() {
		return nil
	}
	if w.isBlind(w.currentObjects()) {
		return refuseBlind(w.Reader.Unseen())
	}
	return f.update(w.changes.Load()+w.rules.Changes(), w.currentObjects)
}

func (l *lister) newWatched() *watched {
	client, namespace, none := l.Reader.Client(), l.question.Namespace, cache.Indexers{}
	selectPods := func(options *metav1.ListOptions) { options.LabelSelector = l.podSelector() }
	selectEvents := func(options *metav1.ListOptions) { options.FieldSelector = "reason=" + failedPrepare }
	return &watched{
		lister: l,
		pods:   coreinformers.NewFilteredPodInformer(client, namespace, 0, none, selectPods),
		claims: resourceinformers.NewResourceClaimInformer(client, namespace, 0, none),
		slices: resourceinformers.NewResourceSliceInformer(client, 0, none),
		events: coreinformers.NewFilteredEventInformer(client, namespace, 0, none, selectEvents),
		rules:  taintrules.NewWatcher(client),
	}
}

func (w *watched) listInformers() map[string]cache.SharedIndexInformer {
	return map[string]cache.SharedIndexInformer{"pods": w.pods, "resourceclaims": w.claims, "resourceslices": w.slices, "events": w.events}
}

// start watches until the context is done. What the user may not read is left out; for all other errors that do not
// pass it calls fail.
func (w *watched) start(ctx context.Context, fail context.CancelCauseFunc) {
	for resource, informer := range w.listInformers() {
		namespace := w.question.Namespace
		if resource == "resourceslices" {
			namespace = ""
		}
		// These fail only once an informer runs.
		_ = informer.SetTransform(dropManagedFields)
		_, _ = informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
			AddFunc: func(any) { w.changes.Add(1) }, DeleteFunc: func(any) { w.changes.Add(1) }, UpdateFunc: func(any, any) { w.changes.Add(1) },
		})
		_ = informer.SetWatchErrorHandler(func(_ *cache.Reflector, err error) {
			switch {
			case apierrors.IsUnauthorized(err):
				fail(fmt.Errorf("watch %s: %w", resource, err))
			case apierrors.IsForbidden(err):
				w.noteForbidden(resource, namespace)
				w.unseen.Store(resource, true)
				w.changes.Add(1)
			}
		})
		w.running.Go(func() { informer.RunWithContext(ctx) })
	}
	// A line of a log would be amid the answer.
	quiet := klog.NewContext(ctx, klog.Logger{})
	w.running.Go(func() { w.rules.Run(quiet) })
}

func (w *watched) noteForbidden(resource, namespace string) {
	err := apierrors.NewForbidden(schema.GroupResource{Resource: resource}, "", nil)
	_ = w.Reader.NoteUnseen("watch", resource, namespace, err) // it returns other errors only
}

func dropManagedFields(object any) (any, error) {
	if accessor, err := meta.Accessor(object); err == nil {
		accessor.SetManagedFields(nil)
	}
	return object, nil
}

func (w *watched) hasSynced() bool {
	for resource, informer := range w.listInformers() {
		if _, isUnseen := w.unseen.Load(resource); !isUnseen && !informer.HasSynced() {
			return false
		}
	}
	return w.rules.Synced()
}

func (w *watched) currentObjects() usage.Objects {
	objects := usage.Objects{
		Pods: listStore[*corev1.Pod](w.pods), Claims: listStore[*resourcev1.ResourceClaim](w.claims),
		Slices: listStore[*resourcev1.ResourceSlice](w.slices), Failures: listStore[*corev1.Event](w.events),
	}
	rules, unseen := w.rules.Rules()
	objects.Rules = rules
	if unseen != "" {
		w.noteForbidden("devicetaintrules", "")
	}
	for resource, informer := range w.listInformers() {
		if !informer.HasSynced() {
			noteUnseen(&objects, resource)
		}
	}
	return objects
}

func listStore[T any](informer cache.SharedIndexInformer) []T {
	objects := informer.GetStore().List()
	all := make([]T, len(objects))
	for i := range objects {
		all[i] = objects[i].(T)
	}
	return all
}

// follower shows an answer, and then what changes: on a terminal all of it anew, else the rows that changed.
type follower struct {
	*lister
	// screen is nil if the output is for programs, or is no terminal.
	screen *screen.Screen
	// seen is the number of changes that the last answer has.
	seen uint64
	// shown are the rows of the last answer, by their keys.
	shown map[string]Row
}

// update shows the answer if there are other changes than it has. On a terminal it shows ages anew as well.
func (f *follower) update(changes uint64, objects func() usage.Objects) error {
	if f.shown != nil && changes == f.seen && f.screen == nil {
		return nil
	}
	f.seen = changes
	answer := f.chooseRows(objects())
	if f.screen != nil {
		f.shown = map[string]Row{}
		return f.redraw(answer)
	}
	isFirst := f.shown == nil
	rows := f.changedRows(answer)
	if isFirst {
		if len(rows) == 0 && f.IsForPeople() {
			_, _ = fmt.Fprintln(f.ErrOut, answer.Nothing)
		}
		f.TellUnseen()
	} else {
		answer.Title = ""
	}
	if len(rows) == 0 {
		return nil
	}
	return f.printRows(answer, rows)
}

// changedRows returns the rows that differ from those of the last answer but for their ages, and those that have
// gone, and remembers the answer.
func (f *follower) changedRows(answer *Answer) []Row {
	before := f.shown
	f.shown = map[string]Row{}
	var changed []Row
	for _, row := range answer.Rows {
		f.shown[row.Key] = row
		if old, known := before[row.Key]; !known || !answer.isShownAs(old, row) {
			changed = append(changed, row)
		}
	}
	var released []Row
	for key, row := range before {
		if _, stays := f.shown[key]; !stays {
			released = append(released, row.Released())
		}
	}
	slices.SortFunc(released, func(a, b Row) int { return strings.Compare(a.Key, b.Key) })
	return append(changed, released...)
}

func (f *follower) redraw(answer *Answer) error {
	layout := f.Layout(f.Out)
	width, height := f.screen.Size()
	var note strings.Builder
	if len(answer.Rows) == 0 {
		note.WriteString(answer.Nothing + "\n")
	}
	printing.Unseen(&note, f.Reader.Unseen())
	layout.Width, layout.Height = width, height-strings.Count(note.String(), "\n")
	var text strings.Builder
	if len(answer.Rows) > 0 {
		if err := answer.Print(&text, answer.Rows, layout); err != nil {
			return err
		}
	}
	return f.screen.Show(text.String() + note.String())
}

func (f *follower) closeScreen() error {
	if f.screen == nil {
		return nil
	}
	return f.screen.Close()
}
