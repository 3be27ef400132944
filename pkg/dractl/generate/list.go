package generate

import (
	"fmt"
	"strconv"

	"github.com/kwok-dra/kwok-dra/pkg/devices"
	"github.com/kwok-dra/kwok-dra/pkg/dractl/cli"
	"github.com/kwok-dra/kwok-dra/pkg/dractl/output"
	"github.com/kwok-dra/kwok-dra/pkg/dractl/target"
	"github.com/kwok-dra/kwok-dra/pkg/inventory"
)

// catalogueWidth is what every terminal has.
const catalogueWidth = 80

// printProfiles prints the catalogue: what a node has most of each driver's devices.
func (c *command) printProfiles() error {
	names, err := target.ProfileNames()
	if err != nil {
		return err
	}
	isNames := c.output.Format == output.Name
	table := &output.Rows{Columns: []output.Column{{Name: "profile"}, {Name: "product"}, {Name: "number"}, {Name: "memory"}, {Name: "driver"}}}
	for _, name := range names {
		if isNames {
			if _, err := fmt.Fprintln(c.streams.Out, name); err != nil {
				return err
			}
			continue
		}
		of, err := target.Read(cli.Streams{ErrOut: c.streams.ErrOut}, []string{name}, &target.Known{})
		if err != nil {
			return err
		}
		first := name
		for i := range of.Pools {
			product, number, memory := mostDevices(&of.Pools[i])
			table.Add(first, product, strconv.Itoa(number), memory, of.Pools[i].Driver)
			first = ""
		}
		if len(of.Pools) == 0 {
			table.Add(name, "what a driver's Pod says", "", "", "")
		}
	}
	if isNames {
		return nil
	}
	return output.Tables{table}.Fit(output.Table, catalogueWidth, 1<<10).Print(c.streams.Out, output.Table, false)
}

// mostDevices describes the first device of a pool that has a product, and counts those that
// are like it. Partitions come after what they are parts of.
func mostDevices(pool *devices.Pool) (product string, number int, memory string) {
	for i := range pool.Devices {
		known := inventory.Describe(pool.Driver, &pool.Devices[i])
		if number == 0 || product == "" && known.Product != "" {
			product, number, memory = known.Product, 0, known.Memory
		}
		if known.Product == product && known.Memory == memory {
			number++
		}
	}
	return product, number, memory
}
