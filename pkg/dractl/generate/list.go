package generate

import (
	"fmt"
	"math"
	"strconv"

	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/kwok-dra/kwok-dra/pkg/devices"
	"github.com/kwok-dra/kwok-dra/pkg/dractl/output"
	"github.com/kwok-dra/kwok-dra/pkg/dractl/target"
	"github.com/kwok-dra/kwok-dra/pkg/inventory"
)

// catalogueRow fits 80 columns: names of profiles, which users type, are never cut.
const catalogueRow = "%-25s %-18s %6s %6s %s\n"

// printProfiles prints the catalogue: the devices that a node has.
func (c *command) printProfiles() error {
	names, err := target.ProfileNames()
	if err != nil {
		return err
	}
	if c.output.Format != output.Name {
		if _, err := fmt.Fprintf(c.streams.Out, catalogueRow, "PROFILE", "PRODUCT", "NUMBER", "MEMORY", "DRIVER"); err != nil {
			return err
		}
	}
	for _, name := range names {
		row := name + "\n"
		if c.output.Format != output.Name {
			of, err := target.Read(c.streams, []string{name}, &target.Known{})
			if err != nil {
				return err
			}
			row = rowOf(of)
		}
		if _, err := fmt.Fprint(c.streams.Out, row); err != nil {
			return err
		}
	}
	return nil
}

// rowOf describes the pool of a profile with memory, or else the first one.
func rowOf(of *target.Target) string {
	if len(of.Pools) == 0 {
		return fmt.Sprintf(catalogueRow, of.Name, "-", "-", "-", "of its chart")
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
	return fmt.Sprintf(catalogueRow, of.Name, cut(product, 18), strconv.Itoa(number), gibibytes(memory), cut(chosen.Driver, 21))
}

// mainDevices describes the first device of a pool that has a product, and counts those that
// are like it. Partitions have another type.
func mainDevices(pool *devices.Pool) (product string, number int, memory string) {
	var kind string
	for i := range pool.Devices {
		known := inventory.Describe(pool.Driver, &pool.Devices[i])
		if number == 0 || product == "" && known.Product != "" {
			product, number, memory, kind = known.Product, 0, known.Memory, known.Attributes["type"]
		}
		if known.Product == product && known.Memory == memory && known.Attributes["type"] == kind {
			number++
		}
	}
	return product, number, memory
}

func cut(text string, width int) string {
	switch {
	case text == "":
		return "-"
	case len(text) > width:
		return text[:width-1] + "…"
	}
	return text
}

func gibibytes(memory string) string {
	size, err := resource.ParseQuantity(memory)
	if err != nil {
		return "-"
	}
	return fmt.Sprintf("%.0fGi", math.Round(size.AsApproximateFloat64()/(1<<30)))
}
