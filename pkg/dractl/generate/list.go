package generate

import (
	"cmp"
	"fmt"
	"math"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/kwok-dra/kwok-dra/pkg/devices"
	"github.com/kwok-dra/kwok-dra/pkg/dractl/output"
	"github.com/kwok-dra/kwok-dra/pkg/dractl/target"
	"github.com/kwok-dra/kwok-dra/pkg/inventory"
)

// printProfiles prints the catalogue: the devices that a node has.
func (c *command) printProfiles() error {
	names, err := target.ProfileNames()
	if err != nil {
		return err
	}
	if c.output.Format == output.Name {
		_, err := fmt.Fprintln(c.streams.Out, strings.Join(names, "\n"))
		return err
	}
	table := output.Rows{Columns: []output.Column{{Name: "profile"}, {Name: "product"}, {Name: "number"}, {Name: "memory"}, {Name: "driver"}}}
	for _, name := range names {
		of, err := target.Read(c.streams, []string{name}, &target.Known{})
		if err != nil {
			return err
		}
		table.Add(describeProfile(of)...)
	}
	return table.Print(c.streams.Out, c.output.Format)
}

// describeProfile describes the pool of a profile with memory, or else the first one.
func describeProfile(of *target.Target) []string {
	if len(of.Pools) == 0 {
		return []string{of.Name, output.None, output.None, output.None, "of its chart"}
	}
	var chosen *devices.Pool
	var product, memory string
	var number int
	for i := range of.Pools {
		name, count, size := mainDevices(&of.Pools[i])
		if chosen == nil || memory == "" && size != "" {
			chosen, product, number, memory = &of.Pools[i], name, count, size
		}
	}
	return []string{of.Name, cmp.Or(product, output.None), strconv.Itoa(number), gibibytes(memory), chosen.Driver}
}

// mainDevices describes the first device of a pool that has a product, and counts those that
// are like it. Partitions have another type.
func mainDevices(pool *devices.Pool) (product string, number int, memory string) {
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

func gibibytes(memory string) string {
	size, err := resource.ParseQuantity(memory)
	if err != nil {
		return output.None
	}
	return fmt.Sprintf("%.0fGi", math.Round(size.AsApproximateFloat64()/(1<<30)))
}
