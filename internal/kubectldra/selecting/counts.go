package selecting

import (
	"fmt"
	"strings"

	"github.com/kwok-dra/kwok-dra/internal/dractl/cli"
	"github.com/kwok-dra/kwok-dra/internal/extensions/inventory"
)

// IsUnhealthy reports whether a device needs somebody's attention.
func IsUnhealthy(state inventory.State) bool {
	return state == inventory.Failing || state == inventory.Tainted || state == inventory.Gone
}

// InUse counts the devices that claims have and that are healthy.
func InUse(counts *inventory.Counts) int {
	return counts[inventory.Allocated] + counts[inventory.Prepared]
}

// Unhealthy counts the devices that need somebody's attention.
func Unhealthy(counts *inventory.Counts) int {
	return counts[inventory.Failing] + counts[inventory.Tainted]
}

// Sum counts all devices.
func Sum(counts *inventory.Counts) int {
	sum := 0
	for _, count := range counts {
		sum += count
	}
	return sum
}

// DescribeCounts says how many devices there are and what can be done with them. Those that are gone are apart.
func DescribeCounts(counts *inventory.Counts, gone int) string {
	var parts []string
	for _, other := range []struct {
		count int
		what  string
	}{{counts[inventory.Free], "free"}, {InUse(counts), "in use"}, {counts[inventory.Blocked], "blocked"}, {Unhealthy(counts), "unhealthy"}, {gone, "gone"}} {
		if other.count > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", other.count, other.what))
		}
	}
	return cli.CountWith(Sum(counts)+gone, "device", "devices") + ": " + strings.Join(parts, ", ")
}
