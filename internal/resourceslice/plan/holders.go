package plan

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/kwok-dra/kwok-dra/internal/devices"
	"github.com/kwok-dra/kwok-dra/internal/observe/facts"
)

// Holder is a node that has slices of a pool, or nodes that share the pool.
type Holder struct {
	// Node is empty if nodes share the pool.
	Node string
	// Created is when the node was created. It is zero if nodes share the pool.
	Created time.Time
	// IsUnknown says that the node is gone, or another installation's.
	IsUnknown bool
}

// NewHolder makes the Holder of a slice, given the slice's node, which is nil if it is not known.
func NewHolder(slice *facts.Slice, node *corev1.Node) Holder {
	holder := Holder{Node: slice.Node, IsUnknown: slice.Node != "" && node == nil}
	if node != nil {
		holder.Created = node.CreationTimestamp.Time
	}
	return holder
}

// RefuseHeldPools refuses the pools that an earlier node has slices of, or that nodes share; slices of them that the node has
// are obsolete then. Others has, by pool, who else than the node has slices of it. The scheduler identifies a device by driver,
// pool and name, and would take devices of both for the same. As between documents that clash, it is the objects that say who
// has the pool, so all replicas agree. A node of another installation keeps its pool too; but if both nodes have published it,
// neither can know what the other does, and both would give it up again and again.
func (d *Desired) RefuseHeldPools(v *View, others map[facts.PoolID][]Holder) {
	d.Pools = slices.DeleteFunc(d.Pools, func(pool devices.Pool) bool {
		id := poolIDOf(&pool)
		isPublished := slices.ContainsFunc(v.Existing, func(o *facts.Slice) bool { return o.PoolID == id })
		i := slices.IndexFunc(others[id], func(holder Holder) bool {
			if holder.IsUnknown {
				return !isPublished
			}
			return cmp.Or(holder.Created.Compare(v.Node.CreationTimestamp.Time), cmp.Compare(holder.Node, v.Node.Name)) < 0
		})
		if i < 0 {
			return false
		}
		d.Refused = append(d.Refused, devices.Refusal{Templates: pool.Templates, Err: newHeldError(v.Node, &pool, others[id][i])})
		if !isPublished {
			d.ForNext.pools = slices.DeleteFunc(d.ForNext.pools, func(known facts.PoolID) bool { return known == id })
		}
		return true
	})
}

// newHeldError is the error of a pool whose name another holder has.
func newHeldError(node *corev1.Node, pool *devices.Pool, by Holder) error {
	where := "on node " + by.Node
	if by.Node == "" {
		where = "that nodes share"
	}
	t := pool.Templates[0]
	return fmt.Errorf("template %s: poolName %q yields %s on node %s, the name of the pool of driver %s %s: use a name that differs from node to node, "+
		"for example with {{ .Node.metadata.name }}, or set sharedWith for one pool that nodes share; the pool is left out on this node",
		t.Name, t.PoolName, pool.Name, node.Name, pool.Driver, where)
}
