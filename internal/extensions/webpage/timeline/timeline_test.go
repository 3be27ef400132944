package timeline

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/kwok-dra/kwok-dra/internal/extensions/inventory"
	"github.com/kwok-dra/kwok-dra/internal/observe/facts"
)

// fleet is what inventories are taken of.
type fleet struct {
	nodes       []string
	slices      []inventory.Slice
	allocations []inventory.Allocation
}

func (f *fleet) take() *inventory.Inventory {
	source := inventory.Source{
		Nodes:       func() []string { return f.nodes },
		Slices:      func() []inventory.Slice { return f.slices },
		Allocations: func() []inventory.Allocation { return f.allocations },
	}
	return source.Take()
}

// publish publishes a node's pool of some devices.
func (f *fleet) publish(node, driver string, devices int, tainted ...string) {
	var specs []resourcev1.Device
	for i := range devices {
		specs = append(specs, resourcev1.Device{Name: fmt.Sprint("gpu-", i)})
	}
	slice := inventory.Slice{Node: node, Driver: driver, Pool: node, Name: "0", Generation: 1, Count: 1, Devices: facts.NamesOf(specs)}
	for _, name := range tainted {
		taint := inventory.Taint{Key: "k", Effect: resourcev1.DeviceTaintEffectNoExecute}
		slice.Taints = map[string][]inventory.Taint{name: {taint}}
	}
	f.slices = append(f.slices, slice)
}

func (f *fleet) allocate(node, driver, device string, claim inventory.Claim) {
	claim.Namespace = "default"
	f.allocations = append(f.allocations, inventory.Allocation{Driver: driver, Pool: node, Device: device, Claim: claim})
}

// share publishes a pool that nodes share. A claim takes some of its device.
func (f *fleet) share(pool string, consumed int64) {
	device := resourcev1.Device{Name: "port", AllowMultipleAllocations: new(true), Capacity: map[resourcev1.QualifiedName]resourcev1.DeviceCapacity{
		"lanes": {Value: *resource.NewQuantity(10, resource.DecimalSI)},
	}}
	spec := &resourcev1.ResourceSliceSpec{Devices: []resourcev1.Device{device}}
	f.slices = append(f.slices, inventory.Slice{
		Driver: "a", Pool: pool, Name: "0", Generation: 1, Count: 2, Devices: facts.NamesOf(spec.Devices), Sharing: inventory.SharingOf(spec),
	})
	taken := map[resourcev1.QualifiedName]resource.Quantity{"lanes": *resource.NewQuantity(consumed, resource.DecimalSI)}
	f.allocate(pool, "a", "port", inventory.Claim{Name: "c", ShareID: "1", Consumed: taken})
}

// randomFleet has some nodes without devices, and a pool that nodes share.
func randomFleet(random *rand.Rand) *fleet {
	f := &fleet{}
	for n := range random.IntN(6) {
		name := fmt.Sprint("n", n)
		f.nodes = append(f.nodes, name)
		for _, driver := range []string{"a", "b"}[:random.IntN(3)] {
			f.publish(name, driver, random.IntN(5), []string{"gpu-0", "gpu-2"}[:random.IntN(3)]...)
			last := &f.slices[len(f.slices)-1]
			last.Count, last.Generation = 1+random.Int64N(2), 1+random.Int64N(2)
			for d := range random.IntN(5) {
				f.allocate(name, driver, fmt.Sprint("gpu-", d), randomClaim(random))
			}
		}
	}
	if random.IntN(3) > 0 {
		f.share("shared", 1+random.Int64N(3))
		if random.IntN(2) > 0 {
			f.slices = append(f.slices, inventory.Slice{Driver: "a", Pool: "shared", Name: "1", Generation: 1, Count: 2})
		}
	}
	return f
}

func randomClaim(random *rand.Rand) inventory.Claim {
	claim := inventory.Claim{
		Name: fmt.Sprint("c", random.IntN(3)), Prepared: random.IntN(2) == 0, AdminAccess: random.IntN(4) == 0, Pods: []string{"p"},
	}
	if random.IntN(4) == 0 {
		claim.Failure = "no"
	}
	return claim
}

