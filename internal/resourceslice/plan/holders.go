package plan

import (
	"cmp"
	"fmt"
	"slices"
	"time"

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

// checkPoolName refuses a pool if an earlier node has slices of it, or nodes that share it have: the scheduler
// identifies a device by driver, pool and name, and would take devices of both for the same. As between documents that
// clash, it is the objects that say who has the pool, so all replicas agree. A node of another installation keeps its
// pool too; but if both nodes have published it, neither can know what the other does, and both would give it up again
// and again.
func (n *nodePlan) checkPoolName(pool *devices.Pool) error {
	if n.Holders == nil {
		return nil
	}
	id := poolIDOf(pool)
	isPublished := slices.ContainsFunc(n.Existing, func(o *facts.Slice) bool { return o.PoolID == id })
	for holder := range n.Holders(id) {
		order := cmp.Or(holder.Created.Compare(n.Node.CreationTimestamp.Time), cmp.Compare(holder.Node, n.Node.Name))
		if holder.IsUnknown && !isPublished || !holder.IsUnknown && order < 0 {
			return n.newTakenError(pool, holder)
		}
	}
	return nil
}

// newTakenError is the error of a pool whose name another holder has.
func (n *nodePlan) newTakenError(pool *devices.Pool, by Holder) error {
	where := "on node " + by.Node
	if by.Node == "" {
		where = "that nodes share"
	}
	t := pool.Templates[0]
	return fmt.Errorf("template %s: poolName %q yields %s on node %s, the name of the pool of driver %s %s: use a name that differs from node to node, "+
		"for example with {{ .Node.metadata.name }}, or set sharedWith for one pool that nodes share; the pool is left out on this node",
		t.Name, t.PoolName, pool.Name, n.Node.Name, pool.Driver, where)
}
