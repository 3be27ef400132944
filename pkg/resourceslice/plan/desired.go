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

	"github.com/kwok-dra/kwok-dra/pkg/config"
	"github.com/kwok-dra/kwok-dra/pkg/devices"
	"github.com/kwok-dra/kwok-dra/pkg/lifecycle"
	"github.com/kwok-dra/kwok-dra/pkg/observe/facts"
)

// Desired is what a node, or a pool that nodes share, should have. The zero value is
// nothing.
type Desired struct {
	// Templates are those that make the pools, and those whose pools may come.
	Templates []*devices.Template
	Pools     []devices.Pool
	// Held are the drivers whose pools could not be worked out, with the cause.
	// Their slices stay as they are.
	Held map[string]error
	// Hidden are templates that select the node, with those of a higher priority.
	Hidden map[*devices.Template]*devices.Template
	// Refused are documents that clash with others, of which nothing is published.
	Refused []devices.Refusal
	// Known is for the next time.
	Known Known
	// Kept are slices that stay as they are while the plugin of their driver is gone or
	// starts, by the template that may have made them.
	Kept map[*devices.Template][]*facts.Slice
	// Confirm says that slices are to go since the cache has no driver Pod: plan again
	// with those that the API server has.
	Confirm bool
	// Wait is how long until the next slices are to go, or 0 where none are.
	Wait time.Duration

	// Failed are templates that cannot be rendered for a driver Pod.
	Failed map[*devices.Template]error
	// taints is what is wrong with the node's annotation of device taints.
	taints error
}

// Known are the pools that a node was to have when this was last worked out. The zero
// value is right after a start.
type Known struct {
	// node is not that of another node that had the name before.
	node  types.UID
	pools []facts.PoolID
	// played are drivers that ran in Pods, and lost is since when those that have slices
	// have no connection.
	played []string
	lost   map[string]time.Time
}

// View is what is known of a node.
type View struct {
	Set *config.Set
	// Node is the node, and Existing are its slices.
	Node     *corev1.Node
	Existing []*facts.Slice
	Known    Known
	// Pods are the driver Pods there. Where it is nil there are none. Live says that the API
	// server was asked for them, since the cache may lag.
	Pods devices.Pods
	Live bool
	Now  time.Time
}

// nodeState is what it depends on whether a pool of a node should exist now.
type nodeState struct {
	*View

	object *lifecycle.Object
	bound  devices.Bound
	known  Known
}

func newNodeState(v *View) *nodeState {
	state := &nodeState{View: v, object: lifecycle.NodeObject(v.Node)}
	if v.Known.node == v.Node.UID {
		state.known = v.Known
	}
	state.bound = devices.Bind(v.Set.Templates, v.Node, v.Pods)
	return state
}

// DesiredPools works out the pools of a node. A problem with one driver's templates
// does not touch the others.
func DesiredPools(ctx context.Context, v *View) Desired {
	state := newNodeState(v)
	templates := state.bound.Templates
	byDriver := devices.ForDriver(templates, v.Node)
	d := Desired{
		Held: map[string]error{}, Hidden: devices.Hidden(templates, byDriver, v.Node), Kept: map[*devices.Template][]*facts.Slice{},
		Templates: slices.Concat(state.bound.Absent, state.bound.Unknown), Failed: state.bound.Failed,
	}
	taints, err := devices.TaintsOf(state.object)
	d.taints = err
	var made []devices.Pool // also those that should not exist now
	for _, driver := range slices.Sorted(maps.Keys(byDriver)) {
		templates := byDriver[driver]
		d.Templates = append(d.Templates, slices.DeleteFunc(slices.Clone(templates), shared)...)
		if d.taints != nil { // devices would look healthy that should be tainted
			d.Held[driver] = d.taints
			continue
		}
		pools, refused, err := devices.Standing(templates, state.object, taints)
		d.Refused = append(d.Refused, refused...)
		made = append(made, pools...)
		if err == nil {
			pools, err = state.inForce(ctx, pools)
		}
		if err == nil {
			err = state.waiting(ctx, &d, templates)
		}
		if err != nil {
			d.Held[driver] = err
			continue
		}
		d.Pools = append(d.Pools, pools...)
	}
	if d.taints == nil {
		d.taints = taints.Missing(made, d.Held)
	}
	state.holdDown(ctx, &d, byDriver)
	d.holdUnsettled(state, made)
	d.remember(state)
	return d
}

func shared(t *devices.Template) bool { return t.SharedPool() != "" }

// SharedKey is the key of the pool of a template whose pool nodes share.
func SharedKey(t *devices.Template) facts.SlicesKey {
	return facts.SlicesKey{Driver: t.Driver, Pool: t.SharedPool()}
}

// DesiredShared works out the pool of a template that nodes share, by whether a node
// requires it, or why that is not known.
func DesiredShared(t *devices.Template, required bool, unknown error) Desired {
	d := Desired{Templates: []*devices.Template{t}, Held: map[string]error{}}
	if required {
		var pool *devices.Pool
		if pool, unknown = t.NewSharedPool(); unknown == nil {
			d.Pools = []devices.Pool{*pool}
		}
	}
	if unknown != nil {
		d.Held[t.Driver] = unknown
	}
	return d
}

// unsettled is why a driver's slices stay as they are: a document that may have
// made some of them is refused.
type unsettled struct{ error }

