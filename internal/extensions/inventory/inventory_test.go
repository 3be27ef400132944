package inventory

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/require"
	resourcev1 "k8s.io/api/resource/v1"

	"github.com/kwok-dra/kwok-dra/internal/observe/facts"
)

// fixed is a source that does not change.
func fixed(nodes []string, slices []Slice, allocations ...Allocation) *Source {
	return &Source{
		Nodes:       func() []string { return nodes },
		Slices:      func() []Slice { return slices },
		Allocations: func() []Allocation { return allocations },
		Changes:     func() uint64 { return 0 },
	}
}

// named are the names of devices, given as one text.
func named(names string) facts.DeviceNames {
	var devices []resourcev1.Device
	for name := range strings.FieldsSeq(names) {
		devices = append(devices, resourcev1.Device{Name: name})
	}
	return facts.NamesOf(devices)
}

// slice is the only slice of driver d's pool on a node.
func slice(node, devices string) Slice {
	return Slice{Node: node, Driver: "d", Pool: node, Name: "0", Generation: 1, Count: 1, Devices: named(devices)}
}

func allocation(pool, device string, claim Claim) Allocation {
	return Allocation{Driver: "d", Pool: pool, Device: device, Claim: claim}
}

func taint(effect resourcev1.DeviceTaintEffect) Taint {
	return Taint{Key: "k", Effect: effect, TimeAdded: time.Unix(1, 0).UTC()}
}

func TestStates(t *testing.T) {
	t.Parallel()
	allocated, prepared := Claim{Name: "a"}, Claim{Name: "p", Prepared: true}
	looking, failing := Claim{Name: "l", AdminAccess: true, Prepared: true}, Claim{Name: "f", Failure: "no"}
	noSchedule, noExecute := taint(resourcev1.DeviceTaintEffectNoSchedule), taint(resourcev1.DeviceTaintEffectNoExecute)
	none := taint(resourcev1.DeviceTaintEffectNone)
	for name, test := range map[string]struct {
		device Device
		want   State
	}{
		"nothing":                       {Device{}, Free},
		"allocated":                     {Device{Claims: []Claim{allocated}}, Allocated},
		"prepared":                      {Device{Claims: []Claim{prepared}}, Prepared},
		"shared, one prepared":          {Device{Claims: []Claim{allocated, prepared}}, Prepared},
		"admin access":                  {Device{Claims: []Claim{looking}}, Free},
		"failing":                       {Device{Claims: []Claim{allocated, failing}}, Failing},
		"failing, shared":               {Device{Claims: []Claim{failing, prepared}}, Failing},
		"failing, tainted":              {Device{Taints: []Taint{noExecute}, Claims: []Claim{failing}}, Tainted},
		"blocked":                       {Device{BlockedBy: "x"}, Blocked},
		"blocked, admin access":         {Device{BlockedBy: "x", Claims: []Claim{looking}}, Blocked},
		"blocked, tainted":              {Device{BlockedBy: "x", Taints: []Taint{noSchedule}}, Tainted},
		"all of it is taken":            {Device{BlockedBy: "x", Claims: []Claim{allocated}}, Allocated},
		"admin access to an allocated":  {Device{Claims: []Claim{looking, allocated}}, Allocated},
		"no schedule":                   {Device{Taints: []Taint{noSchedule}}, Tainted},
		"no execute, allocated":         {Device{Taints: []Taint{none, noExecute}, Claims: []Claim{allocated}}, Tainted},
		"no execute, prepared":          {Device{Taints: []Taint{noExecute}, Claims: []Claim{prepared}}, Tainted},
		"without effect":                {Device{Taints: []Taint{none}}, Free},
		"without effect, but allocated": {Device{Taints: []Taint{none}, Claims: []Claim{allocated}}, Allocated},
	} {
		require.Equal(t, test.want, test.device.computeState(), name)
	}
}

