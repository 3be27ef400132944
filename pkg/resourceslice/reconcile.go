package resourceslice

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/klog/v2"

	"github.com/kwok-dra/kwok-dra/pkg/config"
	"github.com/kwok-dra/kwok-dra/pkg/lifecycle"
	"github.com/kwok-dra/kwok-dra/pkg/loop"
	"github.com/kwok-dra/kwok-dra/pkg/observe/facts"
	"github.com/kwok-dra/kwok-dra/pkg/resourceslice/plan"
)

// reconcile brings the slices of a node, or of a pool that nodes share, to the state
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
	if key.Shared() {
		return p.reconcileShared(ctx, set, key, existing)
	}
	return p.reconcileNode(ctx, set, key, existing)
}

func (p *Publisher) reconcileNode(ctx context.Context, set *config.Set, key facts.SlicesKey, existing []*facts.Slice) error {
	record, known := p.records.get(key.Node)
	changed, _ := p.records.changed.LoadAndDelete(key.Node)
	node := p.caches.Nodes.Get(key.Node)
	if node == nil && !known && !p.ownsAny(existing) && p.caches.Nodes.Others(key.Node) {
		p.writer.backoff.reset(key)
		return nil
	}
	p.enqueueSharedPools(ctx, set, key.Node, node)
	if node == nil { // another installation may act for it
		existing = plan.OwnSlices(p.owner.Installation(), existing)
		p.taken.forget(key)
	}
	t := target{key, node, !p.owner.Acts(key.Node, node != nil)}
	var desired plan.Desired
	if node != nil {
		var err error
		view := &plan.View{Set: set, Node: node, Existing: existing, Known: record.pools, Pods: p.pods.On(node.Name)}
		if desired, err = p.desired(ctx, view, t.standby); err != nil {
			return err
		}
		if desired.Wait > 0 {
			p.loop.AddAfter(key, desired.Wait)
		}
		p.records.Store(key.Node, nodeRecord{pools: desired.Known})
	} else if gone, err := p.isGone(ctx, t, existing, known); !gone || err != nil {
		return err
	}
	results := p.syncPools(ctx, t, &desired, existing)
	p.reporter.reportOutcomes(key, &desired, &results)
	if t.standby {
		return standbyError(results.err)
	}
	p.reporter.reportHidden(node, desired.Hidden)
	if results.err != nil {
		p.records.keepChanged(key.Node, changed)
		return p.reporter.reportFailure(node, results.err, p.loop.Failures(key))
	}
	if since, ok := changed.(time.Time); ok && results.wrote {
		p.reporter.metrics.latency.Observe(time.Since(since).Seconds())
	}
	return p.reporter.reportProblems(node, desired.Problems())
}

// desired works out what a node should have. Before slices go since a driver Pod is
// missing, the API server is asked for the Pods, unless another replica acts.
func (o *observer) desired(ctx context.Context, view *plan.View, standby bool) (plan.Desired, error) {
	view.Now = time.Now()
	desired := plan.DesiredPools(ctx, view)
	if !desired.Confirm || standby {
		return desired, nil
	}
	var err error
	if view.Pods, err = o.pods.Live(ctx, view.Set.Templates, view.Node); err != nil {
		return desired, err
	}
	view.Live = true
	desired = plan.DesiredPools(ctx, view)
	if desired.Wait == 0 {
		desired.Wait = lifecycle.WipeDelay // if they are there, the cache lags
	}
	return desired, nil
}

// isGone reports whether a node that is not in the cache, or not fake, is so by the API
// server as well, before its slices go. Slices without a record, of a node that is not
// known to have been fake, may be another installation's.
func (p *Publisher) isGone(ctx context.Context, t target, existing []*facts.Slice, known bool) (bool, error) {
	empty := len(existing) == 0
	if known {
		if wait := p.records.leave(t.key.Node, empty, p.caches.Nodes.Others(t.key.Node)); wait > 0 {
			p.loop.AddAfter(t.key, wait)
		}
	}
	_, retired := p.unrecorded.Load(t.key)
	if t.standby || empty && !retired { // what was retired of it is remembered as long as there is a Node
		return true, nil
	}
	// The slices that another replica has just made for a node may be seen before it.
	node, err := p.live.Get(ctx, t.key.Node, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		p.unrecorded.Delete(t.key)
		return true, nil
	}
	if err != nil {
		return false, fmt.Errorf("get node %s: %w", t.key.Node, err)
	}
	return !p.caches.Nodes.Fake(node) && (known || p.mayRetire(t.key, existing)), nil
}

// standbyError is what remains to be done about a node that another replica acts for
// and reports on.
func standbyError(err error) error {
	if _, ok := errors.AsType[*plan.LayoutError](err); ok {
		return loop.Terminal(err)
	}
	return err
}

