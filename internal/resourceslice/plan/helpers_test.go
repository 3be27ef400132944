package plan

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kwok-dra/kwok-dra/internal/devices"
	"github.com/kwok-dra/kwok-dra/internal/observe/facts"
	"github.com/kwok-dra/kwok-dra/internal/resourceslice/features"
	"github.com/kwok-dra/kwok-dra/internal/testing/slicetest"
)

var (
	fakeNode = slicetest.FakeNode
	addTimes = slicetest.AddTimes
)

// fitted are pools for an API server that keeps all fields.
func fitted(pools ...devices.Pool) *features.Fitted {
	return &features.Fitted{Pools: pools, Layout: devices.CountersApart}
}

// perSlice is how many devices without taints fill a slice.
const perSlice = resourcev1.ResourceSliceMaxDevices

// poolOf makes a pool of driver d with as many slices as there are versions.
// Slices of equal version at an index are equal; all but the last are full.
func poolOf(name string, versions ...int) devices.Pool {
	pool := devices.Pool{Driver: "d", Name: name}
	for i, version := range versions {
		count := perSlice
		if i == len(versions)-1 {
			count = 1
		}
		for j := range count {
			device := resourcev1.Device{Name: fmt.Sprintf("dev-%d-%d", i, j)}
			if j == 0 {
				device.Attributes = map[resourcev1.QualifiedName]resourcev1.DeviceAttribute{"v": {IntValue: new(int64(version))}}
			}
			pool.Devices = append(pool.Devices, device)
		}
	}
	return pool
}

// slicesOf makes the slices of a node's pool.
func slicesOf(t testing.TB, node *corev1.Node, pool *devices.Pool) []*resourcev1.ResourceSlice {
	t.Helper()
	made, err := newSlices(node, pool, devices.CountersApart)
	require.NoError(t, err)
	return made
}

// model is an API server's ResourceSlices without the rest of it. Its clock
// goes on by a second with each write.
type model struct {
	t       testing.TB
	version int
	slices  map[string]*resourcev1.ResourceSlice
}

func newModel(t testing.TB) *model {
	t.Helper()
	return &model{t: t, slices: map[string]*resourcev1.ResourceSlice{}}
}

func (m *model) store(slice *resourcev1.ResourceSlice) {
	m.version++
	slice = slice.DeepCopy()
	slice.ResourceVersion = strconv.Itoa(m.version)
	addTimes(slice, time.Unix(int64(m.version), 0))
	if slice.UID == "" {
		slice.UID = types.UID("slice-" + slice.ResourceVersion)
	}
	m.slices[slice.Name] = slice
}

// observed is what the cache would have, in a random order.
func (m *model) observed() []*facts.Slice {
	var all []*facts.Slice
	for _, slice := range m.slices {
		all = append(all, observedOf(m.t, slice))
	}
	return all
}

func observedOf(t testing.TB, slice *resourcev1.ResourceSlice) *facts.Slice {
	t.Helper()
	return facts.ObserveSlice(slice.DeepCopy())
}

// steps are the writes one by one, in the order in which they are made.
func (m *model) steps(writes Writes) []func() {
	var steps []func()
	for _, existing := range writes.Delete {
		steps = append(steps, func() {
			require.Equal(m.t, m.slices[existing.GetName()].ResourceVersion, existing.ResourceVersion)
			delete(m.slices, existing.GetName())
		})
	}
	for _, update := range writes.Update {
		steps = append(steps, func() {
			current := m.slices[update.Slice.Name]
			require.Equal(m.t, current.ResourceVersion, update.Existing.ResourceVersion)
			slice := update.Slice.DeepCopy()
			slice.UID = current.UID
			m.store(slice)
		})
	}
	for _, slice := range writes.Create {
		steps = append(steps, func() {
			require.NotContains(m.t, m.slices, slice.Name)
			m.store(slice)
		})
	}
	return steps
}

func (m *model) apply(writes Writes) {
	for _, step := range m.steps(writes) {
		step()
	}
}

// plan plans for the model's state. The plan does not depend on the cache's
// order but for the order of deletions.
func (m *model) plan(node *corev1.Node, pools ...devices.Pool) Writes {
	m.t.Helper()
	needs, err := New("", node, fitted(pools...), m.observed())
	require.NoError(m.t, err)
	return needs.Writes
}

func (m *model) list() []*resourcev1.ResourceSlice {
	var all []*resourcev1.ResourceSlice
	for _, slice := range m.slices {
		all = append(all, slice)
	}
	return all
}

// summary tells of a plan in words, with the generation that it writes.
func summary(writes Writes) string {
	var words []string
	for _, existing := range writes.Delete {
		words = append(words, "delete "+index(existing.GetName()))
	}
	slices.Sort(words)
	for _, update := range writes.Update {
		words = append(words, "update "+numbered(update.Slice))
	}
	for _, slice := range writes.Create {
		words = append(words, "create "+numbered(slice))
	}
	return strings.Join(words, ", ")
}

func index(name string) string {
	prefix, _, _ := strings.Cut(name, "-")
	i, err := strconv.ParseInt(prefix, 16, 64)
	if err != nil {
		return name
	}
	return strconv.FormatInt(i, 10)
}

func numbered(slice *resourcev1.ResourceSlice) string {
	return fmt.Sprintf("%s@%d/%d", index(slice.Name), slice.Spec.Pool.Generation, slice.Spec.Pool.ResourceSliceCount)
}
