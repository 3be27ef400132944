package browser

import (
	"cmp"
	"context"
	"fmt"
	"net/http/httptest"
	"slices"
	"sync"
	"testing"
	"time"

	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kwok-dra/kwok-dra/internal/extensions/explaining/why"
	"github.com/kwok-dra/kwok-dra/internal/extensions/inventory"
	"github.com/kwok-dra/kwok-dra/internal/extensions/webpage/page"
	"github.com/kwok-dra/kwok-dra/internal/observe/facts"
)

const (
	gpus = "gpu.nvidia.com"
	nics = "dra.net.example.com"
)

// fleet is a source that tests change.
type fleet struct {
	mu     sync.Mutex
	nodes  []string
	labels map[string]map[string]string
	slices []inventory.Slice
	// published are the same as the API server has them, by name.
	published   map[string]*resourcev1.ResourceSlice
	allocations []inventory.Allocation
	// notReady are nodes that are not ready.
	notReady map[string]bool
	waiting  []page.WaitingPod
	// reasons are why Pods wait, where it is not for want of sixteen devices.
	reasons     map[string]string
	unexplained error
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
		Nodes:       func() []string { f.mu.Lock(); defer f.mu.Unlock(); return append([]string(nil), f.nodes...) },
		IsNodeReady: func(name string) bool { f.mu.Lock(); defer f.mu.Unlock(); return !f.notReady[name] },
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

// options are what a page of the fleet is made from.
func (f *fleet) options() page.Options {
	return page.Options{
		Source: f.source(),
		Labels: func(yield func(string, map[string]string) bool) {
			f.mu.Lock()
			defer f.mu.Unlock()
			for _, node := range f.nodes {
				if !yield(node, f.labels[node]) {
					return
				}
			}
		},
		Slice: func(_ context.Context, name string) (*resourcev1.ResourceSlice, error) {
			f.mu.Lock()
			defer f.mu.Unlock()
			return f.published[name], nil
		},
		Waiting: func(context.Context) ([]page.WaitingPod, error) {
			f.mu.Lock()
			defer f.mu.Unlock()
			return slices.Clone(f.waiting), nil
		},
		Why: func(_ context.Context, pods []types.NamespacedName) ([]*why.Answer, error) {
			f.mu.Lock()
			defer f.mu.Unlock()
			if f.unexplained != nil {
				return nil, f.unexplained
			}
			var answers []*why.Answer
			for _, pod := range pods {
				answers = append(answers, &why.Answer{
					Subject: why.Subject{Namespace: pod.Namespace, Pod: pod.Name}, State: why.Unscheduled,
					Reason:  cmp.Or(f.reasons[pod.Name], "no node has the devices: claim training-0-gpu, request gpus wants 16 of class gpu.nvidia.com: 24 devices of the class on 3 nodes, 24 left; nearest: node h100-0 lacks 8"),
					Details: []string{"3 nodes (h100-0, h100-1, h100-2): claim training-0-gpu, request gpus wants 16: devices 8, class gpu.nvidia.com 8"},
				})
			}
			return answers, nil
		},
	}
}

// serve serves the page of a fleet and returns its address.
func (f *fleet) serve(t *testing.T) string {
	t.Helper()
	server := httptest.NewServer(page.New(f.options()))
	t.Cleanup(server.Close)
	return server.URL
}

// newFleet makes nodes with 8 GPUs each, in all states.
func newFleet(nodes int) *fleet {
	f := &fleet{labels: map[string]map[string]string{}, published: map[string]*resourcev1.ResourceSlice{}}
	for n := range nodes {
		f.addNode(fmt.Sprintf("h100-%d", n), n)
	}
	return f
}

func (f *fleet) addNode(name string, seed int) {
	f.nodes = append(f.nodes, name)
	f.labels[name] = map[string]string{"node.kubernetes.io/instance-type": "p5.48xlarge", "zone": fmt.Sprint("zone-", seed%3)}
	if seed%2 == 0 {
		f.labels[name]["topology.kubernetes.io/rack"] = fmt.Sprint("r", seed%4)
	}
	slice := f.publish(newSpec(gpus, name, name, newGPUs(name, 8)))
	if seed%7 == 3 {
		slice.Taints = map[string][]inventory.Taint{fmt.Sprint("gpu-", seed%8): {xid}}
	}
	for d := range (seed * 5) % 9 {
		f.allocate(gpus, name, fmt.Sprint("gpu-", d), inventory.Claim{
			Namespace: "research", Name: fmt.Sprintf("training-%d-gpu-%d", seed, d), Prepared: d%4 != 3, Pods: []string{fmt.Sprintf("training-%d-%d", seed, d)},
		})
	}
}

var xid = inventory.Taint{Key: "gpu.nvidia.com/xid", Value: "79", Effect: resourcev1.DeviceTaintEffectNoExecute, TimeAdded: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)}

// newGPUs are whole GPUs, four at each NUMA node.
func newGPUs(node string, count int) []resourcev1.Device {
	var devices []resourcev1.Device
	for d := range count {
		devices = append(devices, resourcev1.Device{
			Name: fmt.Sprint("gpu-", d),
			Attributes: map[resourcev1.QualifiedName]resourcev1.DeviceAttribute{
				"uuid":                            {StringValue: new(fmt.Sprintf("GPU-%s-%d", node, d))},
				"productName":                     {StringValue: new("NVIDIA H100 80GB HBM3")},
				"resource.kubernetes.io/numaNode": {IntValue: new(int64(d / 4))},
				"resource.kubernetes.io/pcieRoot": {StringValue: new(fmt.Sprintf("pci0000:%d0", d))},
			},
			Capacity: map[resourcev1.QualifiedName]resourcev1.DeviceCapacity{"memory": {Value: resource.MustParse("80Gi")}},
		})
	}
	return devices
}

