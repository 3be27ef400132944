package browser

import (
	"fmt"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	resourcev1 "k8s.io/api/resource/v1"

	"github.com/kwok-dra/kwok-dra/pkg/inventory"
	"github.com/kwok-dra/kwok-dra/pkg/page"
)

const (
	gpus = "gpu.nvidia.com"
	nics = "dra.net.example.com"
)

// fleet is a source that tests change.
type fleet struct {
	mu          sync.Mutex
	nodes       []string
	slices      []inventory.Slice
	allocations []inventory.Allocation
	changes     uint64
}

// change changes the fleet, and has pages told.
func (f *fleet) change(change func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	change()
	f.changes++
}

func (f *fleet) source() *inventory.Source {
	return &inventory.Source{
		Nodes: func() []string { f.mu.Lock(); defer f.mu.Unlock(); return append([]string(nil), f.nodes...) },
		Slices: func() []inventory.Slice {
			f.mu.Lock()
			defer f.mu.Unlock()
			return append([]inventory.Slice(nil), f.slices...)
		},
		Allocations: f.allAllocations,
		Changes:     func() uint64 { f.mu.Lock(); defer f.mu.Unlock(); return f.changes },
	}
}

func (f *fleet) allAllocations() []inventory.Allocation {
	f.mu.Lock()
	defer f.mu.Unlock()
	return append([]inventory.Allocation(nil), f.allocations...)
}

// serve serves the page of a fleet and returns its address.
func (f *fleet) serve(t *testing.T) string {
	t.Helper()
	server := httptest.NewServer(page.New(f.source()))
	t.Cleanup(server.Close)
	return server.URL
}

// newFleet makes nodes with 8 GPUs each, in all states.
func newFleet(nodes int) *fleet {
	f := &fleet{}
	for n := range nodes {
		f.addNode(fmt.Sprintf("h100-%d", n), n)
	}
	return f
}

func (f *fleet) addNode(name string, seed int) {
	f.nodes = append(f.nodes, name)
	slice := newSlice(gpus, name, "gpu", 8)
	slice.Node = name
	if seed%7 == 3 {
		slice.Taints = map[string][]inventory.Taint{fmt.Sprint("gpu-", seed%8): {xid}}
	}
	f.slices = append(f.slices, slice)
	for d := range (seed * 5) % 9 {
		f.allocate(gpus, name, fmt.Sprint("gpu-", d), inventory.Claim{
			Namespace: "research", Name: fmt.Sprintf("training-%d-gpu-%d", seed, d), Prepared: d%4 != 3, Pods: []string{fmt.Sprintf("training-%d-%d", seed, d)},
		})
	}
}

var xid = inventory.Taint{Key: "gpu.nvidia.com/xid", Value: "79", Effect: resourcev1.DeviceTaintEffectNoExecute, TimeAdded: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)}

func newSlice(driver, pool, device string, count int) inventory.Slice {
	var devices []resourcev1.Device
	for d := range count {
		devices = append(devices, resourcev1.Device{Name: fmt.Sprintf("%s-%d", device, d)})
	}
	return inventory.Slice{Driver: driver, Pool: pool, Name: "0", Generation: 1, Count: 1, Devices: inventory.NamesOf(devices)}
}

func (f *fleet) allocate(driver, pool, device string, claim inventory.Claim) {
	f.allocations = append(f.allocations, inventory.Allocation{Driver: driver, Pool: pool, Device: device, Claim: claim})
}

// addNICs gives each node two NICs, and all nodes a fabric, of which a slice is
// missing.
func (f *fleet) addNICs() {
	for _, name := range f.nodes {
		slice := newSlice(nics, name, "nic", 2)
		slice.Node = name
		f.slices = append(f.slices, slice)
	}
	fabric := newSlice(nics, "fabric", "port", 64)
	fabric.Count = 2
	f.slices = append(f.slices, fabric)
	for share := range 3 {
		f.allocate(nics, "fabric", "port-9", inventory.Claim{
			Namespace: "research", Name: fmt.Sprint("uplink-", share), ShareID: fmt.Sprint("4d1c-", share), Pods: []string{fmt.Sprint("training-", share)},
		})
	}
}
