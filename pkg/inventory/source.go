package inventory

import (
	"strings"
	"unique"

	resourcev1 "k8s.io/api/resource/v1"
)

// Source is what inventories are taken from. All are required, and may be called
// at any time.
type Source struct {
	// Nodes names the fake nodes, also those that have no devices.
	Nodes func() []string
	// Slices are what is published.
	Slices func() []Slice
	// Allocations are the devices that claims have.
	Allocations func() []Allocation
	// Changes counts, and at least once for all that changes what the others return.
	Changes func() uint64
}

// Slice is what an inventory needs of a ResourceSlice.
type Slice struct {
	// Node is empty where nodes share the pool.
	Node, Driver, Pool, Name string
	// Generation and Count are those of the pool, by what the slice says.
	Generation, Count int64
	Devices           Names
	// Taints are by device.
	Taints map[string][]Taint
}

// Allocation is a device that a claim has.
type Allocation struct {
	Driver, Pool, Device string
	Claim                Claim
}

// Names are the names of a slice's devices. Those of all nodes of a kind are the
// same, so each list is kept once, however many slices have it.
type Names struct {
	joined unique.Handle[string]
}

// between is in no name of a device, which is a DNS label.
const between = " "

// NamesOf keeps the names of the devices.
func NamesOf(devices []resourcev1.Device) Names {
	names := make([]string, len(devices))
	for i := range devices {
		names[i] = devices[i].Name
	}
	return Names{unique.Make(strings.Join(names, between))}
}

// List returns the names in their order.
func (n Names) List() []string {
	if n == (Names{}) || n.joined.Value() == "" {
		return nil
	}
	return strings.Split(n.joined.Value(), between)
}
