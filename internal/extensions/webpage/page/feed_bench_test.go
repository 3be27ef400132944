package page

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	resourcev1 "k8s.io/api/resource/v1"

	"github.com/kwok-dra/kwok-dra/internal/extensions/inventory"
	"github.com/kwok-dra/kwok-dra/internal/observe/facts"
)

// fleet is a source of nodes with 8 devices, half of them allocated. Each time that it
// is asked for allocations, one device has changed.
func fleet(nodes int) *inventory.Source {
	var devices []resourcev1.Device
	for d := range 8 {
		devices = append(devices, resourcev1.Device{Name: fmt.Sprint("gpu-", d)})
	}
	var all []inventory.Slice
	var allocations []inventory.Allocation
	for n := range nodes {
		name := fmt.Sprint("node-", n)
		all = append(all, inventory.Slice{Node: name, Driver: "d", Pool: name, Generation: 1, Count: 1, Devices: facts.NamesOf(devices)})
		for d := range n % 2 * 8 {
			allocations = append(allocations, inventory.Allocation{Driver: "d", Pool: name, Device: devices[d].Name, Claim: inventory.Claim{Namespace: "default", Name: name}})
		}
	}
	var changes uint64
	return &inventory.Source{
		Nodes:  func() []string { return nil },
		Slices: func() []inventory.Slice { return all },
		Allocations: func() []inventory.Allocation {
			allocations[0].Claim.Prepared = !allocations[0].Claim.Prepared
			return allocations
		},
		Changes: func() uint64 {
			changes++
			return changes
		},
	}
}

// BenchmarkChange is what a second costs in which something has changed and a
// page is open.
func BenchmarkChange(b *testing.B) {
	f := newFeed(fleet(10_000))
	defer f.forget.Stop()
	seen := f.currentRevision()
	b.ReportAllocs()
	for b.Loop() {
		f.taken = time.Time{}
		answer := f.answerSince(seen)
		if answer == nil || len(answer.Items) != 1 {
			b.Fatal("not one change")
		}
		seen = answer.Revision
	}
}

// BenchmarkAll is what opening a page costs.
func BenchmarkAll(b *testing.B) {
	f := newFeed(fleet(10_000))
	defer f.forget.Stop()
	b.ReportAllocs()
	for b.Loop() {
		encoded, err := json.Marshal(f.answerSince(""))
		if err != nil {
			b.Fatal(err)
		}
		b.ReportMetric(float64(len(encoded))/1e6, "MB-JSON")
	}
}
