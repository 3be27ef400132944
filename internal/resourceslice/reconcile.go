package resourceslice

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/klog/v2"

	"github.com/kwok-dra/kwok-dra/internal/config"
	"github.com/kwok-dra/kwok-dra/internal/controller/installation"
	"github.com/kwok-dra/kwok-dra/internal/controller/loop"
	"github.com/kwok-dra/kwok-dra/internal/observe/facts"
	"github.com/kwok-dra/kwok-dra/internal/observe/lifecycle"
	"github.com/kwok-dra/kwok-dra/internal/resourceslice/features"
	"github.com/kwok-dra/kwok-dra/internal/resourceslice/plan"
)

// reconcile brings the slices of a node, or of a pool that nodes share, to the state that
// they should be in.
func (p *Publisher) reconcile(ctx context.Context, key facts.SlicesKey) error {
	if wait := p.writer.expectations.Wait(key); wait > 0 {
		p.loop.AddAfter(key, wait)
		return nil
	}
	set := p.config.Current()
	if set == nil {
		return nil
	}
	existing := p.caches.Slices.Of(key)
	if key.IsShared() {
		return p.reconcileShared(ctx, set, key, existing)
	}
	return p.reconcileNode(ctx, set, key, existing)
}

// target is what is synced.
type target struct {
	key facts.SlicesKey
	// node is the object of events, and has the pools unless nodes share them. It may be nil.
	node *corev1.Node
	// isStandby says that another replica writes.
	isStandby bool
	// last is what is remembered from the last reconciliation, and of what came since.
	last entry
}

// reconcileNode plans the pools of a node, and brings its slices to the plan.
func (p *Publisher) reconcileNode(ctx context.Context, set *config.Set, key facts.SlicesKey, existing []*facts.Slice) error {
	var last entry
	p.memory.updateEntry(key, func(e *entry) { last, e.changedAt = *e, time.Time{} })
	node := p.caches.Nodes.Get(key.Node)
	t := target{key, node, !p.owner.Acts(key.Node, node != nil), last}
	if node == nil {
		return p.retireNode(ctx, set, t, existing)
	}
	for _, template := range set.Shared() {
		p.enqueueSharedPool(ctx, set, template, key.Node, node)
	}
	view := &plan.View{Set: set, Node: node, Existing: existing, Previous: last.previous, Pods: p.pods.On(node.Name), Now: time.Now()}
	desired := plan.DesiredPools(ctx, view)
	if desired.Confirm && !t.isStandby {
		// Before slices go because a driver Pod is missing, the API server is asked for it.
		var err error
		if view.Pods, err = p.pods.Live(ctx, set.Templates, node); err != nil {
			return err
		}
		view.IsLive = true
		desired = plan.DesiredPools(ctx, view)
		if desired.Wait == 0 {
			desired.Wait = lifecycle.WipeDelay // if the Pods are there, the cache lags
		}
	}
	if desired.Wait > 0 {
		p.loop.AddAfter(key, desired.Wait)
	}
	p.memory.updateEntry(key, func(e *entry) { e.isManaged, e.previous, e.emptySince = true, desired.ForNext, time.Time{} })
	results := p.syncPools(ctx, t, &desired, existing)
	return p.reportNode(t, &desired, &results)
}

// retireNode deletes the slices of a node that is gone or no longer fake.
func (p *Publisher) retireNode(ctx context.Context, set *config.Set, t target, existing []*facts.Slice) error {
	as, mayBeOthers := p.owner.Installation(), p.caches.Nodes.MayBeForeign(t.key.Node)
	isRecorded := as != "" && slices.Contains(plan.InstallationsOf(existing), as)
	if !t.last.isManaged && !isRecorded && mayBeOthers {
		p.memory.forgetForeignWrites(t.key)
		return nil
	}
	for _, template := range set.Shared() {
		p.enqueueSharedPool(ctx, set, template, t.key.Node, nil)
	}
	existing = plan.OwnSlices(as, existing) // another installation may act for the node
	var wait time.Duration
	p.memory.updateEntry(t.key, func(e *entry) {
		e.takenFrom, e.previous = nil, plan.Previous{}
		if t.last.isManaged {
			wait = e.leaveSelection(len(existing) == 0, mayBeOthers)
		}
	})
	if wait > 0 {
		p.loop.AddAfter(t.key, wait)
	}
	if isGone, err := p.isGone(ctx, t, existing); !isGone || err != nil {
		return err
	}
	results := p.syncPools(ctx, t, &plan.Desired{}, existing)
	return p.reportNode(t, &plan.Desired{}, &results)
}

// isGone reports whether a node that is not in the cache, or not fake, is so by the API
// server as well, before its slices go. Slices without a record, of a node that is not
// known to have been fake, may be another installation's.
func (p *Publisher) isGone(ctx context.Context, t target, existing []*facts.Slice) (bool, error) {
	// What was retired of the node is remembered as long as there is a Node.
	if t.isStandby || len(existing) == 0 && t.last.unrecorded == nil {
		return true, nil
	}
	// The slices that another replica has just made for a node may be seen before it.
	node, err := p.live.Get(ctx, t.key.Node, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		p.memory.updateEntry(t.key, func(e *entry) { e.unrecorded = nil })
		return true, nil
	}
	if err != nil {
		return false, fmt.Errorf("get node %s: %w", t.key.Node, err)
	}
	return !p.caches.Nodes.Fake(node) && (t.last.isManaged || p.memory.mayRetire(p.owner.Installation(), t.key, existing)), nil
}

