package inventory

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/kwok-dra/kwok-dra/internal/observe/facts"
)

// counters are counters by "name=amount name=amount".
func counters(text string) map[string]resourcev1.Counter {
	all := map[string]resourcev1.Counter{}
	for word := range strings.FieldsSeq(text) {
		name, amount, _ := strings.Cut(word, "=")
		all[name] = resourcev1.Counter{Value: resource.MustParse(amount)}
	}
	return all
}

func counterSet(name, text string) resourcev1.CounterSet {
	return resourcev1.CounterSet{Name: name, Counters: counters(text)}
}

// drawing is a device that consumes counters of a set.
func drawing(name, set, text string, groups ...string) resourcev1.Device {
	return resourcev1.Device{Name: name, ConsumesCounters: []resourcev1.DeviceCounterConsumption{{
		CounterSet: set, Counters: counters(text), CompatibilityGroups: groups,
	}}}
}

// sharing is a device of which several claims can have a share of 100 in "m".
func sharing(name string, policy *resourcev1.CapacityRequestPolicy) resourcev1.Device {
	return resourcev1.Device{Name: name, AllowMultipleAllocations: new(true), Capacity: map[resourcev1.QualifiedName]resourcev1.DeviceCapacity{
		"m": {Value: resource.MustParse("100"), RequestPolicy: policy},
	}}
}

func share(device, id, amount string) Allocation {
	return allocation("p", device, Claim{Name: "c-" + id, ShareID: id, Consumed: map[resourcev1.QualifiedName]resource.Quantity{"m": resource.MustParse(amount)}})
}

// ranged permits requests from a least amount on.
func ranged(least, step string) *resourcev1.CapacityRequestPolicy {
	limits := &resourcev1.CapacityRequestPolicyRange{Min: new(resource.MustParse(least))}
	if step != "" {
		limits.Step = new(resource.MustParse(step))
	}
	return &resourcev1.CapacityRequestPolicy{Default: new(resource.MustParse("50")), ValidRange: limits}
}

// published are slices of the pool p, the first of which has the counter sets.
func published(sets []resourcev1.CounterSet, devices ...resourcev1.Device) []Slice {
	var all []Slice
	for i, spec := range []resourcev1.ResourceSliceSpec{{SharedCounters: sets}, {Devices: devices}} {
		all = append(all, Slice{
			Driver: "d", Pool: "p", Name: fmt.Sprint(i), Generation: 1, Count: 2,
			Devices: facts.NamesOf(spec.Devices), Sharing: SharingOf(&spec),
		})
	}
	return all
}

// told is what the only pool says of its devices, and how much is taken.
func told(t *testing.T, slices []Slice, allocations ...Allocation) string {
	t.Helper()
	pool := fixed(nil, slices, allocations...).Take().Items[0].Pools[0]
	var words []string
	for i := range pool.Devices {
		device := &pool.Devices[i]
		word := device.Name + "=" + device.State.String()
		if device.Shared {
			word += fmt.Sprintf("(%v)", device.Used)
		}
		if device.BlockedBy != "" {
			word += "[" + device.BlockedBy + "]"
		}
		require.Equal(t, device.BlockedBy == "" && (device.Shared || device.State == Free), device.Available(), word)
		words = append(words, word)
	}
	return fmt.Sprintf("%s %v/%v", strings.Join(words, " "), pool.Usage.Used, pool.Usage.Total)
}

