package plan

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/kwok-dra/kwok-dra/internal/config"
	"github.com/kwok-dra/kwok-dra/internal/devices"
	"github.com/kwok-dra/kwok-dra/internal/observe/facts"
	"github.com/kwok-dra/kwok-dra/internal/observe/lifecycle"
)

// Desired is what a node, or a pool that nodes share, should have. The zero value is nothing.
type Desired struct {
	Pools []devices.Pool
	// Templates make the pools, or will once their driver Pods run.
	Templates []*devices.Template
	Excluded
	// Suspended has the drivers whose slices stay as they are, each with the cause.
	Suspended map[string]error
	// Retained has those slices of suspended drivers that stay because the plugin of the driver is gone or starting, by
	// the template that may have made them.
	Retained map[*devices.Template][]*facts.Slice
	// ForNext is the Previous of the node's next View.
	ForNext Previous
	// Confirm says that slices are about to go because the cache has no driver Pod: plan again with the driver Pods
	// that the API server has.
	Confirm bool
	// Wait is how long until the next retained slices may go, or 0.
	Wait time.Duration

	// taints is what is wrong with the node's annotation of device taints.
	taints error
}

// Excluded has the templates that make no pool, and why.
type Excluded struct {
	// Hidden maps each template to the one of a higher priority that takes its place.
	Hidden map[*devices.Template]*devices.Template
	// Refused are documents that clash with others, and templates whose pool is another node's.
	Refused []devices.Refusal
	// Failed are templates that cannot be rendered for a driver Pod.
	Failed map[*devices.Template]error
}

// Previous is what the last plan for a node found. The zero value is right after a start.
type Previous struct {
	// nodeUID distinguishes the node from an earlier one of the same name.
	nodeUID types.UID
	// pools are those that should have existed.
	pools []facts.PoolID
	// podDrivers are the drivers that ran in Pods. lostSince says since when those that still have slices have no
	// connection.
	podDrivers []string
	lostSince  map[string]time.Time
}

// View is a snapshot of a node and of what its pools depend on.
type View struct {
	Set  *config.Set
	Node *corev1.Node
	// Existing are the slices of the node.
	Existing []*facts.Slice
	// Previous is the ForNext of the node's last plan.
	Previous Previous
	// Pods lists the driver Pods on the node; nil means that there are none. IsLive says that they come from the API
	// server, and not from a cache that may lag.
	Pods   devices.Pods
	IsLive bool
	Now    time.Time
}

// nodePlan is a View with what follows from it for all drivers.
type nodePlan struct {
	*View

	object *lifecycle.Object
	bound  devices.Bound
	taints devices.Taints
	// previous is empty if the last plan was for an earlier node of that name.
	previous Previous
	// hasDriverPods says that templates publish only while their driver Pods run.
	hasDriverPods bool
	// rendered are the pools of the node, those that should not exist now included.
	rendered []devices.Pool
}

// DesiredPools plans the pools of a node. A problem with one driver's templates does not touch the others.
func DesiredPools(ctx context.Context, v *View) Desired {
	n := &nodePlan{View: v, object: lifecycle.NewObject(v.Node), bound: devices.Bind(v.Set.Templates, v.Node, v.Pods)}
	if v.Previous.nodeUID == v.Node.UID {
		n.previous = v.Previous
	}
	n.hasDriverPods = slices.ContainsFunc(v.Set.Templates, func(t *devices.Template) bool { return t.DriverPod != nil })
	selected := devices.SelectForNode(n.bound.Templates, v.Node)
	byDriver := selected.ByDriver
	d := Desired{
		Templates: slices.Concat(n.bound.Absent, n.bound.Unknown),
		Excluded:  Excluded{Hidden: selected.Hidden, Failed: n.bound.Failed},
		Suspended: map[string]error{}, Retained: map[*devices.Template][]*facts.Slice{},
	}
	n.taints, d.taints = devices.TaintsOf(n.object)
	for _, driver := range slices.Sorted(maps.Keys(byDriver)) {
		if err := n.addDriver(ctx, &d, byDriver[driver]); err != nil {
			d.Suspended[driver] = err
		}
	}
	if d.taints == nil {
		d.taints = n.taints.Missing(n.rendered, d.Suspended)
	}
	if n.hasDriverPods {
		n.retainLostDrivers(ctx, &d, byDriver)
	}
	if len(v.Set.Unsettled) > 0 {
		// Devices that no document in force makes, or has made since the process began, may come from a document that
		// is refused.
		for _, slice := range v.Existing {
			if slices.Contains(n.previous.pools, slice.PoolID) || d.Suspended[slice.Driver] != nil {
				continue
			}
			i := slices.IndexFunc(n.rendered, func(p devices.Pool) bool { return poolIDOf(&p) == slice.PoolID })
			if i < 0 || !sets.New(facts.NamesOf(n.rendered[i].Devices).List()...).HasAll(slice.Devices.List()...) {
				d.Suspended[slice.Driver] = stayUntilSettled(v.Set.Unsettled[0])
			}
		}
	}
	n.rememberPools(&d)
	return d
}