func TestTake(t *testing.T) {
	t.Parallel()
	fabric := Slice{Driver: "e", Pool: "rack/fabric", Name: "0", Generation: 3, Count: 1, Devices: named("port-0 port-1")}
	broken := slice("n2", "gpu-0 gpu-1")
	broken.Taints = map[string][]Taint{"gpu-1": {taint(resourcev1.DeviceTaintEffectNoExecute)}}
	second := Slice{Node: "n1", Driver: "a", Pool: "n1", Name: "0", Generation: 1, Count: 1, Devices: named("nic")}
	one, two := Claim{Namespace: "x", Name: "c", ShareID: "1"}, Claim{Namespace: "x", Name: "c", ShareID: "2", Pods: []string{"p"}}
	other := Claim{Namespace: "a", Name: "z"}
	got := fixed([]string{"n1", "idle"}, []Slice{slice("n1", "gpu-0 gpu-1"), broken, fabric, second},
		allocation("n2", "gpu-1", other),
		Allocation{Driver: "e", Pool: "rack/fabric", Device: "port-1", Claim: two},
		Allocation{Driver: "e", Pool: "rack/fabric", Device: "port-1", Claim: one},
		Allocation{Driver: "e", Pool: "rack/fabric", Device: "port-1", Claim: other},
		allocation("gone", "gpu-0", other),
		Allocation{Driver: "of others", Pool: "n1", Device: "gpu-0", Claim: other},
	).Take()
	forgetKinds(got)
	pool := func(driver, name string, generation int64, used float64, devices ...Device) Pool {
		usage := Usage{Used: used, Total: float64(len(devices))}
		return Pool{Driver: driver, Name: name, Generation: generation, Slices: 1, SliceCount: 1, Usage: usage, Devices: devices}
	}
	require.Equal(t, []*Item{
		{ID: "node/idle", Node: "idle", Pools: []Pool{}},
		{ID: "node/n1", Node: "n1", Pools: []Pool{
			pool("a", "n1", 1, 0, Device{Name: "nic"}),
			pool("d", "n1", 1, 0, Device{Name: "gpu-0"}, Device{Name: "gpu-1"}),
		}},
		{ID: "node/n2", Node: "n2", Pools: []Pool{
			pool("d", "n2", 1, 1, Device{Name: "gpu-0"}, Device{Name: "gpu-1", State: Tainted, Taints: broken.Taints["gpu-1"], Claims: []Claim{other}}),
		}},
		{ID: "pool/e/rack/fabric", Pools: []Pool{
			pool("e", "rack/fabric", 3, 1, Device{Name: "port-0"}, Device{Name: "port-1", State: Allocated, Claims: []Claim{other, one, two}}),
		}},
	}, got.Items)
	require.Equal(t, []Driver{
		{Name: "a", Pools: 1, Usage: Usage{0, 1}, States: Counts{Free: 1}},
		{Name: "d", Pools: 2, Usage: Usage{1, 4}, States: Counts{Free: 3, Tainted: 1}},
		{Name: "e", Pools: 1, Usage: Usage{1, 2}, States: Counts{Free: 1, Allocated: 1}},
	}, got.Drivers)
}

// forgetKinds empties the ids of kinds, which are different in each process.
func forgetKinds(i *Inventory) {
	for _, item := range i.Items {
		for p := range item.Pools {
			item.Pools[p].Kind = ""
		}
	}
}

func TestTakeOfNothing(t *testing.T) {
	t.Parallel()
	encoded, err := json.Marshal(fixed(nil, nil).Take())
	require.NoError(t, err)
	require.JSONEq(t, `{"drivers": [], "items": []}`, string(encoded))
}

