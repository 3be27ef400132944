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
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"

	"github.com/kwok-dra/kwok-dra/internal/controller/installation"
	"github.com/kwok-dra/kwok-dra/internal/controller/loop"
	"github.com/kwok-dra/kwok-dra/internal/devices"
	"github.com/kwok-dra/kwok-dra/internal/observe/facts"
	"github.com/kwok-dra/kwok-dra/internal/observe/lifecycle"
	"github.com/kwok-dra/kwok-dra/internal/resourceslice/features"
	"github.com/kwok-dra/kwok-dra/internal/resourceslice/plan"
)

// target is a key with what is known of it.
type target struct {
	key facts.SlicesKey
	// node is the object of events, and has the pools unless nodes share them. It may be nil.
	node *corev1.Node
	// isStandby says that another replica writes.
	isStandby bool
	// last is what is remembered from the last reconciliation, and of what came since.
	last entry
}

// reconcile brings the slices of a node, or of a pool that nodes share, to the state that they should be in.
func (p *Publisher) reconcile(ctx context.Context, key facts.SlicesKey) error {
	if wait := p.expectations.Wait(key); wait > 0 {
		p.loop.AddAfter(key, wait)
		return nil
	}
	set, existing := p.config.Current(), p.caches.Slices.Of(key)
	switch {
	case set == nil:
		return nil
	case key.IsShared():
		return p.reconcileShared(ctx, set, key, existing)
	}
	var last entry
	p.memory.updateEntry(key, func(e *entry) { last, e.changedAt = *e, time.Time{} })
	node := p.caches.Nodes.Get(key.Node)
	t := target{key, node, !p.owner.Acts(key.Node, node != nil), last}
	if node == nil {
		return p.retireNode(ctx, set, t, existing)
	}
	p.enqueueSharedPools(ctx, set, key.Node, node)
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
	desired.RefuseHeldPools(view, p.memory.readHolders(p.caches, key, desired.Pools))
	if desired.Wait > 0 {
		p.loop.AddAfter(key, desired.Wait)
	}
	p.memory.updateEntry(key, func(e *entry) { e.isManaged, e.previous, e.emptySince = true, desired.ForNext, time.Time{} })
	results := p.syncPools(ctx, t, &desired, existing)
	return p.reportNode(t, &desired, &results)
}

// syncPools writes what is missing to what is desired, driver by driver. A write that fails stops only its own driver.
func (p *Publisher) syncPools(ctx context.Context, t target, desired *plan.Desired, existing []*facts.Slice) results {
	all := results{drivers: map[string]result{}}
	drivers := desired.ByDriver(existing)
	for _, driver := range slices.Sorted(maps.Keys(drivers)) {
		one := p.syncDriver(ctx, t, driver, drivers[driver])
		all.drivers[driver] = one
		all.wrote, all.isBehind, all.isPending = all.wrote || one.wrote, all.isBehind || one.isBehind, all.isPending || one.isPending
		all.err = errors.Join(all.err, one.err)
	}
	if !all.wrote && !all.isBehind && all.err == nil {
		p.memory.forgetForeignWrites(t.key)
	}
	return all
}

// syncDriver writes what is missing to what one driver should have: it fits the pools to the API server, plans the
// writes, and applies them.
func (p *Publisher) syncDriver(ctx context.Context, t target, name string, driver plan.DriverState) result {
	as := p.owner.Installation()
	ofPools := slices.DeleteFunc(slices.Clone(driver.Existing), func(o *facts.Slice) bool { // obsolete slices may go in any case
		return !slices.ContainsFunc(driver.Pools, func(pool devices.Pool) bool { return pool.Name == o.Pool })
	})
	other := as.Another(plan.InstallationsOf(ofPools))
	// Slices of another installation are taken over once. If it takes them back, it is alive: it keeps them, and they
	// may be right.
	yields := other != "" && t.last.takenFrom[name] == other
	if yields {
		as, driver.Existing = "", ofPools
	}
	fitted, err := features.Fit(ctx, workerAnswers{p.prober, func() { p.loop.Add(t.key) }}, driver.Pools)
	switch {
	case errors.Is(err, errNotProbed):
		return result{isBehind: true, isPending: true}
	case err != nil:
		return result{err: err}
	case len(fitted.Dropped) > 0:
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
		if wait := p.memory.foreignWriteBackoff(t.key); wait > 0 {
			klog.FromContext(ctx).Info("Another writer modified the ResourceSlices; backing off", "key", t.key, "wait", wait)
			p.loop.AddAfter(t.key, wait)
			return result{isBehind: true}
		}
	}
	err = p.applyWrites(ctx, t.key, &next.Writes)
	if apierrors.IsAlreadyExists(err) {
		err = p.takeOver(ctx, t.key, next)
	}
	if err != nil {
		p.prober.raiseDoubt(err)
		return result{err: err}
	}
	if other != "" {
		p.memory.updateEntry(t.key, func(e *entry) {
			takenFrom := map[string]installation.ID{} // copies of the entry are read without the lock
			maps.Copy(takenFrom, e.takenFrom)
			takenFrom[name] = other
			e.takenFrom = takenFrom
		})
	}
	klog.FromContext(ctx).V(2).Info("Updated ResourceSlices", "key", t.key,
		"created", len(next.Create), "updated", len(next.Update), "deleted", len(next.Delete))
	return result{wrote: true, fitted: fitted}
}