func TestCounters(t *testing.T) {
	t.Parallel()
	admin := allocation("p", "whole-0", Claim{Name: "a", AdminAccess: true})
	has := func(device string) Allocation { return allocation("p", device, Claim{Name: "c"}) }
	sets := []resourcev1.CounterSet{counterSet("s-0", "memory=80 engines=1"), counterSet("s-1", "memory=80 engines=1")}
	all := published(sets,
		drawing("whole-0", "s-0", "memory=80 engines=1"), drawing("half-0", "s-0", "memory=40"), drawing("tenth-0", "s-0", "memory=8 engines=1"),
		drawing("whole-1", "s-1", "memory=80"), resourcev1.Device{Name: "nic"})
	const other = " whole-1=free nic=free "
	for name, test := range map[string]struct {
		allocations []Allocation
		want        string
	}{
		"nothing":      {nil, "whole-0=free half-0=free tenth-0=free" + other + "0/3"},
		"admin access": {[]Allocation{admin}, "whole-0=free half-0=free tenth-0=free" + other + "0/3"},
		"the whole": {
			[]Allocation{has("whole-0")},
			"whole-0=allocated half-0=blocked[counter memory of s-0] tenth-0=blocked[counter engines of s-0]" + other + "1/3",
		},
		"a part": {[]Allocation{has("half-0")}, "whole-0=blocked[counter memory of s-0] half-0=allocated tenth-0=free" + other + "0.5/3"},
		"a part with all engines": {
			[]Allocation{has("tenth-0"), has("nic")},
			"whole-0=blocked[counter engines of s-0] half-0=free tenth-0=allocated whole-1=free nic=allocated 1.1/3",
		},
		"more than there is": {
			[]Allocation{has("whole-0"), has("half-0")},
			"whole-0=allocated half-0=allocated tenth-0=blocked[counter memory of s-0] whole-1=blocked[counter memory of s-0] nic=free 1/3",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			require.Equal(t, test.want, told(t, all, test.allocations...))
		})
	}
	tooLarge := published(sets, drawing("large", "s-0", "memory=81"), drawing("stray", "s-9", "memory=1"))
	require.Equal(t, "large=blocked[counter memory of s-0] stray=free 0/2", told(t, tooLarge), "it fits never")
	tainted := published(sets, drawing("whole", "s-0", "memory=80"), drawing("part", "s-0", "memory=1"))
	tainted[1].Taints = map[string][]Taint{"part": {taint(resourcev1.DeviceTaintEffectNoSchedule)}}
	pool := fixed(nil, tainted, has("whole")).Take().Items[0].Pools[0]
	require.Equal(t, Tainted, pool.Devices[1].State)
	require.False(t, pool.Devices[1].Available())
}

// TestCompatibilityGroups: devices on a counter set have a group in common, or none has
// any.
func TestCompatibilityGroups(t *testing.T) {
	t.Parallel()
	all := published([]resourcev1.CounterSet{counterSet("s", "n=9")},
		drawing("x", "s", "n=1", "x"), drawing("xy", "s", "n=1", "x", "y"), drawing("y", "s", "n=1", "y"), drawing("bare", "s", "n=1"))
	for allocated, want := range map[string]string{
		"x":     "x=allocated xy=free y=blocked bare=blocked",
		"xy":    "x=free xy=allocated y=free bare=blocked",
		"xy x":  "x=allocated xy=allocated y=blocked bare=blocked",
		"y xy":  "x=blocked xy=allocated y=allocated bare=blocked",
		"bare":  "x=blocked xy=blocked y=blocked bare=allocated",
		"x y":   "x=allocated xy=blocked y=allocated bare=blocked",
		"x y z": "x=allocated xy=blocked y=allocated bare=blocked",
	} {
		var allocations []Allocation
		for device := range strings.FieldsSeq(allocated) {
			allocations = append(allocations, allocation("p", device, Claim{Name: "c"}))
		}
		got := told(t, all, allocations...)
		got = strings.ReplaceAll(got, "[compatibility groups on s]", "")
		require.Equal(t, want, got[:strings.LastIndex(got, " ")], allocated)
	}
}

func TestShares(t *testing.T) {
	t.Parallel()
	values := &resourcev1.CapacityRequestPolicy{Default: new(resource.MustParse("20")), ValidValues: []resource.Quantity{resource.MustParse("10"), resource.MustParse("20")}}
	for name, test := range map[string]struct {
		policy      *resourcev1.CapacityRequestPolicy
		allocations []Allocation
		want        string
	}{
		"nothing":                {nil, nil, "d=free(0) 0/1"},
		"a part":                 {nil, []Allocation{share("d", "1", "20"), share("d", "2", "5")}, "d=allocated(0.25) 0.25/1"},
		"all":                    {nil, []Allocation{share("d", "1", "100")}, "d=allocated(1)[capacity m] 1/1"},
		"less than a value left": {values, []Allocation{share("d", "1", "91")}, "d=allocated(0.91)[capacity m] 0.91/1"},
		"a value left":           {values, []Allocation{share("d", "1", "90")}, "d=allocated(0.9) 0.9/1"},
		"less than least left":   {ranged("8", "4"), []Allocation{share("d", "1", "93")}, "d=allocated(0.93)[capacity m] 0.93/1"},
		"the least left":         {ranged("8", "4"), []Allocation{share("d", "1", "92")}, "d=allocated(0.92) 0.92/1"},
		"less than a step left":  {ranged("0", "4"), []Allocation{share("d", "1", "97")}, "d=allocated(0.97)[capacity m] 0.97/1"},
		"without sharing":        {nil, []Allocation{allocation("p", "d", Claim{Name: "c"})}, "d=allocated(1)[a claim that shares it with no other] 1/1"},
		"admin access":           {nil, []Allocation{allocation("p", "d", Claim{Name: "c", AdminAccess: true})}, "d=free(0) 0/1"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			require.Equal(t, test.want, told(t, published(nil, sharing("d", test.policy)), test.allocations...))
		})
	}
	endless := resourcev1.Device{Name: "d", AllowMultipleAllocations: new(true)}
	require.Equal(t, "d=free(0) 0/1", told(t, published(nil, endless)))
	require.Equal(t, "d=allocated(1) 1/1", told(t, published(nil, endless), share("d", "1", "1")), "no end, but it is used")
	none := sharing("d", nil)
	none.Capacity["n"] = resourcev1.DeviceCapacity{}
	require.Equal(t, "d=free(0) 0/1", told(t, published(nil, none)), "a capacity of 0 needs nothing")
}

