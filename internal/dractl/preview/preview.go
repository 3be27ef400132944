package preview

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"

	"github.com/kwok-dra/kwok-dra/internal/config"
	"github.com/kwok-dra/kwok-dra/internal/controller/installation"
	"github.com/kwok-dra/kwok-dra/internal/devices"
	"github.com/kwok-dra/kwok-dra/internal/extensions/driverpods"
	"github.com/kwok-dra/kwok-dra/internal/observe/facts"
	"github.com/kwok-dra/kwok-dra/internal/observe/lifecycle"
	"github.com/kwok-dra/kwok-dra/internal/resourceslice/features"
	"github.com/kwok-dra/kwok-dra/internal/resourceslice/plan"
	"github.com/kwok-dra/kwok-dra/pkg/api/v1alpha1"
)

// AnyInstallation stands for any installation: each recorded object belongs to another one.
const AnyInstallation installation.ID = "unknown"

// Cluster is what the sidecar works from.
type Cluster struct {
	Config *config.Set
	// Installation is what the sidecar is of. Without it, nothing is another's.
	Installation installation.ID
	// Nodes are the fake nodes.
	Nodes []*corev1.Node
	// Others reports whether a node that is not among them may be someone else's, whose
	// slices stay. It is nil where none may be.
	Others func(node string) bool
	// Pods are the driver Pods on a node. It is nil where there are none.
	Pods func(node *corev1.Node) driverpods.Listed
	// Slices are all of the cluster. Those of kwok-dra count, and those that were before
	// someone removed the label.
	Slices []*resourcev1.ResourceSlice
}

// Preview is what the sidecar would write, in the order of the nodes, and last for
// pools that nodes share.
type Preview struct {
	plan.Writes
	// Problems are what keeps slices as they are; each names its node or pool.
	Problems []error
	// Hidden are templates that have no effect on nodes that they select.
	Hidden []Hidden
	// Dropped are the fields that the API server drops.
	Dropped []features.Dropped

	cluster Cluster
	server  features.Server
	// live are all slices by name.
	live map[string]*resourcev1.ResourceSlice
	// inPool are the slices that the sidecar's cache has, or would have by now.
	inPool map[facts.PoolID][]*facts.Slice
}

// New makes a Preview. The error is that of the server.
func New(ctx context.Context, server features.Server, cluster Cluster) (*Preview, error) {
	p := &Preview{cluster: cluster, server: server, live: map[string]*resourcev1.ResourceSlice{}, inPool: map[facts.PoolID][]*facts.Slice{}}
	existing := p.observeSlices()
	// Of nodes with one pool name the first created has the pool.
	byAge := slices.SortedStableFunc(slices.Values(cluster.Nodes), func(a, b *corev1.Node) int {
		return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), cmp.Compare(a.Name, b.Name))
	})
	for _, node := range byAge {
		key := facts.SlicesKey{Node: node.Name}
		view := &plan.View{Set: cluster.Config, Node: node, Existing: existing[key], Now: time.Now()}
		if cluster.Pods != nil {
			view.Pods = cluster.Pods(node).BindTemplate
		}
		desired := plan.DesiredPools(ctx, view)
		desired.RefuseHeldPools(view, p.listHolders(key, desired.Pools))
		for _, t := range slices.SortedFunc(maps.Keys(desired.Hidden), func(a, b *devices.Template) int { return cmp.Compare(a.Name, b.Name) }) {
			i := slices.IndexFunc(p.Hidden, func(h Hidden) bool { return h.Template == t && h.By == desired.Hidden[t] })
			if i < 0 {
				i = len(p.Hidden)
				p.Hidden = append(p.Hidden, Hidden{Template: t, By: desired.Hidden[t]})
			}
			p.Hidden[i].Nodes++
		}
		p.addProblems(key, maps.Values(desired.Problems()))
		if err := p.addWrites(ctx, key, node, &desired, existing[key]); err != nil {
			return nil, err
		}
		delete(existing, key)
	}
	for _, t := range cluster.Config.Shared() {
		key := plan.SharedKey(t)
		if err := p.addShared(ctx, key, t, existing[key]); err != nil {
			return nil, err
		}
		delete(existing, key)
	}
	return p, p.retireSlices(ctx, existing)
}

// observeSlices returns what the sidecar's cache would have.
func (p *Preview) observeSlices() map[facts.SlicesKey][]*facts.Slice {
	existing := map[facts.SlicesKey][]*facts.Slice{}
	for _, slice := range p.cluster.Slices {
		p.live[slice.Name] = slice
		if slice.Labels[v1alpha1.ManagedByLabel] == v1alpha1.ManagedByValue {
			observed := facts.ObserveSlice(slice)
			existing[observed.Key()] = append(existing[observed.Key()], observed)
			p.inPool[observed.PoolID] = append(p.inPool[observed.PoolID], observed)
		}
	}
	return existing
}

// listHolders returns who else than a node has slices of its pools, by pool.
func (p *Preview) listHolders(key facts.SlicesKey, pools []devices.Pool) map[facts.PoolID][]plan.Holder {
	all := map[facts.PoolID][]plan.Holder{}
	for i := range pools {
		id := facts.PoolID{Driver: pools[i].Driver, Pool: pools[i].Name}
		for _, slice := range p.inPool[id] {
			if slice.Key() == key {
				continue
			}
			var node *corev1.Node
			if i := slices.IndexFunc(p.cluster.Nodes, func(node *corev1.Node) bool { return node.Name == slice.Node }); i >= 0 {
				node = p.cluster.Nodes[i]
			}
			all[id] = append(all[id], plan.NewHolder(slice, node))
		}
	}
	return all
}

