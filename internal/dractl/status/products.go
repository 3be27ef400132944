package status

import (
	"slices"
	"strconv"
	"strings"

	"github.com/kwok-dra/kwok-dra/internal/dractl/clusterdevices"
	"github.com/kwok-dra/kwok-dra/internal/dractl/output"
)

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
	if slices.ContainsFunc(o.Products, func(p clusterdevices.ProductTotal) bool { return p.Product == "" }) {
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
