package taintrules

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	resourcev1 "k8s.io/api/resource/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	"github.com/kwok-dra/kwok-dra/internal/extensions/inventory"
	"github.com/kwok-dra/kwok-dra/internal/extensions/util/groupclient"
	"github.com/kwok-dra/kwok-dra/internal/observe/cached"
)

const (
	// searchInterval is how often the Watcher asks an API server again that has no rules, or
	// lets nobody read them. Either changes only by hand.
	searchInterval = 5 * time.Minute
	// retryInterval is how soon it asks one again that has failed.
	retryInterval = 5 * time.Second
)

// Watcher keeps the rules of a cluster up to date. Most clusters have none.
type Watcher struct {
	client  groupclient.Interface
	changes atomic.Uint64

	mu sync.Mutex
	// watched is nil while there are no rules to watch, and unseen says why, if they are not
	// just absent.
	watched *cached.Informer[*observedRule]
	synced  func() bool
	unseen  string
	// reported is what the log said last.
	reported string
}

// observedRule is what the Watcher keeps of a rule.
type observedRule struct {
	cached.Meta
	rule inventory.TaintRule
}

// NewWatcher makes a Watcher; Run fills it.
func NewWatcher(client groupclient.Interface) *Watcher {
	return &Watcher{client: client}
}

// Rules are the rules that are known now. Unseen says that they cannot be read, if so.
func (w *Watcher) Rules() (rules []inventory.TaintRule, unseen string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.watched != nil {
		for rule := range w.watched.All() {
			rules = append(rules, rule.rule)
		}
	}
	slices.SortFunc(rules, func(a, b inventory.TaintRule) int { return cmp.Compare(a.Name, b.Name) })
	return rules, w.unseen
}

// Synced reports whether all rules are known, or that none can be.
func (w *Watcher) Synced() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.synced != nil && w.synced()
}

// Changes counts what changes Rules.
func (w *Watcher) Changes() uint64 { return w.changes.Load() }

// Run watches until ctx ends.
func (w *Watcher) Run(ctx context.Context) {
	for ctx.Err() == nil {
		err := w.watchRules(ctx)
		if ctx.Err() != nil {
			return
		}
		interval := searchInterval
		if err != nil && !apierrors.IsForbidden(err) && !apierrors.IsNotFound(err) {
			interval = retryInterval
		}
		w.stopWatching(ctx, err)
		timer := time.NewTimer(interval)
		select {
		case <-ctx.Done():
		case <-timer.C:
		}
		timer.Stop()
	}
}

// watchRules returns when the API server has no rules, or lets nobody read them.
func (w *Watcher) watchRules(ctx context.Context) error {
	found, _, err := findVersion(ctx, w.client, metav1.ListOptions{Limit: 1})
	if err != nil || found == nil {
		return err
	}
	shared := found.informer(w.client)
	watched := cached.NewInformer[*observedRule](shared, observeRule)
	changed := func() { w.changes.Add(1) }
	watched.Handle(cache.TypedResourceEventHandlerFuncs[*observedRule]{
		AddFunc:    func(*observedRule) { changed() },
		UpdateFunc: func(_, _ *observedRule) { changed() },
		DeleteFunc: func(cache.DeletedObject[*observedRule]) { changed() },
	})
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	err = shared.SetWatchErrorHandlerWithContext(func(ctx context.Context, r *cache.Reflector, err error) {
		if apierrors.IsNotFound(err) || apierrors.IsForbidden(err) {
			stop(fmt.Errorf("watch devicetaintrules: %w", err))
			return
		}
		cache.DefaultWatchErrorHandler(ctx, r, err)
	})
	if err != nil {
		return fmt.Errorf("watch devicetaintrules: %w", err)
	}
	w.mu.Lock()
	w.watched, w.synced, w.unseen, w.reported = &watched, shared.HasSynced, "", ""
	w.mu.Unlock()
	changed()
	klog.FromContext(ctx).V(1).Info("Watching DeviceTaintRules", "version", found.name)
	watched.Run(ctx)
	return context.Cause(ctx)
}

// stopWatching forgets the rules, and logs once why.
func (w *Watcher) stopWatching(ctx context.Context, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	unseen, report := "", "absent"
	if err != nil && !apierrors.IsNotFound(err) {
		unseen = describeUnseen(err)
		report = unseen
	}
	if w.watched != nil || w.unseen != unseen {
		w.changes.Add(1)
	}
	w.watched, w.unseen = nil, unseen
	w.synced = func() bool { return true }
	if w.reported == report {
		return
	}
	w.reported = report
	logger := klog.FromContext(ctx)
	if unseen != "" {
		logger.Info("Cannot read DeviceTaintRules; devices are shown without the taints of rules", "err", err)
		return
	}
	logger.Info("The API server has no DeviceTaintRules; taints are those of the ResourceSlices")
}

// observeRule is the transform that keeps an observedRule of a rule of any version.
func observeRule(object any) (any, error) {
	if kept, ok := object.(*observedRule); ok {
		return kept, nil
	}
	rule, ok := object.(*resourcev1.DeviceTaintRule)
	if !ok {
		rule = &resourcev1.DeviceTaintRule{}
		if err := convertTo(object, rule); err != nil {
			return nil, err
		}
	}
	return &observedRule{cached.MetaOf(rule), inventory.TaintRuleOf(rule)}, nil
}
