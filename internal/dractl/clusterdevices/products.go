package clusterdevices

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/kwok-dra/kwok-dra/internal/extensions/inventory"
	"github.com/kwok-dra/kwok-dra/internal/extensions/util/natural"
)

// ProductTotal sums up the devices of a product, or the parts of such devices.
type ProductTotal struct {
	// Group is that of the pools, if they are grouped.
	Group   string `json:"group,omitempty"`
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
	group, driver, product string
	parts                  bool
}

// ProductTotals sums up pools by the products of their devices.
type ProductTotals struct {
	kinds  map[string]*inventory.Kind
	known  map[string]Descriptions
	totals map[productKey]*ProductTotal
}

// Descriptions are those of the devices of a kind of pool, in their order.
type Descriptions []inventory.Description

// NewProductTotals makes sums of pools of an inventory, without any yet.
func NewProductTotals(taken *inventory.Inventory) *ProductTotals {
	return &ProductTotals{kinds: taken.Kinds, known: map[string]Descriptions{}, totals: map[productKey]*ProductTotal{}}
}

// DescribePool describes the devices of a pool. Most pools are of a few kinds.
func (t *ProductTotals) DescribePool(pool *inventory.Pool) Descriptions {
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

// AddPool adds the devices of a pool to the sums of a group. The pools of a node come one after the other.
func (t *ProductTotals) AddPool(group, node string, pool *inventory.Pool) {
	known := t.DescribePool(pool)
	var seen []productKey
	for i := range pool.Devices {
		key := productKey{group, pool.Driver, known[i].Product, known[i].Whole != ""}
		total := t.totals[key]
		if total == nil {
			total = &ProductTotal{Group: key.group, Product: key.product, Driver: key.driver, Parts: key.parts}
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

// Sorted returns the totals by group and product. Parts are below their devices, and devices without a product last.
func (t *ProductTotals) Sorted() []ProductTotal {
	level := func(k productKey) int { // how far below a whole device
		if k.parts {
			return 1
		}
		return 0
	}
	keys := slices.SortedFunc(maps.Keys(t.totals), func(a, b productKey) int {
		if byGroup := natural.Compare(a.group, b.group); byGroup != 0 {
			return byGroup
		}
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

// ValuesOf returns the values that the devices have for each attribute.
func (d Descriptions) ValuesOf(driver string, attributes []string) map[string][]string {
	all := map[string][]string{}
	for _, name := range attributes {
		for i := range d {
			if value := AttributeOf(driver, d[i].Attributes, name); value != "" && !slices.Contains(all[name], value) {
				all[name] = append(all[name], value)
			}
		}
	}
	return all
}

// AttributeOf finds an attribute by its whole name, or by its name without the domain: that of the
// driver first.
func AttributeOf(driver string, attributes map[string]string, name string) string {
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
