package status

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"

	"github.com/kwok-dra/kwok-dra/pkg/dractl/output"
	"github.com/kwok-dra/kwok-dra/pkg/inventory"
	"github.com/kwok-dra/kwok-dra/pkg/natural"
)

// Overview is what the command shows of a cluster.
type Overview struct {
	Totals  []Total   `json:"totals"`
	Waiting []Waiting `json:"waiting"`
	Pools   []Pool    `json:"pools"`
	// Gone are devices that claims have and no slice publishes any more.
	Gone []inventory.GoneDevice `json:"gone,omitempty"`
	// Unseen says what could not be read, if anything.
	Unseen string `json:"unseen,omitempty"`
}

// Pool sums up a pool.
type Pool struct {
	// Node is left out for a pool that nodes share.
	Node       string           `json:"node,omitempty"`
	Driver     string           `json:"driver"`
	Name       string           `json:"pool"`
	Generation int64            `json:"generation"`
	Slices     int64            `json:"slices"`
	SliceCount int64            `json:"resourceSliceCount"`
	Usage      inventory.Usage  `json:"usage"`
	States     inventory.Counts `json:"devices"`
}

// complete reports whether all slices are there.
func (p *Pool) complete() bool { return p.Slices == p.SliceCount }

// healthy reports whether the scheduler can allocate all devices of the pool that
// are free, and those that it has allocated can be used.
func (p *Pool) healthy() bool {
	return p.complete() && p.States[inventory.Tainted] == 0 && p.States[inventory.Failing] == 0
}

// overview is what the filter chooses of a world. The totals are also of pools
// without problems.
func (w *world) overview(ctx context.Context, f *filter) *Overview {
	o := &Overview{Pools: []Pool{}, Waiting: w.waiting(ctx, f)}
	taken := w.inventory()
	o.Unseen = taken.Unseen
	for i := range taken.Gone {
		if gone := &taken.Gone[i]; f.chooses(gone.Node, gone.Driver) {
			o.Gone = append(o.Gone, *gone)
		}
	}
	for _, item := range taken.Items {
		for i := range item.Pools {
			if pool := summed(item.Node, &item.Pools[i]); f.chooses(pool.Node, pool.Driver) {
				o.Pools = append(o.Pools, pool)
			}
		}
	}
	slices.SortFunc(o.Pools, comparePools)
	o.Totals = totals(o.Pools, o.Gone)
	if f.problems {
		o.Pools = slices.DeleteFunc(o.Pools, func(p Pool) bool { return p.healthy() })
	}
	return o
}

func summed(node string, pool *inventory.Pool) Pool {
	sum := Pool{
		Node: node, Driver: pool.Driver, Name: pool.Name,
		Generation: pool.Generation, Slices: pool.Slices, SliceCount: pool.SliceCount, Usage: pool.Usage,
	}
	for i := range pool.Devices {
		sum.States[pool.Devices[i].State]++
	}
	return sum
}

// comparePools puts pools in the order of their nodes, and those that nodes share
// last.
func comparePools(a, b Pool) int {
	if (a.Node == "") != (b.Node == "") {
		return cmp.Compare(b.Node, a.Node)
	}
	return cmp.Or(natural.Compare(a.Node, b.Node), cmp.Compare(a.Driver, b.Driver), natural.Compare(a.Name, b.Name))
}

// tables are the totals, what needs attention, and the rest.
func (o *Overview) tables() output.Tables {
	problems, rest := o.poolTable("Pools with problems:"), o.poolTable("Pools:")
	for i := range o.Pools {
		pool := &o.Pools[i]
		table := problems
		if pool.healthy() {
			table = rest
		}
		table.Add(pool.cells()...)
		if !pool.complete() {
			table.Mark()
		}
	}
	if len(problems.Cells) > 0 {
		rest.Title = "Other pools:"
	}
	return slices.DeleteFunc(output.Tables{o.totalTable(), problems, o.goneTable(), o.waitingTable(), rest}, func(table *output.Rows) bool {
		return len(table.Cells) == 0
	})
}

// goneTable has the devices that no slice publishes any more, with who has them.
func (o *Overview) goneTable() *output.Rows {
	table := &output.Rows{
		Title:   "Devices of claims that no slice publishes any more:",
		Columns: []output.Column{{Name: "node"}, {Name: "driver"}, {Name: "pool"}, {Name: "device"}, {Name: "claim"}, {Name: "pod"}},
	}
	for i := range o.Gone {
		gone := &o.Gone[i]
		claims, pods := claimsAndPods(gone.Claims)
		table.Add(cmp.Or(gone.Node, "<shared>"), gone.Driver, gone.Pool, gone.Name, orNone(claims...), orNone(pods...))
	}
	return table
}

func (o *Overview) poolTable(title string) *output.Rows {
	columns := []output.Column{{Name: "node"}, {Name: "driver"}, {Name: "pool"}, {Name: "generation"}}
	return &output.Rows{Title: title, Columns: append(append(columns, o.stateColumns()...), output.Column{Name: "slices"})}
}

func (p *Pool) cells() []string {
	node := p.Node
	if node == "" {
		node = "<shared>"
	}
	slices := fmt.Sprintf("%d/%d", p.Slices, p.SliceCount)
	if !p.complete() {
		slices += " incomplete"
	}
	cells := []string{node, p.Driver, p.Name, strconv.FormatInt(p.Generation, 10)}
	return append(append(cells, stateCells(p.Usage, &p.States)...), slices)
}
