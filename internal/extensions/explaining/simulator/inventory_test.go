package simulator

import (
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"
	"github.com/stretchr/testify/require"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kwok-dra/kwok-dra/internal/config"
	"github.com/kwok-dra/kwok-dra/internal/dractl/cli"
	"github.com/kwok-dra/kwok-dra/internal/dractl/documents"
	"github.com/kwok-dra/kwok-dra/internal/dractl/fleet"
	"github.com/kwok-dra/kwok-dra/internal/dractl/preview"
	"github.com/kwok-dra/kwok-dra/internal/extensions/inventory"
	"github.com/kwok-dra/kwok-dra/internal/observe/facts"
)

// rounds is how many devices of a world are given away, after each of which inventory and
// scheduler are compared.
const rounds = 6

// TestInventoryOfRandomWorlds: a device that the inventory calls available is one that
// the scheduler gives to a claim for just that device, and no other is.
func TestInventoryOfRandomWorlds(t *testing.T) {
	t.Parallel()
	states := map[inventory.State]int{}
	for seed := range uint64(60) {
		r := random{rand.New(rand.NewPCG(seed, 0))} //nolint:gosec // it is to be the same each time
		c := newComparison(t, fmt.Sprintf("seed %d", seed), r.world())
		for range rounds {
			c.compare(states)
			c.giveRandom(r)
		}
		c.compare(states)
	}
	for _, state := range []inventory.State{inventory.Free, inventory.Blocked, inventory.Allocated, inventory.Tainted} {
		require.Greater(t, states[state], 100, "devices that are %s", state)
	}
}

// profiles are the templates of all profiles, also of those within others.
func profiles(t *testing.T) []string {
	t.Helper()
	templates, err := filepath.Glob("../../../../kustomize/profiles/*/template.yaml")
	require.NoError(t, err)
	within, err := filepath.Glob("../../../../kustomize/profiles/*/*/template.yaml")
	require.NoError(t, err)
	require.NotEmpty(t, within)
	require.Greater(t, len(templates), 10)
	return append(templates, within...)
}

// TestInventoryOfProfiles does the same with nodes of each profile.
func TestInventoryOfProfiles(t *testing.T) {
	t.Parallel()
	for _, path := range profiles(t) {
		t.Run(filepath.Base(filepath.Dir(path)), func(t *testing.T) {
			t.Parallel()
			r := random{rand.New(rand.NewPCG(1, 0))} //nolint:gosec // it is to be the same each time
			c := newComparison(t, path, rendered(t, path, 1))
			for range 4 {
				c.giveRandom(r)
				c.compare(map[inventory.State]int{})
			}
		})
	}
}

// TestKindsOfProfiles: what is kept of all nodes of a profile is the same, so it is kept
// once.
func TestKindsOfProfiles(t *testing.T) {
	t.Parallel()
	for _, path := range profiles(t) {
		kinds := map[string][]string{} // by node
		c := comparison{world: rendered(t, path, 2)}
		for _, item := range c.inventory().Items {
			for _, pool := range item.Pools {
				if item.Node != "" {
					kinds[item.Node] = append(kinds[item.Node], pool.Kind)
				}
			}
		}
		different := map[string]bool{}
		for _, of := range kinds {
			different[strings.Join(of, " ")] = true
		}
		require.NotEmpty(t, kinds, path)
		require.LessOrEqual(t, 2*len(different), len(kinds), "%s: each of its templates has two nodes", path)
	}
}