// addDriver adds those pools of a driver's templates that should exist now. The error is why that is unknown.
func (n *nodePlan) addDriver(ctx context.Context, d *Desired, templates []*devices.Template) error {
	for _, t := range templates {
		if t.SharedPool() == "" {
			d.Templates = append(d.Templates, t)
		}
	}
	if d.taints != nil {
		return d.taints // devices would look healthy that should be tainted
	}
	pools, refused, err := devices.PoolsForNode(templates, n.object, n.taints)
	d.Refused = append(d.Refused, refused...)
	n.rendered = append(n.rendered, pools...)
	if err != nil {
		return err
	}
	var selected []devices.Pool
	for i := range pools {
		pool := &pools[i]
		// A pool counts as published if it should have existed a moment ago, even if someone has deleted its last slice
		// since, or, after a restart, if any slice of it exists. Slices of another node of the same name have other
		// names: the hash in the name of a slice goes with the index that it begins with.
		isPublished := slices.Contains(n.previous.pools, poolIDOf(pool)) || slices.ContainsFunc(n.Existing, func(o *facts.Slice) bool {
			var index int
			_, err := fmt.Sscanf(o.GetName(), "%05x-", &index)
			return err == nil && o.PoolID == poolIDOf(pool) && sliceName(n.Node, pool, index) == o.GetName()
		})
		// What a driver Pod publishes is unknown until it is Ready.
		isStarting := slices.ContainsFunc(pool.Templates, func(t *devices.Template) bool { return !t.Pod.Ready })
		exists, err := shouldExist(ctx, n.Set, n.object, pool.Templates, isPublished || isStarting)
		if err != nil {
			return fmt.Errorf("pool %s: %w", pool.Name, err)
		}
		if exists && !isStarting {
			selected = append(selected, *pool)
		}
	}
	if n.hasDriverPods {
		if err := n.retainUntilStarted(ctx, d, templates); err != nil {
			return err
		}
	}
	d.Pools = append(d.Pools, selected...)
	return nil
}

// SharedKey is the key of the pool of a template whose pool nodes share.
func SharedKey(t *devices.Template) facts.SlicesKey {
	return facts.SlicesKey{Driver: t.Driver, Pool: t.SharedPool()}
}

// DesiredShared plans the pool of a template that nodes share. It should exist if a node requires it; unknown is why
// that could not be determined, or nil.
func DesiredShared(t *devices.Template, required bool, unknown error) Desired {
	d := Desired{Templates: []*devices.Template{t}, Suspended: map[string]error{}}
	if required {
		var pool *devices.Pool
		if pool, unknown = t.NewSharedPool(); unknown == nil {
			d.Pools = []devices.Pool{*pool}
		}
	}
	if unknown != nil {
		d.Suspended[t.Driver] = unknown
	}
	return d
}

// quietError is a cause that is not reported as a problem of a template: it is expected to pass, or is reported
// elsewhere.
type quietError struct{ error }

// stayUntilSettled is the cause of slices that stay as they are until another problem, which is reported elsewhere, is
// solved.
func stayUntilSettled(problem error) error {
	return quietError{fmt.Errorf("slices stay as they are until this is settled: %w", problem)}
}