// TestTakeFollowsThePool: devices are those of the newest generation, in the
// order of the slices' names, and the pool reports whether it has them all.
func TestTakeFollowsThePool(t *testing.T) {
	t.Parallel()
	of := func(name string, generation int64, devices string) Slice {
		return Slice{Node: "n", Driver: "d", Pool: "n", Name: name, Generation: generation, Count: 2, Devices: named(devices)}
	}
	for name, test := range map[string]struct {
		slices   []Slice
		devices  string
		complete bool
	}{
		"complete":           {[]Slice{of("2", 1, "c"), of("1", 1, "a b")}, "a b c", true},
		"one is missing":     {[]Slice{of("1", 1, "a b")}, "a b", false},
		"one is of old":      {[]Slice{of("1", 1, "a b"), of("2", 2, "c")}, "c", false},
		"old ones, first":    {[]Slice{of("1", 1, "a"), of("2", 2, "c"), of("3", 2, "d")}, "c d", true},
		"old ones, last":     {[]Slice{of("2", 2, "c"), of("3", 2, "d"), of("1", 1, "a")}, "c d", true},
		"one too many":       {[]Slice{of("1", 1, "a"), of("2", 1, "b"), of("3", 1, "c")}, "a b c", false},
		"one has no devices": {[]Slice{of("1", 1, ""), of("2", 1, "b")}, "b", true},
		"none has devices":   {[]Slice{of("1", 1, ""), of("2", 1, "")}, "", true},
	} {
		got := fixed(nil, test.slices).Take()
		pool := got.Items[0].Pools[0]
		var devices []string
		for _, device := range pool.Devices {
			devices = append(devices, device.Name)
		}
		require.Equal(t, test.devices, strings.Join(devices, " "), name)
		require.Equal(t, test.complete, pool.Complete(), name)
		require.Equal(t, test.complete, got.Drivers[0].IncompletePools == 0, name)
	}
}

// TestTakeSharesWhatIsFree: slices of the same names share their devices, and
// appending to those of one does not touch the others.
func TestTakeSharesWhatIsFree(t *testing.T) {
	t.Parallel()
	longer := slice("n1", "a b")
	longer.Count = 2
	more := longer
	more.Name, more.Devices = "1", named("c")
	got := fixed(nil, []Slice{longer, more, slice("n2", "a b"), slice("n3", "a b")}).Take()
	require.Len(t, got.Items[0].Pools[0].Devices, 3)
	second, third := got.Items[1].Pools[0].Devices, got.Items[2].Pools[0].Devices
	require.Equal(t, []Device{{Name: "a"}, {Name: "b"}}, second)
	require.Same(t, &second[0], &third[0])
}

func TestNames(t *testing.T) {
	t.Parallel()
	require.Equal(t, []string{"gpu-0", "gpu-1"}, named("gpu-0 gpu-1").List())
	first, second := named("gpu-0 gpu-1"), named("gpu-0 gpu-1")
	require.Equal(t, first, second, "names that are the same are equal")
	require.NotEqual(t, named("gpu-0 gpu-1"), named("gpu-0"))
	require.Empty(t, named("").List())
	require.Empty(t, facts.DeviceNames{}.List())
}

func TestJSON(t *testing.T) {
	t.Parallel()
	broken := slice("n", "gpu-0 gpu-1")
	broken.Count = 2
	broken.Taints = map[string][]Taint{"gpu-0": {taint(resourcev1.DeviceTaintEffectNoSchedule)}}
	shared := Slice{Driver: "d", Pool: "p", Name: "0", Generation: 1, Count: 1, Devices: named("port")}
	taken := fixed(nil, []Slice{broken, shared}, allocation("p", "port",
		Claim{Namespace: "x", Name: "c", Prepared: true, ShareID: "s", AdminAccess: true, Pods: []string{"p"}})).Take()
	forgetKinds(taken)
	encoded, err := json.Marshal(taken)
	require.NoError(t, err)
	require.JSONEq(t, `{
		"drivers": [{"name": "d", "pools": 2, "incompletePools": 1, "usage": {"used": 0, "total": 3},
			"states": {"free": 2, "blocked": 0, "allocated": 0, "prepared": 0, "failing": 0, "tainted": 1}}],
		"items": [
			{"id": "node/n", "node": "n", "pools": [{"driver": "d", "name": "n", "generation": 1, "slices": 1, "resourceSliceCount": 2, "usage": {"used": 0, "total": 2}, "kind": "", "devices": [
				{"name": "gpu-0", "state": "tainted", "taints": [{"key": "k", "effect": "NoSchedule", "timeAdded": "1970-01-01T00:00:01Z"}]},
				{"name": "gpu-1", "state": "free"}
			]}]},
			{"id": "pool/d/p", "pools": [{"driver": "d", "name": "p", "generation": 1, "slices": 1, "resourceSliceCount": 1, "usage": {"used": 0, "total": 1}, "kind": "", "devices": [
				{"name": "port", "state": "free", "claims": [
					{"namespace": "x", "name": "c", "prepared": true, "shareID": "s", "adminAccess": true, "pods": ["p"]}
				]}
			]}]}
		]
	}`, string(encoded))
}