// reconcileShared has a pool that nodes share exist while some node requires it.
func (p *Publisher) reconcileShared(ctx context.Context, set *config.Set, key facts.SlicesKey, existing []*facts.Slice) error {
	if !p.owner.Leads() {
		return nil
	}
	as := p.owner.Installation()
	observed := existing
	existing, another := plan.OwnShared(as, existing)
	template := set.SharedPool(key.Driver, key.Pool)
	unknown := p.shared.setExists(key, template != nil, len(existing) > 0)
	if unknown && len(set.Unsettled) > 0 {
		return nil
	}
	var node *corev1.Node
	var desired plan.Desired
	if template != nil {
		var err error
		node, err = p.findWitness(ctx, set, key, len(existing) > 0)
		if node != nil && another != "" {
			results := p.syncPools(ctx, target{key: key, node: node}, &plan.Desired{}, existing)
			owned := plan.NewOwnedError(as, key, observed, another)
			desired = plan.DesiredShared(template, false, owned)
			p.reporter.reportOutcomes(key, &desired, &results)
			p.reporter.reportOwned(ctx, target{key: key, node: node}, template, owned)
			return results.err
		}
		desired = plan.DesiredShared(template, node != nil, err)
	}
	if node == nil && desired.Held[key.Driver] == nil && !p.mayRetire(key, existing) {
		return nil
	}
	p.reporter.forgetOwned(key)
	results := p.syncPools(ctx, target{key: key, node: node}, &desired, existing)
	p.reporter.reportOutcomes(key, &desired, &results)
	if results.err != nil {
		return p.reporter.reportFailure(node, results.err, p.loop.Failures(key))
	}
	held := desired.Held[key.Driver]
	if node != nil && held != nil {
		return p.reporter.reportProblems(node, map[string]error{"template": held})
	}
	return loop.Terminal(held)
}

// findWitness finds a node that requires the pool, the last one if it still does.
// The error is that of nodes for which this is unknown.
func (p *Publisher) findWitness(ctx context.Context, set *config.Set, key facts.SlicesKey, published bool) (*corev1.Node, error) {
	last := p.shared.witness(key)
	var errs []error
	for _, name := range append([]string{last.node}, p.caches.Nodes.Keys()...) {
		// It is noted before it is looked at, so that no change of the node goes unseen.
		p.shared.Store(key, witness{node: name})
		node := p.caches.Nodes.Get(name)
		if node == nil {
			continue
		}
		required, err := plan.Requires(ctx, set, node, set.SharedPool(key.Driver, key.Pool), published || last.found)
		if required {
			p.shared.Store(key, witness{node: name, found: true})
			return node, nil
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("node %s: %w", name, err))
		}
	}
	p.shared.Store(key, witness{})
	return nil, errors.Join(errs...)
}

// enqueueSharedPools queues the shared pools that may depend on the node: it is the
// witness and may no longer be one, or there is none and it may become one.
func (p *Publisher) enqueueSharedPools(ctx context.Context, set *config.Set, name string, node *corev1.Node) {
	for _, t := range set.Shared() {
		key := plan.SharedKey(t)
		w := p.shared.witness(key)
		if w.found && w.node != name {
			continue
		}
		required := false
		if node != nil {
			required, _ = plan.Requires(ctx, set, node, t, w.found) // reconcileShared reports errors
		}
		if required != w.found || w.node == name && !w.found {
			p.writer.backoff.reset(key)
			p.loop.Add(key)
		}
	}
}

// target is what is synced.
type target struct {
	key facts.SlicesKey
	// node is where events go, and which has a node's own pools. It may be nil.
	node *corev1.Node
	// standby says that another replica writes.
	standby bool
}

// syncPools writes what is missing to what is desired, driver by driver. A write
// that fails stops only its own driver.
func (p *Publisher) syncPools(ctx context.Context, t target, desired *plan.Desired, existing []*facts.Slice) results {
	all := results{drivers: map[string]result{}}
	drivers := desired.ByDriver(existing)
	for _, driver := range slices.Sorted(maps.Keys(drivers)) {
		all.add(driver, p.syncDriver(ctx, t, drivers[driver]))
	}
	if !all.wrote && !all.behind && all.err == nil {
		p.writer.backoff.reset(t.key)
	}
	return all
}

func (p *Publisher) syncDriver(ctx context.Context, t target, driver plan.DriverState) result {
	as, owner := p.owner.Installation(), p.ownerOf(&driver)
	yields := owner != "" && p.taken.has(t.key, driver.Pools[0].Driver, owner)
	if yields { // what is there may be right, whoever has made it
		as, driver.Existing = "", driver.OfPools()
	}
	needs, err := plan.NewAs(ctx, as, p.prober, t.node, driver.Pools, driver.Existing)
	if needs == nil {
		return result{err: err}
	}
	p.reporter.reportDropped(ctx, t.node, needs.Dropped)
	if err != nil || needs.Empty() {
		return result{fitted: needs.Fitted, err: err}
	}
	if t.standby {
		return result{behind: true}
	}
	if yields {
		return result{err: plan.NewOwnedError(p.owner.Installation(), t.key, driver.Existing, owner)}
	}
	if wait := p.writer.backoff.wait(t.key); wait > 0 {
		klog.FromContext(ctx).Info("Others change the slices as well, waiting; look for another kwok-dra", "of", t.key, "wait", wait)
		p.loop.AddAfter(t.key, wait)
		return result{behind: true}
	}
	if err := p.writer.apply(ctx, t.key, needs); err != nil {
		p.prober.doubt(err)
		return result{err: err}
	}
	if owner != "" {
		p.taken.add(t.key, driver.Pools[0].Driver, owner)
	}
	klog.FromContext(ctx).V(2).Info("Brought slices up to date", "of", t.key,
		"created", len(needs.Create), "updated", len(needs.Update), "deleted", len(needs.Delete))
	return result{wrote: true, fitted: needs.Fitted}
}