// rememberPools notes which pools should exist. Those of the last plan stay if their driver is suspended or some of
// their slices are left.
func (n *nodePlan) rememberPools(d *Desired) {
	next := Previous{nodeUID: n.Node.UID, pools: make([]facts.PoolID, 0, len(d.Pools)), lostSince: d.ForNext.lostSince}
	for i := range d.Pools {
		if pool := &d.Pools[i]; d.Suspended[pool.Driver] == nil {
			// The name is a part of all that was rendered, which is not to stay in memory.
			next.pools = append(next.pools, facts.PoolID{Driver: pool.Driver, Pool: strings.Clone(pool.Name)})
		}
	}
	for _, id := range n.previous.pools {
		isLeft := slices.ContainsFunc(n.Existing, func(o *facts.Slice) bool { return o.PoolID == id })
		if (d.Suspended[id.Driver] != nil || isLeft) && !slices.Contains(next.pools, id) {
			next.pools = append(next.pools, id)
		}
	}
	for _, t := range n.bound.Templates {
		if t.DriverPod != nil {
			next.podDrivers = append(next.podDrivers, t.Driver)
		}
	}
	for _, driver := range n.previous.podDrivers {
		if !slices.Contains(next.podDrivers, driver) && len(n.slicesOf(driver)) > 0 {
			next.podDrivers = append(next.podDrivers, driver)
		}
	}
	d.ForNext = next
}

// Problems are the errors to report, by cause: template or annotation. Those of the annotation are reported once, not
// for each driver that it suspends.
func (d *Desired) Problems() map[string]error {
	var templates []error
	for _, driver := range slices.Sorted(maps.Keys(d.Suspended)) {
		_, isQuiet := errors.AsType[quietError](d.Suspended[driver])
		if !isQuiet && !errors.Is(d.Suspended[driver], d.taints) {
			templates = append(templates, fmt.Errorf("driver %s: %w", driver, d.Suspended[driver]))
		}
	}
	for _, refusal := range d.Refused {
		templates = append(templates, refusal.Err)
	}
	byName := func(a, b *devices.Template) int { return cmp.Compare(a.Name, b.Name) }
	for _, t := range slices.SortedFunc(maps.Keys(d.Failed), byName) {
		templates = append(templates, d.Failed[t])
	}
	problems := map[string]error{"template": errors.Join(templates...), "annotation": d.taints}
	maps.DeleteFunc(problems, func(_ string, err error) bool { return err == nil })
	return problems
}

// Hides says why a template does not count.
func Hides(t, by *devices.Template) string {
	return fmt.Sprintf("template %s is hidden by template %s of the same driver, %s, whose priority is %d and not %d", t.Name, by.Name, t.Driver, by.Priority, t.Priority)
}

// Requires reports whether a node has the pool of a template that nodes share exist, by the rules by which it has its
// own pools.
func Requires(ctx context.Context, set *config.Set, node *corev1.Node, t *devices.Template, isPublished bool) (bool, error) {
	if !slices.Contains(devices.SelectForNode(set.Templates, node).ByDriver[t.Driver], t) {
		return false, nil
	}
	return shouldExist(ctx, set, lifecycle.NewObject(node), []*devices.Template{t}, isPublished)
}

// shouldExist reports whether a pool should exist. A pool of several templates is published when publishWhen of each
// matches, remains when that stops matching, and is retired when retireWhen of any matches.
func shouldExist(ctx context.Context, set *config.Set, node *lifecycle.Object, templates []*devices.Template, isPublished bool) (bool, error) {
	for _, t := range templates {
		if isRetired, err := set.RetireWhen(t).Matches(ctx, node); err != nil {
			return false, fmt.Errorf("template %s: %w", t.Name, err)
		} else if isRetired {
			return false, nil
		}
	}
	if isPublished {
		return true, nil
	}
	for _, t := range templates {
		if publish, err := set.PublishWhen(t).Matches(ctx, node); err != nil {
			return false, fmt.Errorf("template %s: %w", t.Name, err)
		} else if !publish {
			return false, nil
		}
	}
	return true, nil
}

// DriverState is what a driver's slices should be, and what they are.
type DriverState struct {
	Pools    []devices.Pool
	Existing []*facts.Slice
}

// ByDriver groups the pools and the slices that exist by driver, without suspended drivers.
func (d *Desired) ByDriver(existing []*facts.Slice) map[string]DriverState {
	drivers := map[string]DriverState{}
	for _, pool := range d.Pools {
		state := drivers[pool.Driver]
		state.Pools = append(state.Pools, pool)
		drivers[pool.Driver] = state
	}
	for _, slice := range existing {
		state := drivers[slice.Driver]
		state.Existing = append(state.Existing, slice)
		drivers[slice.Driver] = state
	}
	maps.DeleteFunc(drivers, func(driver string, _ DriverState) bool { return d.Suspended[driver] != nil })
	return drivers
}