// TestProductsOfProfiles: UUIDs of a profile differ, also between nodes, and a product is a name that
// people know. A CPU and a virtual function publish none, and partitions of the example driver have the
// UUID of their GPU.
func TestProductsOfProfiles(t *testing.T) {
	t.Parallel()
	want := map[string]struct{ product, uuid string }{
		"amd-mi300x": {"AMD_Instinct_MI300X_OAM", ""}, "auto-partition": {"AMD_Instinct_MI300X_OAM", ""}, "aws-trainium": {"trn2.48xlarge", ""},
		"cpu": {}, "cpu-example": {}, "dra-example-driver": {"LATEST-GPU-MODEL", ""}, "google-tpu-v5e": {"tpu-v5-lite-podslice", ""},
		"gpu-example": {"LATEST-GPU-MODEL", "gpu-"}, "intel-gaudi": {"Gaudi3", "AN"}, "net-example": {"LATEST-NET-MODEL", "net-"},
		"nvidia-gb200-nvl72": {"NVIDIA GB200", "GPU-"}, "nvidia-h100": {"NVIDIA H100 80GB HBM3", "GPU-"}, "nvidia-h100-mig": {"NVIDIA H100 80GB HBM3", "GPU-"},
		"nvidia-l4": {"NVIDIA L4", "GPU-"}, "nvidia-t4": {"Tesla T4", "GPU-"}, "rdma-nic": {"ConnectX-7", "b8:3f:d2:"},
		"sriov-nic": {}, "xilinx-u250": {"u250", "2133"},
	}
	for _, path := range profiles(t) {
		name := filepath.Base(filepath.Dir(path))
		expected, known := want[name]
		require.True(t, known, "%s: say what PRODUCT and UUID are to be", name)
		has := map[string]string{} // the UUID of a device, by product
		uuids := map[string]string{}
		for _, slice := range rendered(t, path, 2).Slices {
			for i := range slice.Spec.Devices {
				device := &slice.Spec.Devices[i]
				d := inventory.Describe(slice.Spec.Driver, device, slice.Spec.Devices)
				if _, known := has[d.Product]; !known {
					has[d.Product] = d.UUID
				}
				at := slice.Spec.Pool.Name + "/" + device.Name
				require.Empty(t, uuids[d.UUID], "%s: %s has the UUID %s too", name, at, d.UUID)
				if d.UUID != "" {
					uuids[d.UUID] = at
				}
			}
		}
		require.Contains(t, has, expected.product, name)
		require.True(t, strings.HasPrefix(has[expected.product], expected.uuid), "%s: %v", name, has)
		require.Equal(t, expected.uuid == "", has[expected.product] == "", "%s: %v", name, has)
		delete(has, expected.product)
		delete(has, "") // such as channels, and locks of partitions
		require.Empty(t, has, name)
	}
}

// TestPartsOfMIG: each of the 8 GPUs has 25 parts, one of which is as large as the GPU.
func TestPartsOfMIG(t *testing.T) {
	t.Parallel()
	c := comparison{world: rendered(t, "../../../../kustomize/profiles/nvidia-h100-mig/template.yaml", 1)}
	taken := c.inventory()
	pool := taken.Items[0].Pools[0]
	parts := map[string]int{}
	for i, device := range pool.Devices {
		whole := taken.Kinds[pool.Kind].Whole(i)
		parts[whole]++
		require.True(t, whole == "" || strings.HasPrefix(device.Name, whole+"-"), device.Name)
	}
	require.Equal(t, map[string]int{"": 8, "gpu-0": 25, "gpu-1": 25, "gpu-2": 25, "gpu-3": 25, "gpu-4": 25, "gpu-5": 25, "gpu-6": 25, "gpu-7": 25}, parts)
}

// exampleDriver is the DaemonSet of dra-example-driver, on which its profile depends.
const exampleDriver = `
---
apiVersion: apps/v1
kind: DaemonSet
metadata: {name: dra-example-driver-kubeletplugin}
spec:
  template:
    metadata: {labels: {app.kubernetes.io/name: dra-example-driver, app.kubernetes.io/component: kubeletplugin}}
    spec:
      containers:
      - name: plugin
        env:
        - {name: DEVICE_PROFILE, value: gpu}
        - {name: DRIVER_NAME, value: gpu.example.com}
        - {name: NUM_DEVICES, value: "4"}
        - {name: GPU_PARTITIONS, value: "4"}
        - {name: GPU_ALLOW_MULTIPLE_ALLOCATIONS, value: "false"}
        - {name: BINDING_CONDITIONS, value: "false"}
`