// syncPools writes what is missing to what is desired, driver by driver. A write that fails
// stops only its own driver.
func (p *Publisher) syncPools(ctx context.Context, t target, desired *plan.Desired, existing []*facts.Slice) results {
	all := results{drivers: map[string]result{}}
	drivers := desired.ByDriver(existing)
	for _, driver := range slices.Sorted(maps.Keys(drivers)) {
		all.addResult(driver, p.syncDriver(ctx, t, driver, drivers[driver]))
	}
	if !all.wrote && !all.isBehind && all.err == nil {
		p.memory.forgetForeignWrites(t.key)
	}
	return all
}

// syncDriver writes what is missing to what one driver should have: it fits the pools to the
// API server, plans the writes, and applies them.
func (p *Publisher) syncDriver(ctx context.Context, t target, name string, driver plan.DriverState) result {
	as := p.owner.Installation()
	var other installation.ID
	if len(driver.Existing) > 0 {
		other = as.Another(plan.InstallationsOf(driver.OfPools()))
	}
	yields := other != "" && t.last.takenFrom[name] == other
	if yields { // what is there may be right, whoever has made it
		as, driver.Existing = "", driver.OfPools()
	}
	fitted, err := features.Fit(ctx, workerAnswers{p.prober, func() { p.loop.Add(t.key) }}, driver.Pools)
	if errors.Is(err, errNotProbed) {
		return result{isBehind: true, isPending: true}
	}
	if err != nil {
		return result{err: err}
	}
	if len(fitted.Dropped) > 0 {
		p.reporter.reportDropped(ctx, t.node, fitted.Dropped)
	}
	next, err := plan.New(as, t.node, &fitted, driver.Existing)
	switch {
	case err != nil || next.IsEmpty():
		return result{fitted: fitted, err: err}
	case t.isStandby:
		return result{isBehind: true}
	case yields:
		return result{err: plan.NewOwnedError(p.owner.Installation(), t.key, driver.Existing, other)}
	}
	if t.last.hasForeignWrites {
		if wait := p.memory.waitForOthers(t.key); wait > 0 {
			klog.FromContext(ctx).Info("Another writer modified the ResourceSlices; backing off", "key", t.key, "wait", wait)
			p.loop.AddAfter(t.key, wait)
			return result{isBehind: true}
		}
	}
	err = p.writer.applyWrites(ctx, t.key, &next.Writes)
	if apierrors.IsAlreadyExists(err) {
		err = p.takeOver(ctx, t.key, next)
	}
	if err != nil {
		p.prober.raiseDoubt(err)
		return result{err: err}
	}
	if other != "" {
		p.memory.noteTakeOver(t.key, name, other)
	}
	klog.FromContext(ctx).V(2).Info("Updated ResourceSlices", "key", t.key,
		"created", len(next.Create), "updated", len(next.Update), "deleted", len(next.Delete))
	return result{wrote: true, fitted: fitted}
}

// takeOver reads the slices that exist but are not in the cache, and applies the plan that
// follows from them.
func (p *Publisher) takeOver(ctx context.Context, key facts.SlicesKey, refused *plan.Plan) error {
	live := map[string]*resourcev1.ResourceSlice{}
	next, err := refused.TakeOver(live)
	for err == nil && next.Need != nil {
		for _, name := range next.Need.Slices {
			if live[name], err = p.writer.getSlice(ctx, key, name); err != nil {
				return err
			}
		}
		next, err = refused.TakeOver(live)
	}
	if err != nil {
		return err
	}
	return p.writer.applyWrites(ctx, key, &next.Writes)
}

// reportNode reports what has become of a node's pools, and what keeps them from being as
// desired.
func (p *Publisher) reportNode(t target, desired *plan.Desired, results *results) error {
	if changedAt := t.last.changedAt; !changedAt.IsZero() && (results.isPending || results.err != nil && !t.isStandby) {
		p.memory.updateEntry(t.key, func(e *entry) { e.changedAt = changedAt })
	}
	if results.isPending && results.err == nil {
		return nil
	}
	p.reporter.reportOutcomes(t.key, desired, results)
	if t.isStandby { // another replica reports
		if _, ok := errors.AsType[*plan.LayoutError](results.err); ok {
			return loop.Terminal(results.err)
		}
		return results.err
	}
	p.reporter.reportHidden(t.node, desired.Hidden)
	if results.err != nil {
		return p.reporter.reportFailure(t.node, results.err, p.loop.NumRequeues(t.key))
	}
	if results.wrote && !t.last.changedAt.IsZero() {
		p.reporter.metrics.latency.Observe(time.Since(t.last.changedAt).Seconds())
	}
	return p.reporter.reportProblems(t.node, desired.Problems())
}
