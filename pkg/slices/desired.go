package slices

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kwok-dra/kwok-dra/pkg/config"
	"github.com/kwok-dra/kwok-dra/pkg/devices"
	"github.com/kwok-dra/kwok-dra/pkg/lifecycle"
)

// desired is what a node should have.
type desired struct {
	// templates are those that count on the node and give it pools of its own.
	templates []*devices.Template
	pools     []devices.Pool
	// held are the drivers whose pools could not be worked out, with the cause.
	// Their slices stay as they are.
	held map[string]error
	// refused are documents that clash with others, of which nothing is published.
	refused []devices.Refusal
	// hidden are templates that select the node, with those of a higher priority.
	hidden map[*devices.Template]*devices.Template
	// taints is what is wrong with the node's annotation of device taints.
	taints error
}

// poolID identifies a pool of a node, and of none that had its name before.
type poolID struct {
	node         types.UID
	driver, name string
}

// desire works out the pools of a node. Known are those that were to exist when
// it was last asked, and a problem with one driver's templates does not touch
// the others.
func desire(ctx context.Context, set *config.Set, node *corev1.Node, existing []*Observed, known []poolID) desired {
	result := desired{held: map[string]error{}}
	object := lifecycle.NodeObject(node)
	byDriver := devices.ForDriver(set.Templates, node)
	for _, driver := range slices.Sorted(maps.Keys(byDriver)) {
		result.addTemplates(byDriver[driver])
	}
	result.hidden = devices.Hidden(set.Templates, byDriver, node)
	taints, err := devices.TaintsOf(object)
	if err != nil {
		result.holdAll(byDriver, err)
		result.holdUnsettled(set, node, nil, gate{node: node, existing: existing, known: known})
		return result
	}
	var all []devices.Pool
	for _, driver := range slices.Sorted(maps.Keys(byDriver)) {
		pools, refused, err := devices.Standing(byDriver[driver], object)
		if err != nil {
			result.held[driver] = err
			continue
		}
		result.refused = append(result.refused, refused...)
		all = append(all, pools...)
		wanted, err := inForce(ctx, set, pools, gate{node: node, object: object, existing: existing, known: known})
		if err != nil {
			result.held[driver] = err
			continue
		}
		result.pools = append(result.pools, wanted...)
	}
	result.taints = taints.Missing(all, result.held)
	result.holdUnsettled(set, node, all, gate{node: node, existing: existing, known: known})
	return result
}

// unsettled is why a driver's slices stay as they are: a document that may have
// made some of them is refused.
type unsettled struct{ error }

// holdUnsettled keeps the slices of each driver that has devices which no document
// in force makes, or has made since the process began: they may be of the document.
func (d *desired) holdUnsettled(set *config.Set, node *corev1.Node, made []devices.Pool, g gate) {
	if len(set.Unsettled) == 0 {
		return
	}
	for _, o := range g.existing {
		if slices.Contains(g.known, poolID{node.UID, o.Driver, o.Pool.Name}) || d.held[o.Driver] != nil {
			continue
		}
		i := slices.IndexFunc(made, func(p devices.Pool) bool { return p.Driver == o.Driver && p.Name == o.Pool.Name })
		if i < 0 || !hasAll(&made[i], o) {
			d.held[o.Driver] = unsettled{fmt.Errorf("slices stay as they are until this is settled: %w", set.Unsettled[0])}
		}
	}
}

func hasAll(pool *devices.Pool, o *Observed) bool {
	return !slices.ContainsFunc(o.Names.List(), func(name string) bool {
		return !slices.ContainsFunc(pool.Devices, func(d resourcev1.Device) bool { return d.Name == name })
	})
}

// holdAll keeps everything on the node as it is: without the taints, devices
// would look healthy that should be tainted.
func (d *desired) holdAll(byDriver map[string][]*devices.Template, taints error) {
	d.taints = taints
	for driver := range byDriver {
		d.held[driver] = taints
	}
}

func (d *desired) addTemplates(templates []*devices.Template) {
	for _, t := range templates {
		if t.SharedPool() == "" {
			d.templates = append(d.templates, t)
		}
	}
}