// applyWrites makes the writes for a key in their order, one API call each.
func (p *Publisher) applyWrites(ctx context.Context, key facts.SlicesKey, writes *plan.Writes) error {
	for _, existing := range writes.Delete {
		// A slice that has changed or been replaced since stays. The key waits until the cache has seen the deletion,
		// or the slice would be deleted again.
		unchanged := &metav1.Preconditions{UID: &existing.UID, ResourceVersion: &existing.ResourceVersion}
		p.expectations.Expect(key, existing.GetName())
		err := p.client.ResourceV1().ResourceSlices().Delete(ctx, existing.GetName(), metav1.DeleteOptions{Preconditions: unchanged})
		p.reporter.metrics.writes.WithLabelValues("delete", loop.Result(err)).Inc()
		if err != nil && p.expectations.Answered(key, existing.GetName(), "") {
			p.loop.Add(key)
		}
		if err != nil && !apierrors.IsNotFound(err) {
			return fmt.Errorf("delete slice %s: %w", existing.GetName(), err)
		}
	}
	for i := range writes.Update {
		if err := p.writeSlice(ctx, key, &writes.Update[i]); err != nil {
			return err
		}
	}
	for _, slice := range writes.Create {
		err := p.writeSlice(ctx, key, &plan.Update{Slice: slice})
		if apierrors.IsAlreadyExists(err) {
			live, getErr := p.getSlice(ctx, key, slice.Name)
			switch generation := slice.Spec.Pool.Generation; {
			case getErr != nil:
				return getErr
			case live == nil || live.Spec.Pool.Generation >= generation:
				return fmt.Errorf("create slice %s in generation %d: %w", slice.Name, generation, errors.Unwrap(err))
			}
			err = p.writeSlice(ctx, key, plan.Adopt(slice, live))
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// errStored is the error of a write whose result differs: an admission plugin has changed it. Without it the slice
// would be written again and again.
var errStored = loop.Refused(errors.New("the API server stored something else than it was sent; look for admission plugins that change ResourceSlices"))

// writeSlice updates a slice, or creates it if there is none to update. It notes what the cache has to see of that, and
// checks that the API server stored what it was sent. A call that leaves the resource version as it was has changed
// nothing, and brings no event to wait for.
func (p *Publisher) writeSlice(ctx context.Context, key facts.SlicesKey, update *plan.Update) error {
	client, slice := p.client.ResourceV1().ResourceSlices(), update.Slice
	verb, version, patch := "create", "", []byte(nil)
	if update.Existing != nil {
		verb, version = "update", update.Existing.ResourceVersion
		var err error
		if patch, err = update.Patch(); err != nil {
			return fmt.Errorf("update slice %s: %w", slice.Name, err)
		}
	}
	p.expectations.Expect(key, slice.Name)
	var stored *resourcev1.ResourceSlice
	var err error
	if patch != nil {
		stored, err = client.Patch(ctx, slice.Name, types.MergePatchType, patch, metav1.PatchOptions{})
	} else {
		stored, err = client.Create(ctx, slice, metav1.CreateOptions{})
	}
	p.reporter.metrics.writes.WithLabelValues(verb, loop.Result(err)).Inc()
	seen := ""
	if err == nil && stored.ResourceVersion != version {
		seen = stored.ResourceVersion
	}
	if p.expectations.Answered(key, slice.Name, seen) {
		p.loop.Add(key)
	}
	switch {
	case err != nil:
		return fmt.Errorf("%s slice %s: %w", verb, slice.Name, err)
	case facts.ContentOf(&stored.Spec) != facts.ContentOf(&slice.Spec):
		return fmt.Errorf("publish slice %s: %w", slice.Name, errStored)
	}
	return nil
}

// takeOver applies the plan that follows from the slices that exist but are not in the cache.
func (p *Publisher) takeOver(ctx context.Context, key facts.SlicesKey, refused *plan.Plan) error {
	live := map[string]*resourcev1.ResourceSlice{}
	for {
		next, err := refused.TakeOver(live)
		if err != nil {
			return err
		}
		if next.Need == nil {
			return p.applyWrites(ctx, key, &next.Writes)
		}
		for _, name := range next.Need.Slices {
			if live[name], err = p.getSlice(ctx, key, name); err != nil {
				return err
			}
		}
	}
}

// getSlice reads a slice that is to be taken over, or nil if it does not exist. One of a pool that nodes share may
// belong to another installation.
func (p *Publisher) getSlice(ctx context.Context, key facts.SlicesKey, name string) (*resourcev1.ResourceSlice, error) {
	live, err := p.client.ResourceV1().ResourceSlices().Get(ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("take over slice %s: %w", name, err)
	}
	as := p.owner.Installation()
	if owner := installation.Of(live); key.IsShared() && as.IsAnother(owner) {
		return nil, &installation.OwnedError{Object: "slice " + name, Resource: "resourceslices " + name, Owner: owner, As: as}
	}
	return live, nil
}

// reportNode reports what has become of a node's pools, and what keeps them from being as desired.
func (p *Publisher) reportNode(t target, desired *plan.Desired, results *results) error {
	if changedAt := t.last.changedAt; !changedAt.IsZero() && (results.isPending || results.err != nil && !t.isStandby) {
		p.memory.updateEntry(t.key, func(e *entry) { e.changedAt = changedAt })
	}
	if results.isPending && results.err == nil {
		return nil
	}
	p.reporter.outcomes(t.key.String(), results.templateOutcomes(desired))
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