// rendered is a world with nodes of a template.
func rendered(t *testing.T, path string, count int) *World {
	t.Helper()
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	all := documents.Split(path, append(text, exampleDriver...))
	objects, err := documents.Objects(all)
	require.NoError(t, err)
	var drivers fleet.DriverPods
	for _, object := range objects {
		require.NoError(t, drivers.Add(object))
	}
	var decoded []*config.Documents
	for _, document := range all[:len(all)-1] { // the last one is the DaemonSet
		made, err := config.Decode(document.Where(), document.Data)
		require.NoError(t, err)
		decoded = append(decoded, made)
	}
	set, err := config.NewSet(decoded...)
	require.NoError(t, err)
	nodes, err := (&fleet.Counts{"": count}).Nodes(set.Templates)
	require.NoError(t, err)
	var server fleet.Server
	server.AddTo(&cobra.Command{})
	streams := cli.Streams{Out: io.Discard, ErrOut: io.Discard}
	made, err := server.Preview(t.Context(), streams, nil, preview.Cluster{Config: set.Published(), Nodes: nodes, Pods: drivers.On})
	require.NoError(t, err)
	require.NotEmpty(t, made.Create)
	return &World{Nodes: nodes, Slices: made.Create}
}

// comparison compares what the inventory of a world says with what the scheduler does.
type comparison struct {
	t         *testing.T
	name      string
	world     *World
	scheduler *Scheduler
}

// nameAttribute is the attribute by which a claim selects a device.
const nameAttribute = "test.example.com/name"

func newComparison(t *testing.T, name string, world *World) *comparison {
	t.Helper()
	world.Classes = append(world.Classes, &resourcev1.DeviceClass{ObjectMeta: metav1.ObjectMeta{Name: "any"}})
	for i, slice := range world.Slices {
		slice = slice.DeepCopy()
		slice.Name = fmt.Sprintf("slice-%03d", i)
		for j := range slice.Spec.Devices {
			device := &slice.Spec.Devices[j]
			attributes := map[resourcev1.QualifiedName]resourcev1.DeviceAttribute{nameAttribute: {StringValue: new(slice.Spec.Pool.Name + "/" + device.Name)}}
			device.Attributes = attributes
			for k := range device.Taints {
				device.Taints[k].TimeAdded = new(metav1.NewTime(time.Unix(1, 0)))
			}
		}
		world.Slices[i] = slice
	}
	return &comparison{t, name, world, NewScheduler(world)}
}

// inventory takes the inventory as the sidecar does.
func (c *comparison) inventory() *inventory.Inventory {
	var published []inventory.Slice
	for _, slice := range c.world.Slices {
		shown := inventory.SliceOf(slice)
		shown.Facts, shown.Taints = inventory.FactsOf(&slice.Spec), map[string][]inventory.Taint{}
		for device, taints := range facts.TimedTaints(slice.Spec.Devices) {
			shown.Taints[device] = inventory.TaintsOf(taints)
		}
		published = append(published, shown)
	}
	var allocations []inventory.Allocation
	for _, claim := range c.world.Claims {
		for i := range claim.Status.Allocation.Devices.Results {
			allocations = append(allocations, inventory.AllocationOf(claim, &claim.Status.Allocation.Devices.Results[i]))
		}
	}
	return (&inventory.Source{
		Nodes:       func() []string { return nil },
		Slices:      func() []inventory.Slice { return published },
		Allocations: func() []inventory.Allocation { return allocations },
		Changes:     func() uint64 { return 0 },
	}).Take()
}

func (c *comparison) compare(states map[inventory.State]int) {
	c.t.Helper()
	for _, item := range c.inventory().Items {
		for i := range item.Pools {
			pool := &item.Pools[i]
			require.LessOrEqual(c.t, pool.Usage.Used, pool.Usage.Total, c.name)
			for j := range pool.Devices {
				device := &pool.Devices[j]
				states[device.State]++
				given := c.give(pool, device.Name)
				require.Equal(c.t, pool.Complete() && device.Available(), given != nil,
					"%s: %s/%s/%s is %s, blocked by %q, used %v, claims %v", c.name, pool.Driver, pool.Name, device.Name, device.State, device.BlockedBy, device.Used, device.Claims)
			}
		}
	}
}

