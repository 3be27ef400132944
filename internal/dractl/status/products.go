package status

import (
	"cmp"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/kwok-dra/kwok-dra/internal/dractl/output"
	"github.com/kwok-dra/kwok-dra/internal/extensions/inventory"
	"github.com/kwok-dra/kwok-dra/internal/util/natural"
)

// ProductTotal sums up the devices of a product, or the parts of such devices.
type ProductTotal struct {
	Product string `json:"product"`
	Driver  string `json:"driver"`
	Parts   bool   `json:"parts,omitempty"`
	// Nodes are those with such devices of their own.
	Nodes int `json:"nodes"`
	// Usage is left out for parts: it is of the whole devices.
	Usage  *inventory.Usage `json:"usage,omitempty"`
	States inventory.Counts `json:"devices"`

	lastNode string
}

// productKey is what devices have in common that are counted together.
type productKey struct {
	driver, product string
	parts           bool
}

// productTotals sums up pools by the products of their devices.
type productTotals struct {
	kinds  map[string]*inventory.Kind
	known  map[string]descriptions
	totals map[productKey]*ProductTotal
}

// descriptions are those of the devices of a kind of pool, in their order.
type descriptions []inventory.Description

// describePool describes the devices of a pool. Most pools are of a few kinds.
func (t *productTotals) describePool(pool *inventory.Pool) descriptions {
	known, ok := t.known[pool.Kind]
	if !ok {
		known = t.kinds[pool.Kind].Describe()
		wholes := map[string]string{}
		for i := range known {
			wholes[pool.Devices[i].Name] = known[i].Product
		}
		for i := range known {
			if known[i].Whole != "" {
				known[i].Product = wholes[known[i].Whole]
			}
		}
		t.known[pool.Kind] = known
	}
	return known
}

// addPool adds the devices of a pool. The pools of a node come one after the other.
func (t *productTotals) addPool(node string, pool *inventory.Pool) {
	known := t.describePool(pool)
	var seen []productKey
	for i := range pool.Devices {
		key := productKey{pool.Driver, known[i].Product, known[i].Whole != ""}
		total := t.totals[key]
		if total == nil {
			total = &ProductTotal{Product: key.product, Driver: key.driver, Parts: key.parts}
			t.totals[key] = total
		}
		total.States[pool.Devices[i].State]++
		if slices.Contains(seen, key) {
			continue
		}
		seen = append(seen, key)
		if node != "" && total.lastNode != node {
			total.Nodes, total.lastNode = total.Nodes+1, node
		}
	}
	seen = slices.DeleteFunc(seen, func(key productKey) bool { return key.parts })
	for _, key := range seen {
		usage := pool.Usage
		if len(seen) > 1 {
			usage = t.kinds[pool.Kind].UsageOf(pool.Devices, func(i int) bool { return known[i].Product == key.product })
		}
		total := t.totals[key]
		if total.Usage == nil {
			total.Usage = &inventory.Usage{}
		}
		total.Usage.Add(usage)
	}
}

// sortedTotals returns the totals by product. Parts are below their devices, and devices without a product last.
func (t *productTotals) sortedTotals() []ProductTotal {
	level := func(k productKey) int { // how far below a whole device
		if k.parts {
			return 1
		}
		return 0
	}
	keys := slices.SortedFunc(maps.Keys(t.totals), func(a, b productKey) int {
		if (a.product == "") != (b.product == "") {
			return cmp.Compare(b.product, a.product)
		}
		return cmp.Or(natural.Compare(a.product, b.product), cmp.Compare(a.driver, b.driver), cmp.Compare(level(a), level(b)))
	})
	all := []ProductTotal{}
	for _, key := range keys {
		all = append(all, *t.totals[key])
	}
	return all
}

// valuesOf returns the values that the devices have for each attribute.
func (d descriptions) valuesOf(driver string, attributes []string) map[string][]string {
	all := map[string][]string{}
	for _, name := range attributes {
		for i := range d {
			if value := attributeOf(driver, d[i].Attributes, name); value != "" && !slices.Contains(all[name], value) {
				all[name] = append(all[name], value)
			}
		}
	}
	return all
}

// attributeOf finds an attribute by its whole name, or by its name without the domain: that of the
// driver first.
func attributeOf(driver string, attributes map[string]string, name string) string {
	for _, whole := range []string{name, driver + "/" + name} {
		if value, found := attributes[whole]; found {
			return value
		}
	}
	for whole, value := range attributes {
		if _, last, found := strings.Cut(whole, "/"); found && last == name {
			return value
		}
	}
	return ""
}

// attributeColumns are named as kubectl names the columns of labels.
func attributeColumns(names []string) []output.Column {
	var columns []output.Column
	for _, name := range names {
		columns = append(columns, output.Column{Name: name[strings.LastIndexByte(name, '/')+1:]})
	}
	return columns
}

func (o *Overview) productTable() *output.Rows {
	driver := output.Column{Name: "driver", Wide: len(o.Totals) == 1, Spare: 9}
	if slices.ContainsFunc(o.Products, func(p ProductTotal) bool { return p.Product == "" }) {
		driver = output.Column{Name: "driver"} // nothing else says what the devices are
	}
	table := &output.Rows{Title: "Devices by product:", Columns: []output.Column{
		{Name: "product"},
		driver,
		{Name: "nodes", Spare: 8},
		{Name: "devices"},
	}}
	table.Columns = append(table.Columns, o.stateColumns()...)
	for i := range o.Products {
		total := &o.Products[i]
		product, devices := output.OrNone(total.Product), 0
		if total.Parts {
			product += " (parts)"
		}
		for _, count := range total.States {
			devices += count
		}
		cells := []string{product, total.Driver, strconv.Itoa(total.Nodes), strconv.Itoa(devices)}
		table.Add(append(cells, stateCells(total.Usage, &total.States)...)...)
	}
	return table
}
