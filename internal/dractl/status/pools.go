package status

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/kwok-dra/kwok-dra/internal/dractl/clusterdevices"
	"github.com/kwok-dra/kwok-dra/internal/dractl/output"
	"github.com/kwok-dra/kwok-dra/internal/extensions/inventory"
	"github.com/kwok-dra/kwok-dra/internal/extensions/util/natural"
)

// Overview is what the command shows of a cluster.
type Overview struct {
	Totals []Total `json:"totals"`
	// Products are what Totals are, by product.
	Products []clusterdevices.ProductTotal `json:"products"`
	Waiting  []Waiting                     `json:"waiting"`
	Pools    []Pool                        `json:"pools"`
	// Gone are devices that claims have and no slice publishes any more.
	Gone []inventory.GoneDevice `json:"gone,omitempty"`
	// Unseen says what could not be read, if anything.
	Unseen string `json:"unseen,omitempty"`

	// columns are the names of attributes that pools are shown with.
	columns []string
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
	// Problems say what is wrong with the pool and its devices.
	Problems []string `json:"problems,omitempty"`
	// Attributes are the values that devices of the pool have of those that the user names.
	Attributes map[string][]string `json:"attributes,omitempty"`
}

// isComplete reports whether all slices are there.
func (p *Pool) isComplete() bool { return p.Slices == p.SliceCount }

// isHealthy reports whether the scheduler can allocate all devices of the pool that
// are free, and those that it has allocated can be used.
func (p *Pool) isHealthy() bool { return len(p.Problems) == 0 }

// newOverview returns what the filter chooses of a world, with columns for some attributes. The totals
// include pools without problems.
func (w *world) newOverview(ctx context.Context, chosen *filter, attributes ...string) *Overview {
	f := *chosen
	f.selected = w.selected
	o := &Overview{Pools: []Pool{}, Waiting: w.listWaiting(ctx, &f), columns: attributes}
	taken := w.TakeInventory()
	o.Unseen = taken.Unseen
	o.Gone = slices.DeleteFunc(slices.Clone(taken.Gone), func(gone inventory.GoneDevice) bool { return !f.choosesPools(gone.Node, gone.Driver) })
	products := clusterdevices.NewProductTotals(taken)
	for _, item := range taken.Items {
		for i := range item.Pools {
			if pool := &item.Pools[i]; f.choosesPools(item.Node, pool.Driver) {
				o.Pools = append(o.Pools, sumUpPool(item, pool))
				o.Pools[len(o.Pools)-1].Attributes = products.DescribePool(pool).ValuesOf(pool.Driver, attributes)
				products.AddPool("", item.Node, pool)
			}
		}
	}
	slices.SortFunc(o.Pools, func(a, b Pool) int {
		if (a.Node == "") != (b.Node == "") {
			return cmp.Compare(b.Node, a.Node) // those that nodes share are last
		}
		return cmp.Or(natural.Compare(a.Node, b.Node), cmp.Compare(a.Driver, b.Driver), natural.Compare(a.Name, b.Name))
	})
	o.Totals, o.Products = totalByDriver(o.Pools, o.Gone), products.Sorted()
	o.Pools = slices.DeleteFunc(o.Pools, func(p Pool) bool {
		hasState := func(s inventory.State) bool { return s != inventory.Gone && p.States[s] > 0 }
		return f.problems && p.isHealthy() || len(f.states) > 0 && !slices.ContainsFunc(f.states, hasState)
	})
	if len(f.states) > 0 {
		o.Waiting = []Waiting{}
	}
	if !f.states.hasState(inventory.Gone) {
		o.Gone = nil
	}
	return o
}