func (p *Preview) addDropped(one features.Dropped) {
	if !slices.Contains(p.Dropped, one) {
		p.Dropped = append(p.Dropped, one)
	}
}

// addShared adds what a pool that nodes share needs, unless it is another installation's.
func (p *Preview) addShared(ctx context.Context, key facts.SlicesKey, t *devices.Template, existing []*facts.Slice) error {
	as := p.cluster.Installation
	own, another := plan.OwnShared(as, existing)
	var required bool
	var unknown error
	for _, node := range p.cluster.Nodes {
		isRequired, err := plan.Requires(ctx, p.cluster.Config, node, t, len(own) > 0)
		if isRequired {
			required, unknown = true, nil
			break
		}
		unknown = errors.Join(unknown, err)
	}
	if required && another != "" {
		p.Problems = append(p.Problems, plan.NewOwnedError(as, key, existing, another))
		return p.addWrites(ctx, key, nil, &plan.Desired{}, own)
	}
	desired := plan.DesiredShared(t, required, unknown)
	p.addProblems(key, maps.Values(desired.Suspended))
	return p.addWrites(ctx, key, nil, &desired, own)
}

func (p *Preview) addProblems(key facts.SlicesKey, problems iter.Seq[error]) {
	for problem := range problems {
		p.Problems = append(p.Problems, fmt.Errorf("%s: %w", key, problem))
	}
}

// addWrites adds what one node or pool needs, as the sidecar would write it.
func (p *Preview) addWrites(ctx context.Context, key facts.SlicesKey, node *corev1.Node, desired *plan.Desired, existing []*facts.Slice) error {
	as, drivers := p.cluster.Installation, desired.ByDriver(existing)
	if as == AnyInstallation && !key.IsShared() { // the slices of its nodes are its own
		as = ""
	}
	for _, driver := range slices.Sorted(maps.Keys(drivers)) {
		fitted, err := features.Fit(ctx, p.server, drivers[driver].Pools)
		if err != nil {
			return err
		}
		needs, err := plan.New(as, node, &fitted, drivers[driver].Existing)
		if err == nil && slices.ContainsFunc(needs.Create, func(slice *resourcev1.ResourceSlice) bool {
			live := p.live[slice.Name]
			return live != nil && live.Spec.Pool.Generation >= slice.Spec.Pool.Generation
		}) {
			needs, err = p.takeOver(needs)
		}
		if _, ok := errors.AsType[*plan.LayoutError](err); ok {
			p.addProblems(key, slices.Values([]error{err}))
			continue
		}
		if err != nil {
			return err
		}
		p.Delete = append(p.Delete, needs.Delete...)
		p.Update = append(p.Update, needs.Update...)
		p.Create = append(p.Create, needs.Create...)
		for _, slice := range needs.Delete {
			p.inPool[slice.PoolID] = slices.DeleteFunc(p.inPool[slice.PoolID], func(o *facts.Slice) bool { return o == slice })
		}
		for _, slice := range needs.Create {
			observed := facts.ObserveSlice(slice)
			p.inPool[observed.PoolID] = append(p.inPool[observed.PoolID], observed)
		}
		for _, one := range fitted.Dropped {
			p.addDropped(one)
		}
	}
	return nil
}

// takeOver plans again with the slices that exist.
func (p *Preview) takeOver(refused *plan.Plan) (*plan.Plan, error) {
	live := map[string]*resourcev1.ResourceSlice{}
	next, err := refused.TakeOver(live)
	for err == nil && next.Need != nil {
		for _, name := range next.Need.Slices {
			live[name] = p.live[name]
		}
		next, err = refused.TakeOver(live)
	}
	return next, err
}

// retireSlices deletes the slices that belong to no node and no template any more.
func (p *Preview) retireSlices(ctx context.Context, existing map[facts.SlicesKey][]*facts.Slice) error {
	left := slices.SortedFunc(maps.Keys(existing), func(a, b facts.SlicesKey) int {
		return cmp.Or(cmp.Compare(a.Node, b.Node), cmp.Compare(a.Driver, b.Driver), cmp.Compare(a.Pool, b.Pool))
	})
	as := p.cluster.Installation
	for _, key := range left {
		isRecorded := as != "" && slices.Contains(plan.InstallationsOf(existing[key]), as)
		if !key.IsShared() && !isRecorded && p.cluster.Others != nil && p.cluster.Others(key.Node) {
			continue
		}
		if err := p.addWrites(ctx, key, nil, &plan.Desired{}, plan.OwnSlices(as, existing[key])); err != nil {
			return err
		}
	}
	return nil
}

// Hidden is a template that another one hides on some nodes.
type Hidden struct {
	Template, By *devices.Template
	// Nodes is on how many.
	Nodes int
}

// String says which template hides which, and where.
func (h Hidden) String() string {
	nodes := "1 node"
	if h.Nodes != 1 {
		nodes = fmt.Sprintf("%d nodes", h.Nodes)
	}
	return plan.Hides(h.Template, h.By) + ", on " + nodes
}

// OthersOf returns the Others of a Cluster, given the nodes that a selection has listed: with a narrow one, all other nodes.
func OthersOf(managed *lifecycle.ManagedNodes, listed []*corev1.Node) func(node string) bool {
	names := map[string]bool{}
	for _, node := range listed {
		names[node.Name] = true
	}
	return func(name string) bool { return managed.Hides(name) && !names[name] }
}