// give asks the scheduler for a device, or for the least of it that is permitted. It is
// nil if there is none.
func (c *comparison) give(pool *inventory.Pool, name string) *resourcev1.AllocationResult {
	c.t.Helper()
	for _, requests := range leastOf(c.published(pool, name)) {
		claim := &resourcev1.ResourceClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "trial"}}
		request := &resourcev1.ExactDeviceRequest{
			DeviceClassName: "any", AllocationMode: resourcev1.DeviceAllocationModeExactCount, Count: 1,
			Selectors: []resourcev1.DeviceSelector{selecting(fmt.Sprintf(`device.driver == %q && device.attributes["test.example.com"].name == %q`, pool.Driver, pool.Name+"/"+name))},
		}
		if len(requests) > 0 {
			request.Capacity = &resourcev1.CapacityRequirements{Requests: requests}
		}
		claim.Spec.Devices.Requests = []resourcev1.DeviceRequest{{Name: "r", Exactly: request}}
		for _, n := range c.scheduler.nodes {
			results, err := c.scheduler.allocateOn(c.t.Context(), n, []*resourcev1.ResourceClaim{claim})
			require.NoError(c.t, err, c.name)
			if results != nil {
				return &results[0]
			}
		}
	}
	return nil
}

func (c *comparison) published(pool *inventory.Pool, name string) *resourcev1.Device {
	for _, slice := range c.world.Slices {
		if slice.Spec.Driver != pool.Driver || slice.Spec.Pool.Name != pool.Name || slice.Spec.Pool.Generation != pool.Generation {
			continue
		}
		for i := range slice.Spec.Devices {
			if slice.Spec.Devices[i].Name == name {
				return &slice.Spec.Devices[i]
			}
		}
	}
	c.t.Fatalf("%s: no device %s", c.name, name)
	return nil
}

// leastOf are requests for as little of a device as can be asked for: each capacity is
// named, or is not.
func leastOf(device *resourcev1.Device) []map[resourcev1.QualifiedName]resource.Quantity {
	all := []map[resourcev1.QualifiedName]resource.Quantity{{}}
	if device.AllowMultipleAllocations == nil {
		return all
	}
	for name, offered := range device.Capacity {
		least := resource.MustParse("1m")
		if policy := offered.RequestPolicy; policy != nil && policy.ValidRange != nil {
			if least = *policy.ValidRange.Min; least.IsZero() && policy.ValidRange.Step != nil {
				least = *policy.ValidRange.Step
			} else if least.IsZero() {
				least = resource.MustParse("1m")
			}
		}
		for _, without := range all {
			with := maps.Clone(without)
			with[name] = least
			all = append(all, with)
		}
	}
	return all
}

// giveRandom gives a device to a claim, mostly as the scheduler would, but at times as a
// hand edit may.
func (c *comparison) giveRandom(r random) {
	c.t.Helper()
	items := c.inventory().Items
	item := items[r.IntN(len(items))]
	if len(item.Pools) == 0 {
		return
	}
	pool := &item.Pools[r.IntN(len(item.Pools))]
	if len(pool.Devices) == 0 {
		return
	}
	device := &pool.Devices[r.IntN(len(pool.Devices))]
	allocation := c.give(pool, device.Name)
	if r.IntN(3) == 0 {
		allocation = r.allocation(pool, c.published(pool, device.Name))
	}
	if allocation == nil {
		return
	}
	claim := &resourcev1.ResourceClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: fmt.Sprint("c-", len(c.world.Claims))}}
	claim.Status.Allocation = allocation
	c.world.Claims = append(c.world.Claims, claim)
	addAllocated(c.scheduler.allocated, allocation)
}
