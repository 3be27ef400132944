package plan

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kwok-dra/kwok-dra/internal/devices"
	"github.com/kwok-dra/kwok-dra/internal/observe/facts"
)

// taintedPool is pool p of so many devices, of which those at the places have a
// taint for each of their values.
func taintedPool(count int, values map[int][]string) devices.Pool {
	pool := devices.Pool{Driver: "d", Name: "p"}
	for i := range count {
		device := resourcev1.Device{Name: fmt.Sprintf("dev-%d", i)}
		for j, value := range values[i] {
			device.Taints = append(device.Taints, resourcev1.DeviceTaint{Key: fmt.Sprintf("k%d", j), Value: value, Effect: "NoSchedule"})
		}
		pool.Devices = append(pool.Devices, device)
	}
	return pool
}

// taintedAt tells for each taint of a device the second at which it was added.
func taintedAt(slices []*resourcev1.ResourceSlice) map[string]int64 {
	times := map[string]int64{}
	for _, slice := range slices {
		for _, device := range slice.Spec.Devices {
			for _, taint := range device.Taints {
				times[fmt.Sprintf("%s %s=%s:%s", device.Name, taint.Key, taint.Value, taint.Effect)] = taint.TimeAdded.Unix()
			}
		}
	}
	return times
}

// TestPlanKeepsTimes publishes a pool of tainted devices, something happens, and
// another pool is wanted. A taint keeps its time as long as it is the same.
func TestPlanKeepsTimes(t *testing.T) {
	t.Parallel()
	node := fakeNode("n", true)
	one := taintedPool(2, map[int][]string{0: {"v"}})
	nothing := func(*model) {}
	change := func(what func(*resourcev1.ResourceSlice)) func(*model) {
		return func(m *model) {
			for _, slice := range m.list() {
				what(slice)
			}
		}
	}
	explicit := taintedPool(2, map[int][]string{0: {"v"}})
	explicit.Devices[0].Taints[0].TimeAdded = new(metav1.Unix(99, 0))
	explicit.Devices[1].Taints = []resourcev1.DeviceTaint{{Key: "new", Effect: "None"}}
	executing := taintedPool(2, map[int][]string{0: {"v"}})
	executing.Devices[0].Taints[0].Effect = "NoExecute"
	renamed := taintedPool(2, map[int][]string{0: {"v"}})
	renamed.Devices[0].Taints[0].Key = "other"
	other := taintedPool(2, map[int][]string{0: {"v"}})
	other.Name = "q"
	for name, test := range map[string]struct {
		published devices.Pool
		then      func(*model)
		wanted    devices.Pool
		plan      string
		want      map[string]int64
	}{
		"nothing":             {one, nothing, one, "", map[string]int64{"dev-0 k0=v:NoSchedule": 1}},
		"another taint":       {one, nothing, taintedPool(2, map[int][]string{0: {"v", "w"}}), "update 0@1/1", map[string]int64{"dev-0 k0=v:NoSchedule": 1, "dev-0 k1=w:NoSchedule": 2}},
		"another device":      {one, nothing, taintedPool(2, map[int][]string{0: {"v"}, 1: {"v"}}), "update 0@1/1", map[string]int64{"dev-0 k0=v:NoSchedule": 1, "dev-1 k0=v:NoSchedule": 2}},
		"another value":       {one, nothing, taintedPool(2, map[int][]string{0: {"w"}}), "update 0@1/1", map[string]int64{"dev-0 k0=w:NoSchedule": 2}},
		"another effect":      {one, nothing, executing, "update 0@1/1", map[string]int64{"dev-0 k0=v:NoExecute": 2}},
		"another key":         {one, nothing, renamed, "update 0@1/1", map[string]int64{"dev-0 other=v:NoSchedule": 2}},
		"another pool":        {one, nothing, other, "delete 0, create 0@1/1", map[string]int64{"dev-0 k0=v:NoSchedule": 2}},
		"a time of its own":   {one, nothing, explicit, "update 0@1/1", map[string]int64{"dev-0 k0=v:NoSchedule": 99, "dev-1 new=:None": 2}},
		"one slice to two":    {taintedPool(64, map[int][]string{63: {"v"}}), nothing, taintedPool(65, map[int][]string{0: {"v"}, 63: {"v"}, 64: {"v"}}), "update 0@2/2, create 1@2/2", map[string]int64{"dev-0 k0=v:NoSchedule": 2, "dev-63 k0=v:NoSchedule": 1, "dev-64 k0=v:NoSchedule": 3}},
		"to another slice":    {taintedPool(65, map[int][]string{64: {"v"}}), nothing, dropFirst(taintedPool(66, map[int][]string{64: {"v"}, 65: {"v"}})), "update 0@2/2, update 1@2/2", map[string]int64{"dev-64 k0=v:NoSchedule": 2, "dev-65 k0=v:NoSchedule": 4}},
		"out of one deleted":  {taintedPool(65, map[int][]string{64: {"v"}}), nothing, dropFirst(taintedPool(65, map[int][]string{64: {"v"}})), "delete 1, update 0@1/1", map[string]int64{"dev-64 k0=v:NoSchedule": 2}},
		"the owner taken off": {one, change(func(s *resourcev1.ResourceSlice) { s.OwnerReferences = nil }), one, "update 0@1/1", map[string]int64{"dev-0 k0=v:NoSchedule": 1}},
		"a time taken off": {one, change(func(s *resourcev1.ResourceSlice) {
			s.Spec.Devices[0].Taints[0].TimeAdded = nil
			s.Spec.AllNodes = new(true)
		}), one, "update 0@1/1", map[string]int64{"dev-0 k0=v:NoSchedule": 2}},
		"another node's": {one, change(func(s *resourcev1.ResourceSlice) {
			s.OwnerReferences[0].UID = "earlier"
		}), one, "update 0@1/1", map[string]int64{"dev-0 k0=v:NoSchedule": 2}},
		"two of one device": {one, func(m *model) {
			left := m.list()[0].DeepCopy()
			left.Name, left.Spec.Pool.Generation = "left", 0
			left.Spec.Devices[0].Taints[0].TimeAdded = new(metav1.Unix(0, 0))
			m.store(left)
		}, taintedPool(2, map[int][]string{0: {"v", "w"}}), "delete left, update 0@1/1", map[string]int64{"dev-0 k0=v:NoSchedule": 0, "dev-0 k1=w:NoSchedule": 3}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := newModel(t)
			m.apply(m.plan(node, test.published))
			test.then(m)
			before := fmt.Sprint(test.wanted)
			writes := m.plan(node, test.wanted)
			require.Equal(t, test.plan, summary(writes))
			require.Equal(t, before, fmt.Sprint(test.wanted), "a pool shares its taints with its template")
			m.apply(writes)
			require.Equal(t, test.want, taintedAt(m.list()))
			again := m.plan(node, test.wanted)
			require.True(t, again.IsEmpty(), summary(again))
		})
	}
}

func dropFirst(pool devices.Pool) devices.Pool {
	pool.Devices = pool.Devices[1:]
	return pool
}

// TestTimesOnNode: of two times of one taint the earlier counts, in whatever
// order the cache has the slices.
func TestTimesOnNode(t *testing.T) {
	t.Parallel()
	at := func(second int64) *facts.Slice {
		taint := resourcev1.DeviceTaint{Key: "k", Value: "v", Effect: resourcev1.DeviceTaintEffectNone, TimeAdded: new(metav1.Unix(second, 0))}
		return &facts.Slice{Taints: map[string][]resourcev1.DeviceTaint{"gpu": {taint}}}
	}
	for _, existing := range [][]*facts.Slice{{at(1), at(2)}, {at(2), at(1)}} {
		slice := &resourcev1.ResourceSlice{}
		slice.Spec.Devices = []resourcev1.Device{{Name: "gpu", Taints: []resourcev1.DeviceTaint{{Key: "k", Value: "v", Effect: resourcev1.DeviceTaintEffectNone}}}}
		keepTaintTimes([]*resourcev1.ResourceSlice{slice}, existing)
		require.Equal(t, time.Unix(1, 0), slice.Spec.Devices[0].Taints[0].TimeAdded.Time)
	}
}
