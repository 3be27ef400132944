package status

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strconv"

	"github.com/kwok-dra/kwok-dra/pkg/dractl/output"
	"github.com/kwok-dra/kwok-dra/pkg/inventory"
)

// Total sums up the pools of a driver.
type Total struct {
	Driver string `json:"driver"`
	// Nodes are those with pools of their own.
	Nodes           int              `json:"nodes"`
	Pools           int              `json:"pools"`
	IncompletePools int              `json:"incompletePools"`
	States          inventory.Counts `json:"devices"`
}

// totals are those of each driver, in the order of their names.
func totals(pools []Pool) []Total {
	all := []Total{}
	index := map[string]int{}
	nodes := map[[2]string]bool{}
	for i := range pools {
		pool := &pools[i]
		at, known := index[pool.Driver]
		if !known {
			at = len(all)
			index[pool.Driver] = at
			all = append(all, Total{Driver: pool.Driver})
		}
		if on := [2]string{pool.Driver, pool.Node}; pool.Node != "" && !nodes[on] {
			nodes[on] = true
			all[at].Nodes++
		}
		all[at].add(pool)
	}
	slices.SortFunc(all, func(a, b Total) int { return cmp.Compare(a.Driver, b.Driver) })
	return all
}

func (t *Total) add(pool *Pool) {
	t.Pools++
	if !pool.complete() {
		t.IncompletePools++
	}
	for state, count := range pool.States {
		t.States[state] += count
	}
}

// printTotals prints the totals below the pools.
func (o *Overview) printTotals(out io.Writer, format output.Format) error {
	if len(o.Totals) == 0 {
		return nil
	}
	if err := heading(out, "Total of each driver:", len(o.Pools) > 0); err != nil {
		return err
	}
	table := output.Rows{Columns: []output.Column{
		{Name: "driver"}, {Name: "nodes"}, {Name: "pools"}, {Name: "incomplete"}, {Name: "devices"}, {Name: "free"}, {Name: "allocated"}, {Name: "prepared"}, {Name: "tainted"},
	}}
	for i := range o.Totals {
		total := &o.Totals[i]
		devices := 0
		var states []string
		for _, count := range total.States {
			devices += count
			states = append(states, strconv.Itoa(count))
		}
		cells := []string{total.Driver, strconv.Itoa(total.Nodes), strconv.Itoa(total.Pools), strconv.Itoa(total.IncompletePools), strconv.Itoa(devices)}
		table.Add(append(cells, states...)...)
	}
	return table.Print(out, format)
}

// heading prints the heading of a table, apart from what is above it.
func heading(out io.Writer, text string, below bool) error {
	if below {
		text = "\n" + text
	}
	_, err := fmt.Fprintln(out, text)
	return err
}