func newSpec(driver, pool, node string, devices []resourcev1.Device) *resourcev1.ResourceSliceSpec {
	spec := &resourcev1.ResourceSliceSpec{Driver: driver, Pool: resourcev1.ResourcePool{Name: pool, Generation: 1, ResourceSliceCount: 1}, Devices: devices}
	if node != "" {
		spec.NodeName = &node
	}
	return spec
}

// publish adds a slice, and returns what the sidecar keeps of it.
func (f *fleet) publish(spec *resourcev1.ResourceSliceSpec) *inventory.Slice {
	name := fmt.Sprint("slice-", len(f.slices))
	f.published[name] = &resourcev1.ResourceSlice{Spec: *spec}
	f.slices = append(f.slices, inventory.Slice{
		Driver: spec.Driver, Pool: spec.Pool.Name, Name: name, Generation: spec.Pool.Generation, Count: spec.Pool.ResourceSliceCount,
		Devices: facts.NamesOf(spec.Devices), Sharing: inventory.SharingOf(spec), Facts: inventory.FactsOf(spec),
	})
	slice := &f.slices[len(f.slices)-1]
	if spec.NodeName != nil {
		slice.Node = *spec.NodeName
	}
	return slice
}

// add publishes devices without facts.
func (f *fleet) add(driver, pool, node, device string, count int) *inventory.Slice {
	var devices []resourcev1.Device
	for d := range count {
		devices = append(devices, resourcev1.Device{Name: fmt.Sprintf("%s-%d", device, d)})
	}
	return f.publish(newSpec(driver, pool, node, devices))
}

// addMIG adds a node with 8 GPUs that are published whole and in 25 partitions each.
func (f *fleet) addMIG(name string) {
	f.nodes = append(f.nodes, name)
	f.labels[name] = map[string]string{"node.kubernetes.io/instance-type": "p5.48xlarge"}
	sets := newSpec(gpus, name, name, nil)
	devices := newSpec(gpus, name, name, nil)
	sets.Pool.ResourceSliceCount, devices.Pool.ResourceSliceCount = 2, 2
	for _, gpu := range newGPUs(name, 8) {
		set := resourcev1.CounterSet{Name: gpu.Name, Counters: counters("80Gi", 0, 8)}
		sets.SharedCounters = append(sets.SharedCounters, set)
		gpu.ConsumesCounters = []resourcev1.DeviceCounterConsumption{{CounterSet: gpu.Name, Counters: set.Counters}}
		devices.Devices = append(devices.Devices, gpu)
		for _, p := range partitions {
			for _, at := range p.placements {
				devices.Devices = append(devices.Devices, resourcev1.Device{
					Name:             fmt.Sprintf("%s-mig-%s-%d", gpu.Name, p.name, at),
					Attributes:       map[resourcev1.QualifiedName]resourcev1.DeviceAttribute{"profile": {StringValue: &p.name}, "productName": gpu.Attributes["productName"]},
					Capacity:         map[resourcev1.QualifiedName]resourcev1.DeviceCapacity{"memory": {Value: resource.MustParse(p.memory)}},
					ConsumesCounters: []resourcev1.DeviceCounterConsumption{{CounterSet: gpu.Name, Counters: counters(p.memory, at, p.size)}},
				})
			}
		}
	}
	f.publish(sets)
	f.publish(devices)
}

var partitions = []struct {
	name, memory string
	size         int
	placements   []int
}{
	{"1g10gb", "10Gi", 1, []int{0, 1, 2, 3, 4, 5, 6}},
	{"1g10gb-me", "10Gi", 1, []int{0, 1, 2, 3, 4, 5, 6}},
	{"1g20gb", "20Gi", 2, []int{0, 2, 4, 6}},
	{"2g20gb", "20Gi", 2, []int{0, 2, 4}},
	{"3g40gb", "40Gi", 4, []int{0, 4}},
	{"4g40gb", "40Gi", 4, []int{0}},
	{"7g80gb", "80Gi", 8, []int{0}},
}

// counters are memory, and those of the places that a partition takes.
func counters(memory string, from, size int) map[string]resourcev1.Counter {
	all := map[string]resourcev1.Counter{"memory": {Value: resource.MustParse(memory)}}
	for at := from; at < from+size; at++ {
		all[fmt.Sprint("memory-slice-", at)] = resourcev1.Counter{Value: resource.MustParse("1")}
	}
	return all
}

func (f *fleet) allocate(driver, pool, device string, claim inventory.Claim) {
	f.allocations = append(f.allocations, inventory.Allocation{Driver: driver, Pool: pool, Device: device, Claim: claim})
}

// addNICs gives each node two NICs, and all nodes a fabric, of which a slice is
// missing.
func (f *fleet) addNICs() {
	for _, name := range f.nodes {
		f.add(nics, name, name, "nic", 2)
	}
	f.add(nics, "fabric", "", "port", 64).Count = 2
	for share := range 3 {
		f.allocate(nics, "fabric", "port-9", inventory.Claim{
			Namespace: "research", Name: fmt.Sprint("uplink-", share), ShareID: fmt.Sprint("4d1c-", share), Pods: []string{fmt.Sprint("training-", share)},
		})
	}
}