// holdUnsettled keeps the slices of each driver that has devices which no document
// in force makes, or has made since the process began: they may be of the document.
func (d *Desired) holdUnsettled(state *nodeState, made []devices.Pool) {
	if len(state.Set.Unsettled) == 0 {
		return
	}
	for _, o := range state.Existing {
		if slices.Contains(state.known.pools, o.PoolID()) || d.Held[o.Driver] != nil {
			continue
		}
		i := slices.IndexFunc(made, func(p devices.Pool) bool { return poolIDOf(&p) == o.PoolID() })
		if i < 0 || !hasAll(&made[i], o) {
			d.Held[o.Driver] = unsettled{fmt.Errorf("slices stay as they are until this is settled: %w", state.Set.Unsettled[0])}
		}
	}
}

func hasAll(pool *devices.Pool, o *facts.Slice) bool {
	return sets.New(facts.NamesOf(pool.Devices).List()...).HasAll(o.Devices.List()...)
}

// remember notes the pools that should exist, and of those known the ones of drivers
// that are held and the ones of which slices are left.
func (d *Desired) remember(state *nodeState) {
	d.Known = Known{node: state.Node.UID, pools: make([]facts.PoolID, 0, len(d.Pools)), played: state.played(), lost: d.Known.lost}
	for i := range d.Pools {
		if pool := &d.Pools[i]; d.Held[pool.Driver] == nil {
			// The name is part of all that was rendered, which is not to be kept.
			d.Known.pools = append(d.Known.pools, facts.PoolID{Driver: pool.Driver, Name: strings.Clone(pool.Name)})
		}
	}
	for _, id := range state.known.pools {
		left := slices.ContainsFunc(state.Existing, func(o *facts.Slice) bool { return o.PoolID() == id })
		if (d.Held[id.Driver] != nil || left) && !slices.Contains(d.Known.pools, id) {
			d.Known.pools = append(d.Known.pools, id)
		}
	}
}

// Problems are the errors to report, by cause: template or annotation. Those of the
// annotation are reported once, not for each driver that it holds.
func (d *Desired) Problems() map[string]error {
	var templates []error
	for _, driver := range slices.Sorted(maps.Keys(d.Held)) {
		_, told := errors.AsType[unsettled](d.Held[driver]) // to the document
		_, expected := errors.AsType[kept](d.Held[driver])
		if !told && !expected && !errors.Is(d.Held[driver], d.taints) {
			templates = append(templates, fmt.Errorf("driver %s: %w", driver, d.Held[driver]))
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

// inForce are those of a driver's pools that should exist now.
func (s *nodeState) inForce(ctx context.Context, pools []devices.Pool) ([]devices.Pool, error) {
	var inForce []devices.Pool
	for i := range pools {
		exists, err := shouldExist(ctx, s.Set, s.object, pools[i].Templates, s.published(&pools[i]))
		if err != nil {
			return nil, fmt.Errorf("pool %s: %w", pools[i].Name, err)
		}
		if exists {
			inForce = append(inForce, pools[i])
		}
	}
	return inForce, nil
}

// published reports whether the pool is published: it should have existed a moment
// ago, even if someone has deleted its last slice since, or, after a restart, any
// slice of it exists. Slices of another node of the same name have other names.
func (s *nodeState) published(pool *devices.Pool) bool {
	owner := ownerOf(s.Node, pool)
	return slices.Contains(s.known.pools, poolIDOf(pool)) ||
		slices.ContainsFunc(s.Existing, func(o *facts.Slice) bool { return owner.named(o, pool) })
}

// Requires reports whether a node has the pool of a template that nodes share exist,
// by the rules by which it has its own pools.
func Requires(ctx context.Context, set *config.Set, node *corev1.Node, t *devices.Template, published bool) (bool, error) {
	if !slices.Contains(devices.ForDriver(set.Templates, node)[t.Driver], t) {
		return false, nil
	}
	return shouldExist(ctx, set, lifecycle.NodeObject(node), []*devices.Template{t}, published)
}

// shouldExist reports whether a pool should exist. For templates that form one pool it
// is published when publishWhen of each of them matches, remains when that stops
// matching, and is retired when retireWhen of any one matches. What a driver Pod publishes
// is not known before it has been Ready.
func shouldExist(ctx context.Context, set *config.Set, node *lifecycle.Object, templates []*devices.Template, published bool) (bool, error) {
	retire, err := retired(ctx, set, node, templates)
	starting := slices.ContainsFunc(templates, func(t *devices.Template) bool { return !t.Started() })
	if err != nil || retire || starting {
		return false, err
	}
	if published {
		return true, nil
	}
	for _, t := range templates {
		if publish, err := set.PublishWhen(t).Matches(ctx, node); err != nil || !publish {
			return false, wrapTemplate(t, err)
		}
	}
	return true, nil
}

// retired reports whether retireWhen of any template matches.
func retired(ctx context.Context, set *config.Set, node *lifecycle.Object, templates []*devices.Template) (bool, error) {
	for _, t := range templates {
		if retire, err := set.RetireWhen(t).Matches(ctx, node); err != nil || retire {
			return retire, wrapTemplate(t, err)
		}
	}
	return false, nil
}

func wrapTemplate(t *devices.Template, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("template %s: %w", t.Name, err)
}

// DriverState is what a driver's slices should be, and what they are.
type DriverState struct {
	Pools    []devices.Pool
	Existing []*facts.Slice
}

// ByDriver are the states of the drivers that are not held.
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
	maps.DeleteFunc(drivers, func(driver string, _ DriverState) bool { return d.Held[driver] != nil })
	return drivers
}
