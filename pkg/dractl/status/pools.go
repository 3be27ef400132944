package status

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/kwok-dra/kwok-dra/pkg/dractl/natural"
	"github.com/kwok-dra/kwok-dra/pkg/dractl/output"
	"github.com/kwok-dra/kwok-dra/pkg/inventory"
)

// Overview is what the command shows of a cluster.
type Overview struct {
	Totals  []Total   `json:"totals"`
	Waiting []Waiting `json:"waiting"`
	Pools   []Pool    `json:"pools"`
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
	for _, item := range w.inventory().Items {
		for i := range item.Pools {
			if pool := summed(item.Node, &item.Pools[i]); f.chooses(pool.Node, pool.Driver) {
				o.Pools = append(o.Pools, pool)
			}
		}
	}
	slices.SortFunc(o.Pools, comparePools)
	o.Totals = totals(o.Pools)
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

// The colours of terminals.
const (
	red   = "\x1b[31m"
	reset = "\x1b[0m"
)

// print prints the overview as tables: the totals, what needs attention, and the rest. Incomplete
// pools are red if colours are wanted.
func (o *Overview) print(out io.Writer, format output.Format, colours bool) error {
	var problems, rest []Pool
	for i := range o.Pools {
		if o.Pools[i].healthy() {
			rest = append(rest, o.Pools[i])
		} else {
			problems = append(problems, o.Pools[i])
		}
	}
	if err := o.printTotals(out, format); err != nil {
		return err
	}
	if err := o.printPools(out, format, "Pools with problems:", problems, colours); err != nil {
		return err
	}
	if err := o.printWaiting(out, format); err != nil {
		return err
	}
	title := "Pools:"
	if len(problems) > 0 {
		title = "Other pools:"
	}
	return o.printPools(out, format, title, rest, colours)
}

func (o *Overview) printPools(out io.Writer, format output.Format, title string, pools []Pool, colours bool) error {
	if len(pools) == 0 {
		return nil
	}
	if err := heading(out, title, true); err != nil {
		return err
	}
	columns := []output.Column{{Name: "node"}, {Name: "driver"}, {Name: "pool"}, {Name: "generation"}}
	table := output.Rows{Columns: append(append(columns, o.stateColumns()...), output.Column{Name: "slices"})}
	for i := range pools {
		table.Add(pools[i].cells()...)
	}
	var text strings.Builder
	if err := table.Print(&text, format); err != nil {
		return err
	}
	number := -1 // of the pool; the header is before the first
	for line := range strings.Lines(text.String()) {
		if colours && number >= 0 && !pools[number].complete() {
			line = red + strings.TrimSuffix(line, "\n") + reset + "\n"
		}
		if _, err := io.WriteString(out, line); err != nil {
			return err
		}
		number++
	}
	return nil
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