func sumUpPool(item *inventory.Item, pool *inventory.Pool) Pool {
	sum := Pool{
		Node: item.Node, Driver: pool.Driver, Name: pool.Name,
		Generation: pool.Generation, Slices: pool.Slices, SliceCount: pool.SliceCount, Usage: pool.Usage,
	}
	if item.NotReady {
		sum.Problems = append(sum.Problems, clusterdevices.DescribeNotReady(item.Node))
	}
	if !sum.isComplete() {
		sum.Problems = append(sum.Problems, fmt.Sprintf("incomplete: %d of %d slices", sum.Slices, sum.SliceCount))
	}
	var causes []string
	devices := map[string][]string{}
	for i := range pool.Devices {
		device := &pool.Devices[i]
		sum.States[device.State]++
		if device.State != inventory.Tainted && device.State != inventory.Failing {
			continue
		}
		cause := device.State.String() + ": " + output.OrNone(clusterdevices.ListReasons(device.Claims, device.Taints)...)
		if devices[cause] == nil {
			causes = append(causes, cause)
		}
		devices[cause] = append(devices[cause], device.Name)
	}
	for _, cause := range causes {
		const most = 3
		names := devices[cause]
		text := strings.Join(names[:min(len(names), most)], ", ")
		if more := len(names) - most; more > 0 {
			text += fmt.Sprintf(" and %d more", more)
		}
		sum.Problems = append(sum.Problems, text+" "+cause)
	}
	return sum
}

// listTables returns the totals, what needs attention, and the rest.
func (o *Overview) listTables(format output.Format) output.Tables {
	problems, rest := o.poolTable("Pools with problems:", true), o.poolTable("Pools:", false)
	for i := range o.Pools {
		pool := &o.Pools[i]
		if pool.isHealthy() {
			rest.Add(pool.tableCells(o.columns)...)
			continue
		}
		problems.Add(append(pool.tableCells(o.columns), output.OrNone(strings.Join(pool.Problems, "; ")))...)
		if !pool.isComplete() {
			problems.Mark()
		}
	}
	if len(problems.Cells) > 0 {
		rest.Title = "Other pools:"
	}
	tables := output.Tables{o.productTable()}
	if format == output.Wide {
		tables = append(tables, o.totalTable())
	}
	tables = append(tables, problems, o.goneTable(), o.waitingTable(), rest)
	return slices.DeleteFunc(tables, func(table *output.Rows) bool { return len(table.Cells) == 0 })
}

// goneTable has the devices that no slice publishes any more, with who has them.
func (o *Overview) goneTable() *output.Rows {
	table := &output.Rows{
		Title:   "Devices of claims that no slice publishes any more:",
		Columns: []output.Column{{Name: "node"}, {Name: "driver", Spare: 2}, {Name: "pool", Spare: 1}, {Name: "device"}, {Name: "claim"}, {Name: "pod"}},
	}
	for i := range o.Gone {
		gone := &o.Gone[i]
		claims, pods := clusterdevices.ClaimsAndPods(gone.Claims)
		table.Add(cmp.Or(gone.Node, "<shared>"), gone.Driver, gone.Pool, gone.Name, output.OrNone(claims...), output.OrNone(pods...))
	}
	return table
}

// poolTable has a column for the driver and the pool only where the node does not say which they are.
func (o *Overview) poolTable(title string, problems bool) *output.Rows {
	table := &output.Rows{Title: title, Columns: []output.Column{
		{Name: "node"},
		{Name: "driver", Wide: len(o.Totals) == 1},
		{Name: "pool", Wide: !slices.ContainsFunc(o.Pools, func(p Pool) bool { return p.Name != p.Node })},
		{Name: "generation", Wide: true},
		{Name: "slices", Wide: true},
	}}
	table.Columns = append(append(table.Columns, o.stateColumns()...), attributeColumns(o.columns)...)
	if problems {
		table.Columns = append(table.Columns, output.Column{Name: "problem"})
	}
	return table
}

func (p *Pool) tableCells(attributes []string) []string {
	cells := []string{cmp.Or(p.Node, "<shared>"), p.Driver, p.Name, strconv.FormatInt(p.Generation, 10), fmt.Sprintf("%d/%d", p.Slices, p.SliceCount)}
	cells = append(cells, stateCells(&p.Usage, &p.States)...)
	for _, name := range attributes {
		cells = append(cells, output.OrNone(p.Attributes[name]...))
	}
	return cells
}