// remembered is what is remembered of an inventory.
func remembered(all *inventory.Inventory) *inventory.Inventory {
	reduced := &inventory.Inventory{Drivers: all.Drivers, Items: []*inventory.Item{}}
	for _, item := range all.Items {
		copied := &inventory.Item{ID: item.ID, Node: item.Node, Pools: []inventory.Pool{}}
		for _, pool := range item.Pools {
			devices := pool.Devices
			pool.Devices = nil
			for _, d := range devices {
				device := inventory.Device{Name: d.Name, State: d.State}
				for _, c := range d.Claims {
					device.Claims = append(device.Claims, inventory.Claim{Namespace: c.Namespace, Name: c.Name, Prepared: c.Prepared, AdminAccess: c.AdminAccess})
				}
				pool.Devices = append(pool.Devices, device)
			}
			copied.Pools = append(copied.Pools, pool)
		}
		reduced.Items = append(reduced.Items, copied)
	}
	return reduced
}

var start = time.Date(2026, 1, 2, 3, 0, 0, 0, time.UTC)

// TestPast: each inventory that is remembered can be told again, and so can the totals
// at the end of each bucket.
func TestPast(t *testing.T) {
	t.Parallel()
	for seed := range uint64(300) {
		random := rand.New(rand.NewPCG(seed, 0))
		var line Timeline
		var noted []*inventory.Inventory
		for i := range 20 {
			all := randomFleet(random).take()
			line.Note(all, start.Add(time.Duration(i)*5*time.Second))
			noted = append(noted, remembered(all))
		}
		for i, want := range noted {
			at := start.Add(time.Duration(i) * 5 * time.Second)
			got, which := line.At(at.Add(time.Duration(random.IntN(4999)) * time.Millisecond))
			require.Equal(t, want, got, "seed %d, inventory %d", seed, i)
			require.False(t, which.Before(at))
		}
		for i, bucket := range line.Report(start.Add(99 * time.Second)).Buckets {
			require.Equal(t, noted[i].Drivers, bucket.Drivers, "seed %d, bucket %d", seed, i)
		}
	}
}

// TestPastIsBounded: of what was before it, nothing is told.
func TestPastIsBounded(t *testing.T) {
	t.Parallel()
	var line Timeline
	empty, _ := line.At(start)
	require.Equal(t, &inventory.Inventory{Drivers: []inventory.Driver{}, Items: []*inventory.Item{}}, empty)
	f := &fleet{}
	line.Note(f.take(), start)
	f.publish("n", "d", 1)
	line.Note(f.take(), start.Add(time.Minute))
	for asked, want := range map[time.Duration]time.Duration{-time.Hour: 0, 0: 0, 30 * time.Second: 30 * time.Second, time.Hour: time.Minute} {
		_, at := line.At(start.Add(asked))
		require.Equal(t, start.Add(want), at)
	}
	early, _ := line.At(start.Add(59 * time.Second))
	require.Empty(t, early.Items)
	late, _ := line.At(start.Add(time.Minute))
	require.Len(t, late.Items, 1)
}

// TestForget: what is too old, and the oldest of what is too much.
func TestForget(t *testing.T) {
	t.Parallel()
	var line Timeline
	f := &fleet{}
	line.Note(f.take(), start)
	f.publish("n", "d", 1)
	line.Note(f.take(), start.Add(10*time.Minute))
	require.Equal(t, start, line.Report(start.Add(20*time.Minute)).Begins)
	require.Len(t, line.changes, 1)
	report := line.Report(start.Add(71 * time.Minute))
	require.Equal(t, start.Add(11*time.Minute), report.Begins)
	require.Empty(t, report.Changes)
	require.Zero(t, line.size)

	at := start.Add(71 * time.Minute)
	name := strings.Repeat("n", 200)
	for i := range 2 * maxSize / 300 {
		at = at.Add(time.Millisecond)
		f.allocations = nil
		f.allocate("n", "d", "gpu-0", inventory.Claim{Name: fmt.Sprint(name, i)})
		line.Note(f.take(), at)
	}
	require.LessOrEqual(t, line.size, maxSize)
	require.Greater(t, line.size, maxSize*9/10)
	report = line.Report(at)
	require.Greater(t, report.Begins, start.Add(71*time.Minute))
	first, _ := line.At(report.Begins)
	require.Equal(t, inventory.Allocated, first.Items[0].Pools[0].Devices[0].State)
}

// TestClockSetBack: the order of the changes stays.
func TestClockSetBack(t *testing.T) {
	t.Parallel()
	var line Timeline
	f := &fleet{}
	line.Note(f.take(), start)
	f.publish("n", "d", 1)
	line.Note(f.take(), start.Add(-time.Hour))
	now, at := line.At(start)
	require.Len(t, now.Items, 1)
	require.Equal(t, start, at)
}
