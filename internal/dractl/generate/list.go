package generate

import (
	"cmp"
	"fmt"
	"math"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/kwok-dra/kwok-dra/internal/devices"
	"github.com/kwok-dra/kwok-dra/internal/dractl/output"
	"github.com/kwok-dra/kwok-dra/internal/dractl/target"
	"github.com/kwok-dra/kwok-dra/internal/extensions/inventory"
)

// profile describes the devices that a node of a profile has.
type profile struct {
	Name    string `json:"name"`
	Product string `json:"product,omitempty"`
	Number  int    `json:"number,omitempty"`
	Memory  string `json:"memory,omitempty"`
	Driver  string `json:"driver,omitempty"`
}

// printProfiles prints the catalogue, as a table unless the user has chosen a format.
func (c *command) printProfiles(isChosen bool) error {
	format := c.output.Format
	if !isChosen {
		format = output.Table
	}
	names, err := target.ProfileNames()
	if err != nil {
		return err
	}
	if format == output.Name {
		_, err := fmt.Fprintln(c.streams.Out, strings.Join(names, "\n"))
		return err
	}
	all := make([]profile, len(names))
	for i, name := range names {
		of, err := target.Read(c.streams, []string{name}, &target.Known{})
		if err != nil {
			return err
		}
		all[i] = describeProfile(of)
	}
	if format.IsValue() {
		return output.Value(c.streams.Out, format, all)
	}
	table := output.Rows{Columns: []output.Column{{Name: "profile"}, {Name: "product"}, {Name: "number"}, {Name: "memory", Spare: 1}, {Name: "driver", Spare: 2}}}
	for i := range all {
		p := &all[i]
		number, driver := strconv.Itoa(p.Number), p.Driver
		if driver == "" {
			number, driver = output.None, "of its chart"
		}
		table.Add(p.Name, cmp.Or(p.Product, output.None), number, cmp.Or(p.Memory, output.None), driver)
	}
	return table.Print(c.streams.Out, format)
}

// describeProfile describes the pool of a profile that has memory, or else the first one. There is none
// where a driver's chart says how many devices there are.
func describeProfile(of *target.Target) profile {
	chosen := profile{Name: of.Name}
	for i := range of.Pools {
		product, number, memory := describeMainDevices(&of.Pools[i])
		if size, err := resource.ParseQuantity(memory); err == nil {
			memory = fmt.Sprintf("%.0fGi", math.Round(size.AsApproximateFloat64()/(1<<30)))
		}
		if chosen.Driver == "" || chosen.Memory == "" && memory != "" {
			chosen = profile{of.Name, product, number, memory, of.Pools[i].Driver}
		}
	}
	return chosen
}

// describeMainDevices describes the first device of a pool that has a product, and counts those that
// are like it. Partitions have another type.
func describeMainDevices(pool *devices.Pool) (product string, number int, memory string) {
	var kind string
	for i := range pool.Devices {
		known := inventory.Describe(pool.Driver, &pool.Devices[i], pool.Devices)
		if number == 0 || product == "" && known.Product != "" {
			product, number, memory, kind = known.Product, 0, known.Memory, known.Attributes["type"]
		}
		if known.Product == product && known.Memory == memory && known.Attributes["type"] == kind {
			number++
		}
	}
	return product, number, memory
}
