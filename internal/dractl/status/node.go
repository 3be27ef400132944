package status

import (
	"maps"
	"slices"

	"github.com/kwok-dra/kwok-dra/internal/dractl/clusterdevices"
	"github.com/kwok-dra/kwok-dra/internal/dractl/output"
)

// listDevices returns the devices of a node's own pools, and those that are gone, by driver, pool and name.
func (w *world) listDevices(node string) []clusterdevices.Device {
	return w.ListDevices(func(name string) bool { return name == node })
}

// deviceTable has devices, with the parts of a device below it, and columns for attributes.
func deviceTable(devices []clusterdevices.Device, attributes []string) *output.Rows {
	isShared := func(d clusterdevices.Device) bool { return d.Shared }
	hasReason := func(d clusterdevices.Device) bool { return d.UnusableReason() != "" }
	table := &output.Rows{Columns: []output.Column{
		{Name: "driver", Wide: true},
		{Name: "pool", Wide: true},
		{Name: "device"},
		{Name: "state"},
		{Name: "used", Wide: !slices.ContainsFunc(devices, isShared)},
		{Name: "product", Spare: 1},
		{Name: "memory", Spare: 2},
		{Name: "uuid", Spare: 4},
		{Name: "claim", Spare: 3},
		{Name: "pod"},
	}}
	table.Columns = append(table.Columns, attributeColumns(attributes)...)
	table.Columns = append(table.Columns, output.Column{Name: "reason", Wide: !slices.ContainsFunc(devices, hasReason)}, output.Column{Name: "attributes", Wide: true})
	for i := range devices {
		d := &devices[i]
		claims, pods := clusterdevices.ClaimsAndPods(d.Claims)
		name, used := d.Name, ""
		if d.Whole != "" {
			name = "  " + name
		}
		if d.Shared {
			used = output.Percent(float64(d.Used))
		}
		cells := []string{
			d.Driver, d.Pool, name, d.State.String(), output.OrNone(used), output.OrNone(d.Product), output.OrNone(d.Memory), output.OrNone(d.UUID), output.OrNone(claims...), output.OrNone(pods...),
		}
		for _, attribute := range attributes {
			cells = append(cells, output.OrNone(clusterdevices.AttributeOf(d.Driver, d.Attributes, attribute)))
		}
		var all []string
		for _, attribute := range slices.Sorted(maps.Keys(d.Attributes)) {
			all = append(all, attribute+"="+d.Attributes[attribute])
		}
		table.Add(append(cells, output.OrNone(d.UnusableReason()), output.OrNone(all...))...)
	}
	return table
}