// problems are the errors to report, by cause. Those of the annotation are reported
// once, not for each driver that it holds.
func (d *desired) problems() map[string]error {
	var templates []error
	for _, driver := range slices.Sorted(maps.Keys(d.held)) {
		_, told := errors.AsType[unsettled](d.held[driver]) // to the document
		if !told && !errors.Is(d.held[driver], d.taints) {
			templates = append(templates, fmt.Errorf("driver %s: %w", driver, d.held[driver]))
		}
	}
	for _, refusal := range d.refused {
		templates = append(templates, refusal.Err)
	}
	problems := map[string]error{}
	if len(templates) > 0 {
		problems["template"] = errors.Join(templates...)
	}
	if d.taints != nil {
		problems["annotation"] = d.taints
	}
	return problems
}

// gate decides whether a pool of a node should exist now.
type gate struct {
	node     *corev1.Node
	object   *lifecycle.Object
	existing []*Observed
	known    []poolID
}

func inForce(ctx context.Context, set *config.Set, pools []devices.Pool, g gate) ([]devices.Pool, error) {
	var wanted []devices.Pool
	for i := range pools {
		open, err := g.open(ctx, set, pools[i].Templates, func() bool { return g.published(&pools[i]) })
		if err != nil {
			return nil, fmt.Errorf("pool %s: %w", pools[i].Name, err)
		}
		if open {
			wanted = append(wanted, pools[i])
		}
	}
	return wanted, nil
}

// open reports whether the pool should exist. For templates that form one pool it
// is published when publishWhen of each of them matches, remains when that stops
// matching, and is retired when retireWhen of any one matches.
func (g gate) open(ctx context.Context, set *config.Set, templates []*devices.Template, published func() bool) (bool, error) {
	for _, t := range templates {
		retire, err := set.RetireWhen(t).Matches(ctx, g.object)
		if err != nil || retire {
			return false, wrapTemplate(t, err)
		}
	}
	if published() {
		return true, nil
	}
	for _, t := range templates {
		publish, err := set.PublishWhen(t).Matches(ctx, g.object)
		if err != nil || !publish {
			return false, wrapTemplate(t, err)
		}
	}
	return true, nil
}

func wrapTemplate(t *devices.Template, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("template %s: %w", t.Name, err)
}

// published reports whether the pool is published: it should have existed a moment
// ago, even if someone has deleted its last slice since, or, after a restart, any
// slice of it exists. Slices of another node of the same name have other names.
func (g gate) published(pool *devices.Pool) bool {
	if slices.Contains(g.known, poolID{g.node.UID, pool.Driver, pool.Name}) {
		return true
	}
	h := nodeHolder(g.node)
	return slices.ContainsFunc(g.existing, func(o *Observed) bool {
		return o.Driver == pool.Driver && o.Pool.Name == pool.Name && h.isOf(o.Name, pool)
	})
}

// isOf reports whether a name is that of a slice of the pool: it has the hash that
// goes with the index that it begins with.
func (h holder) isOf(name string, pool *devices.Pool) bool {
	var index int
	_, err := fmt.Sscanf(name, "%05x-", &index)
	return err == nil && h.nameOf(pool, index) == name
}

// poolIDs are the pools to remember: those that should exist, and of those known the
// ones of drivers that are held and the ones of which slices are left.
func (d *desired) poolIDs(node *corev1.Node, existing []*Observed, known []poolID) []poolID {
	ids := make([]poolID, 0, len(d.pools))
	for i := range d.pools {
		if d.held[d.pools[i].Driver] != nil {
			continue
		}
		// The name is part of all that was rendered, which is not to be kept.
		ids = append(ids, poolID{node.UID, d.pools[i].Driver, strings.Clone(d.pools[i].Name)})
	}
	for _, id := range known {
		left := slices.ContainsFunc(existing, func(o *Observed) bool { return o.Driver == id.driver && o.Pool.Name == id.name })
		if (d.held[id.driver] != nil || left) && !slices.Contains(ids, id) {
			ids = append(ids, id)
		}
	}
	return ids
}
