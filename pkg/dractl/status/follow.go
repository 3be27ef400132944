package status

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"

	"github.com/kwok-dra/kwok-dra/pkg/dractl/output"
)

const (
	// interval is how often the tables are shown at most.
	interval = time.Second
	// emptied is how a terminal is emptied.
	emptied = "\x1b[H\x1b[2J"
)

// follow shows the overview whenever it changes, until the user has seen enough.
func (c *command) follow(ctx context.Context, client kubernetes.Interface) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	live := newLive(client, cancel)
	live.start(ctx)
	progress := c.streams.Progress(reading, 0)
	defer progress.Done()
	ticker := time.NewTicker(interval)
	defer ticker.Stop()
	defer live.stop(cancel)
	shown, first := uint64(0), true
	for synced := false; ; {
		synced = synced || live.synced()
		if now := live.changes.Load(); synced && (first || now != shown) {
			progress.Done()
			if err := c.again(ctx, live.world(), first); err != nil {
				return err
			}
			shown, first = now, false
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

// again shows the overview in place of the one before, or below it if the output
// is not a terminal.
func (c *command) again(ctx context.Context, w *world, first bool) error {
	var err error
	switch {
	case c.asValue():
	case c.onTerminal():
		_, err = fmt.Fprint(c.streams.Out, emptied)
	case !first:
		_, err = fmt.Fprintln(c.streams.Out)
	}
	if err != nil {
		return err
	}
	if c.output.Format == output.YAML && !first {
		if _, err := fmt.Fprintln(c.streams.Out, "---"); err != nil {
			return err
		}
	}
	return c.show(ctx, w)
}

// live keeps a world up to date.
type live struct {
	factories                    []informers.SharedInformerFactory
	slices, claims, pods, events cache.SharedIndexInformer
	changes                      atomic.Uint64
}

// newLive makes a live world. Fail is called when it cannot be read.
func newLive(client kubernetes.Interface, fail context.CancelCauseFunc) *live {
	everything := informers.NewSharedInformerFactory(client, 0)
	failures := informers.NewSharedInformerFactoryWithOptions(client, 0, informers.WithTweakListOptions(func(o *metav1.ListOptions) {
		o.FieldSelector = "reason=" + failedPrepare
	}))
	l := &live{
		factories: []informers.SharedInformerFactory{everything, failures},
		slices:    everything.Resource().V1().ResourceSlices().Informer(),
		claims:    everything.Resource().V1().ResourceClaims().Informer(),
		pods:      everything.Core().V1().Pods().Informer(),
		events:    failures.Core().V1().Events().Informer(),
	}
	changed := func() { l.changes.Add(1) }
	for _, informer := range l.informers() {
		// These fail only once an informer runs.
		_, _ = informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
			AddFunc: func(any) { changed() }, UpdateFunc: func(_, _ any) { changed() }, DeleteFunc: func(any) { changed() },
		})
		_ = informer.SetWatchErrorHandler(func(r *cache.Reflector, err error) {
			if apierrors.IsForbidden(err) || apierrors.IsUnauthorized(err) || apierrors.IsNotFound(err) {
				fail(fmt.Errorf("watch %s: %w", r.TypeDescription(), err))
			}
		})
	}
	return l
}

func (l *live) informers() []cache.SharedIndexInformer {
	return []cache.SharedIndexInformer{l.slices, l.claims, l.pods, l.events}
}

func (l *live) start(ctx context.Context) {
	for _, factory := range l.factories {
		factory.StartWithContext(ctx)
	}
}

// stop waits until nothing runs any more.
func (l *live) stop(cancel context.CancelCauseFunc) {
	cancel(nil)
	for _, factory := range l.factories {
		factory.Shutdown()
	}
}

func (l *live) synced() bool {
	for _, informer := range l.informers() {
		if !informer.HasSynced() {
			return false
		}
	}
	return true
}

func (l *live) world() *world {
	return &world{
		listed[*resourcev1.ResourceSlice](l.slices), listed[*resourcev1.ResourceClaim](l.claims),
		listed[*corev1.Pod](l.pods), listed[*corev1.Event](l.events),
	}
}

func listed[T any](informer cache.SharedIndexInformer) []T {
	objects := informer.GetStore().List()
	all := make([]T, len(objects))
	for i := range objects {
		all[i] = objects[i].(T)
	}
	return all
}
