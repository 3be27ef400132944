package resourceslice

import (
	"context"
	"fmt"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/kwok-dra/kwok-dra/internal/config"
	"github.com/kwok-dra/kwok-dra/internal/controller/installation"
	"github.com/kwok-dra/kwok-dra/internal/observe/facts"
	"github.com/kwok-dra/kwok-dra/internal/resourceslice/plan"
)

// lateSlices is how long slices of a node that has left the selection may still come: from a write in progress, or from
// a replica that sees the node leave later.
const lateSlices = 5 * time.Minute

// retireNode deletes the slices of a node that is gone or no longer fake, as the cache and the API server say.
func (p *Publisher) retireNode(ctx context.Context, set *config.Set, t target, existing []*facts.Slice) error {
	as, mayBeForeign := p.owner.Installation(), p.caches.Nodes.MayBeForeign(t.key.Node)
	isRecorded := as != "" && slices.Contains(plan.InstallationsOf(existing), as)
	if !t.last.isManaged && !isRecorded && mayBeForeign {
		p.memory.forgetForeignWrites(t.key)
		return nil
	}
	p.enqueueSharedPools(ctx, set, t.key.Node, nil)
	p.memory.forgetContender(t.key)
	existing = plan.OwnSlices(as, existing) // another installation may act for the node
	var wait time.Duration
	p.memory.updateEntry(t.key, func(e *entry) {
		e.takenFrom, e.previous = nil, plan.Previous{}
		if !t.last.isManaged || len(existing) > 0 {
			e.emptySince = time.Time{}
			return
		}
		if e.emptySince.IsZero() {
			e.emptySince = time.Now()
		}
		// Slices may still come that only the entry tells from another installation's.
		wait = lateSlices - time.Since(e.emptySince)
		if wait <= 0 || !mayBeForeign {
			e.isManaged, e.emptySince, wait = false, time.Time{}, 0
		}
	})
	if wait > 0 {
		p.loop.AddAfter(t.key, wait)
	}
	// The cache is not enough before slices go: those that another replica has just made for a node may be seen before
	// the node. What was retired of it is remembered as long as there is a Node.
	if !t.isStandby && (len(existing) > 0 || t.last.unrecorded != nil) {
		node, err := p.client.CoreV1().Nodes().Get(ctx, t.key.Node, metav1.GetOptions{})
		switch {
		case apierrors.IsNotFound(err):
			p.memory.updateEntry(t.key, func(e *entry) { e.unrecorded = nil })
		case err != nil:
			return fmt.Errorf("get node %s: %w", t.key.Node, err)
		// Slices without a record, of a node that is not known to have been fake, may be another installation's.
		case p.caches.Nodes.Fake(node) || !t.last.isManaged && !p.memory.mayRetire(as, t.key, existing):
			return nil
		}
	}
	results := p.syncPools(ctx, t, &plan.Desired{}, existing)
	return p.reportNode(t, &plan.Desired{}, &results)
}

// mayRetire reports whether an installation may delete obsolete slices. Versions before records have left theirs
// without one: they go once. If others come without one, another installation of such a version makes them, and would
// do so for ever.
func (m *memory) mayRetire(as installation.ID, key facts.SlicesKey, existing []*facts.Slice) (mayRetire bool) {
	if as == "" || !slices.Contains(plan.InstallationsOf(existing), "") {
		return true
	}
	found := sets.New[types.UID]()
	for _, slice := range existing {
		found.Insert(slice.UID)
	}
	m.updateEntry(key, func(e *entry) {
		if e.unrecorded == nil {
			e.unrecorded = found
		}
		mayRetire = e.unrecorded.IsSuperset(found)
	})
	return mayRetire
}
