package resourceslice

import (
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/kwok-dra/kwok-dra/pkg/installation"
	"github.com/kwok-dra/kwok-dra/pkg/observe/facts"
	"github.com/kwok-dra/kwok-dra/pkg/resourceslice/plan"
)

// ownsAny reports whether any of the slices is recorded to this installation.
func (p *Publisher) ownsAny(existing []*facts.Slice) bool {
	as := p.owner.Installation()
	return as != "" && slices.Contains(plan.InstallationsOf(existing), as)
}

// mayRetire reports whether slices that are not wanted are to go. Versions before records
// have left them without one: they go once. If others come without one, another
// installation of such a version makes them, and would do so for ever.
func (p *Publisher) mayRetire(key facts.SlicesKey, existing []*facts.Slice) bool {
	if p.owner.Installation() == "" || !slices.Contains(plan.InstallationsOf(existing), "") {
		return true
	}
	found := sets.New[types.UID]()
	for _, o := range existing {
		found.Insert(o.UID)
	}
	retired, _ := p.unrecorded.LoadOrStore(key, found)
	return retired.(sets.Set[types.UID]).IsSuperset(found)
}

// ownerOf is the other installation that the pools of a driver are recorded to, or none.
func (p *Publisher) ownerOf(driver *plan.DriverState) installation.ID {
	return p.owner.Installation().Another(plan.InstallationsOf(driver.OfPools()))
}

// takenOver has, by node, the installations from which the slices of its drivers were taken
// over, since the node is selected: one may be this one as it was called before its selection
// changed. If that installation takes them back, it lives, and keeps them. The entry of a node
// belongs to the worker that has its key.
type takenOver struct{ sync.Map }

func (t *takenOver) add(key facts.SlicesKey, driver string, from installation.ID) {
	byDriver, _ := t.LoadOrStore(key.Node, map[string]installation.ID{})
	byDriver.(map[string]installation.ID)[driver] = from
}

func (t *takenOver) has(key facts.SlicesKey, driver string, from installation.ID) bool {
	byDriver, known := t.Load(key.Node)
	return known && byDriver.(map[string]installation.ID)[driver] == from
}

// forget forgets a node that is gone or not selected any more.
func (t *takenOver) forget(key facts.SlicesKey) { t.Delete(key.Node) }