func TestCollector(t *testing.T) {
	t.Parallel()
	incomplete := slice("n1", "gpu-0 gpu-1")
	incomplete.Count = 2
	require.NoError(t, testutil.CollectAndCompare(NewCollector(fixed([]string{"n1", "n2"}, []Slice{incomplete}, allocation("n1", "gpu-0", Claim{Name: "c"}))), strings.NewReader(`
# HELP kwok_dra_device_states Devices that are published now, by driver and state: tainted (NoSchedule or NoExecute), or else failing, prepared, allocated, blocked or free.
# TYPE kwok_dra_device_states gauge
kwok_dra_device_states{driver="d",state="allocated"} 1
kwok_dra_device_states{driver="d",state="blocked"} 0
kwok_dra_device_states{driver="d",state="failing"} 0
kwok_dra_device_states{driver="d",state="free"} 1
kwok_dra_device_states{driver="d",state="prepared"} 0
kwok_dra_device_states{driver="d",state="tainted"} 0
# HELP kwok_dra_device_utilization_ratio Part of a driver's devices that claims have now, from 0 to 1. All that draws on one counter set is one device, and of a shared device the largest part of its capacities counts.
# TYPE kwok_dra_device_utilization_ratio gauge
kwok_dra_device_utilization_ratio{driver="d"} 0.5
# HELP kwok_dra_gone_devices Devices that claims have and no slice publishes any more, by driver. No state counts them.
# TYPE kwok_dra_gone_devices gauge
kwok_dra_gone_devices{driver="d"} 0
# HELP kwok_dra_incomplete_pools Pools without all slices of their newest generation, by driver. The scheduler allocates nothing from them.
# TYPE kwok_dra_incomplete_pools gauge
kwok_dra_incomplete_pools{driver="d"} 1
# HELP kwok_dra_nodes Fake nodes that there are now, with devices and without.
# TYPE kwok_dra_nodes gauge
kwok_dra_nodes 2
`)))
	problems, err := testutil.CollectAndLint(NewCollector(fixed(nil, []Slice{incomplete})))
	require.NoError(t, err)
	require.Empty(t, problems)
}

// TestCollectorCountsAgain after a change, and only then.
func TestCollectorCountsAgain(t *testing.T) {
	t.Parallel()
	source := fixed(nil, []Slice{slice("n1", "gpu-0")})
	taken, changes := 0, uint64(0)
	source.Changes = func() uint64 { return changes }
	source.Allocations = func() []Allocation {
		taken++
		return nil
	}
	collector := NewCollector(source)
	for i, want := range []int{1, 1, 2, 2} {
		changes = uint64(i / 2)
		require.Equal(t, int(states)+4, testutil.CollectAndCount(collector))
		require.Equal(t, want, taken)
	}
}

// fleet is a source of nodes with 8 devices, of which a half is allocated.
func fleet(nodes int) *Source {
	var names []string
	var all []Slice
	var allocations []Allocation
	for n := range nodes {
		name := fmt.Sprintf("node-%d", n)
		names = append(names, name)
		all = append(all, slice(name, "gpu-0 gpu-1 gpu-2 gpu-3 gpu-4 gpu-5 gpu-6 gpu-7"))
		for d := range n % 2 * 8 {
			allocations = append(allocations, allocation(name, fmt.Sprintf("gpu-%d", d), Claim{Namespace: "default", Name: name, Prepared: true, Pods: names[n:]}))
		}
	}
	return fixed(names, all, allocations...)
}

// BenchmarkTake takes the inventory of a fleet.
func BenchmarkTake(b *testing.B) {
	source := fleet(10_000)
	b.ReportAllocs()
	for b.Loop() {
		source.Take()
	}
}

// BenchmarkScrape collects the metrics of a fleet at rest.
func BenchmarkScrape(b *testing.B) {
	registry := prometheus.NewPedanticRegistry()
	registry.MustRegister(NewCollector(fleet(10_000)))
	b.ReportAllocs()
	for b.Loop() {
		if families, err := registry.Gather(); err != nil || len(families) != 3 {
			b.Fatal(families, err)
		}
	}
}
