package status

import (
	"cmp"
	"slices"
	"strconv"

	"github.com/kwok-dra/kwok-dra/internal/dractl/output"
	"github.com/kwok-dra/kwok-dra/internal/extensions/inventory"
)

// Total sums up the pools of a driver.
type Total struct {
	Driver string `json:"driver"`
	// Nodes are those with pools of their own.
	Nodes           int              `json:"nodes"`
	Pools           int              `json:"pools"`
	IncompletePools int              `json:"incompletePools"`
	Usage           inventory.Usage  `json:"usage"`
	States          inventory.Counts `json:"devices"`
	// Gone counts the devices that claims have and no slice publishes any more. States
	// leave them out.
	Gone int `json:"gone,omitempty"`
}

// totalByDriver returns the totals of each driver by name. A driver with devices that are gone may have no
// pool any more.
func totalByDriver(pools []Pool, gone []inventory.GoneDevice) []Total {
	all := []Total{}
	index := map[string]int{}
	nodes := map[[2]string]bool{}
	indexOf := func(driver string) int {
		at, known := index[driver]
		if !known {
			at = len(all)
			index[driver] = at
			all = append(all, Total{Driver: driver})
		}
		return at
	}
	for i := range gone {
		all[indexOf(gone[i].Driver)].Gone++
	}
	for i := range pools {
		pool := &pools[i]
		at := indexOf(pool.Driver)
		if on := [2]string{pool.Driver, pool.Node}; pool.Node != "" && !nodes[on] {
			nodes[on] = true
			all[at].Nodes++
		}
		t := &all[at]
		t.Pools++
		if !pool.isComplete() {
			t.IncompletePools++
		}
		for state, count := range pool.States {
			t.States[state] += count
		}
		t.Usage.Add(pool.Usage)
	}
	slices.SortFunc(all, func(a, b Total) int { return cmp.Compare(a.Driver, b.Driver) })
	return all
}

// stateColumns are the columns of the utilization and the states. A narrow table first omits states that need
// no attention. Except for free and prepared, a state that no device has gets no column.
func (o *Overview) stateColumns() []output.Column {
	columns := []output.Column{{Name: "used", Spare: 4}}
	spare := map[inventory.State]int{inventory.Prepared: 5, inventory.Allocated: 6, inventory.Blocked: 7}
	for i := range len(inventory.Counts{}) {
		state := inventory.State(i)
		isSeen := slices.ContainsFunc(o.Totals, func(t Total) bool { return t.States[state] > 0 })
		isUsual := state == inventory.Free || state == inventory.Prepared
		columns = append(columns, output.Column{Name: state.String(), Wide: !isSeen && !isUsual, Spare: spare[state]})
	}
	return columns
}

// stateCells have no usage where none is given.
func stateCells(usage *inventory.Usage, counts *inventory.Counts) []string {
	cells := []string{output.None}
	if usage != nil {
		cells[0] = output.Percent(usage.Ratio())
	}
	for _, count := range counts {
		cells = append(cells, strconv.Itoa(count))
	}
	return cells
}

func (o *Overview) totalTable() *output.Rows {
	columns := []output.Column{{Name: "driver"}, {Name: "nodes"}, {Name: "pools"}, {Name: "incomplete"}, {Name: "devices"}}
	table := &output.Rows{Title: "Devices by driver:", Columns: append(columns, o.stateColumns()...)}
	if len(o.Gone) > 0 {
		table.Columns = append(table.Columns, output.Column{Name: inventory.Gone.String()})
	}
	for i := range o.Totals {
		total := &o.Totals[i]
		devices := 0
		for _, count := range total.States {
			devices += count
		}
		cells := []string{total.Driver, strconv.Itoa(total.Nodes), strconv.Itoa(total.Pools), strconv.Itoa(total.IncompletePools), strconv.Itoa(devices)}
		cells = append(cells, stateCells(&total.Usage, &total.States)...)
		if len(o.Gone) > 0 {
			cells = append(cells, strconv.Itoa(total.Gone))
		}
		table.Add(cells...)
	}
	return table
}