// TestSharesOfCounters: more shares of a device take no more counters.
func TestSharesOfCounters(t *testing.T) {
	t.Parallel()
	device := drawing("d", "s", "n=1")
	device.AllowMultipleAllocations = new(true)
	all := published([]resourcev1.CounterSet{counterSet("s", "n=1")}, device, drawing("e", "s", "n=1"))
	require.Equal(t, "d=free(0) e=free 0/1", told(t, all))
	require.Equal(t, "d=allocated(1) e=blocked[counter n of s] 1/1", told(t, all, share("d", "1", "1")))
	require.Equal(t, "d=blocked(0)[counter n of s] e=allocated 1/1", told(t, all, allocation("p", "e", Claim{Name: "c"})))
}

// TestSharing: slices that share alike are equal, and most have nothing to share.
func TestSharing(t *testing.T) {
	t.Parallel()
	spec := func(device resourcev1.Device) *resourcev1.ResourceSliceSpec {
		device.Attributes = map[resourcev1.QualifiedName]resourcev1.DeviceAttribute{"uuid": {StringValue: new(fmt.Sprintf("%p", &device))}}
		return &resourcev1.ResourceSliceSpec{Devices: []resourcev1.Device{device}}
	}
	require.Equal(t, Sharing{}, SharingOf(spec(resourcev1.Device{Name: "d", Capacity: sharing("d", nil).Capacity})))
	first, second := SharingOf(spec(sharing("d", nil))), SharingOf(spec(sharing("d", nil)))
	require.Equal(t, first, second)
	require.NotEqual(t, first, SharingOf(spec(sharing("d", ranged("1", "")))))
	require.NotEqual(t, Sharing{}, SharingOf(&resourcev1.ResourceSliceSpec{SharedCounters: []resourcev1.CounterSet{counterSet("s", "n=1")}}))
}

// TestKinds: pools of which nothing is taken share their devices, and those of another
// kind have their own.
func TestKinds(t *testing.T) {
	t.Parallel()
	at := func(node string, counters string) []Slice {
		all := published([]resourcev1.CounterSet{counterSet("s", counters)}, drawing("a", "s", "n=1"), drawing("b", "s", "n=2"))
		for i := range all {
			all[i].Node, all[i].Pool = node, node
		}
		return all
	}
	got := fixed(nil, append(append(at("n1", "n=2"), at("n2", "n=2")...), append(at("n3", "n=1"), at("n4", "n=2")...)...),
		allocation("n4", "a", Claim{Name: "c"})).Take()
	require.Same(t, &got.Items[0].Pools[0].Devices[0], &got.Items[1].Pools[0].Devices[0])
	require.Equal(t, []Device{{Name: "a"}, {Name: "b"}}, got.Items[1].Pools[0].Devices)
	require.Equal(t, Blocked, got.Items[2].Pools[0].Devices[1].State)
	require.Equal(t, Blocked, got.Items[3].Pools[0].Devices[1].State)
	require.Equal(t, Counts{Free: 5, Blocked: 2, Allocated: 1}, got.Drivers[0].States)
	require.Equal(t, Usage{Used: 0.5, Total: 4}, got.Drivers[0].Usage)
}

// TestLargeCounters: what one pool takes of counters beyond 64 bits is not taken from others of its kind, nor once more with each look.
func TestLargeCounters(t *testing.T) {
	t.Parallel()
	const all, half = "memory=200000000000000000003", "memory=100000000000000000001"
	slices := published([]resourcev1.CounterSet{counterSet("gpu", all)}, drawing("a", "gpu", half), drawing("b", "gpu", half))
	inventory := fixed(nil, slices, allocation("p", "a", Claim{Name: "c"}))
	looks := uint64(0)
	inventory.Changes = func() uint64 { looks++; return looks }
	for range 3 {
		pool := inventory.Take().Items[0].Pools[0]
		require.InDelta(t, 0.5, pool.Usage.Used/pool.Usage.Total, 0.01)
		require.Empty(t, pool.Devices[1].BlockedBy)
	}
}
