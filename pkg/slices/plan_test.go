package slices

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/api/validate/content"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kwok-dra/kwok-dra/pkg/devices"
)

const testDriver = "gpu.example.com"

func testNode(uid string) *corev1.Node {
	return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "node", UID: types.UID(uid)}}
}

// testPool makes a pool of a driver with slices of the given contents. Slices
// are filled up to the limit, so that each content is a slice of its own.
func testPool(contents ...string) devices.Pool {
	pool := devices.Pool{Driver: testDriver, Name: "node"}
	for i, content := range contents {
		count := resourcev1.ResourceSliceMaxDevices
		if i == len(contents)-1 {
			count = 1
		}
		for j := range count {
			pool.Devices = append(pool.Devices, resourcev1.Device{Name: fmt.Sprintf("%s-%d", content, j)})
		}
	}
	return pool
}

// server is a model of the API server: it has slices and takes writes.
type server map[string]*resourcev1.ResourceSlice

func (s server) observed(t testing.TB) []*Observed {
	t.Helper()
	var all []*Observed
	for _, name := range slices.Sorted(maps.Keys(s)) {
		object, err := observe(s[name])
		require.NoError(t, err)
		all = append(all, object.(*Observed))
	}
	return all
}

// steps are the writes, each as a change of the server.
func (s server) steps(writes Writes) []func() {
	var steps []func()
	for _, existing := range writes.Delete {
		steps = append(steps, func() { delete(s, existing.Name) })
	}
	for _, update := range writes.Update {
		steps = append(steps, func() { s[update.Slice.Name] = update.Slice })
	}
	for _, slice := range writes.Create {
		steps = append(steps, func() { s[slice.Name] = slice })
	}
	return steps
}

func (s server) apply(writes Writes) {
	for _, step := range s.steps(writes) {
		step()
	}
}

// reach plans and applies, and returns the counts of writes.
func (s server) reach(t testing.TB, node *corev1.Node, pools ...devices.Pool) (deleted, updated, created int) {
	t.Helper()
	writes, err := Plan(node, pools, s.observed(t))
	require.NoError(t, err)
	s.apply(writes)
	return len(writes.Delete), len(writes.Update), len(writes.Create)
}

func (s server) generations() []int64 {
	var all []int64
	for _, name := range slices.Sorted(maps.Keys(s)) {
		all = append(all, s[name].Spec.Pool.Generation)
	}
	return all
}

func TestPlan(t *testing.T) {
	t.Parallel()
	type counts struct{ deleted, updated, created int }
	for name, test := range map[string]struct {
		before, after []string
		want          counts
		generations   []int64
	}{
		"first publish":                  {nil, []string{"a"}, counts{0, 0, 1}, []int64{1}},
		"first publish of three":         {nil, []string{"a", "b", "c"}, counts{0, 0, 3}, []int64{1, 1, 1}},
		"nothing changes":                {[]string{"a", "b"}, []string{"a", "b"}, counts{}, []int64{1, 1}},
		"the only slice changes":         {[]string{"a"}, []string{"b"}, counts{0, 1, 0}, []int64{1}},
		"one of two changes":             {[]string{"a", "b"}, []string{"a", "c"}, counts{0, 1, 0}, []int64{1, 1}},
		"two of three change":            {[]string{"a", "b", "c"}, []string{"x", "y", "c"}, counts{0, 3, 0}, []int64{2, 2, 2}},
		"a slice more":                   {[]string{"a"}, []string{"a", "b"}, counts{0, 1, 1}, []int64{2, 2}},
		"from two slices to one":         {[]string{"a", "b"}, []string{"a"}, counts{1, 1, 0}, []int64{1}},
		"from three to two, both differ": {[]string{"a", "b", "c"}, []string{"a", "b"}, counts{1, 2, 0}, []int64{2, 2}},
		"retired":                        {[]string{"a", "b"}, nil, counts{2, 0, 0}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, node := server{}, testNode("1")
			if test.before != nil {
				s.reach(t, node, testPool(test.before...))
			}
			var pools []devices.Pool
			if test.after != nil {
				pools = append(pools, testPool(test.after...))
			}
			deleted, updated, created := s.reach(t, node, pools...)
			require.Equal(t, test.want, counts{deleted, updated, created})
			require.Equal(t, test.generations, s.generations())
			deleted, updated, created = s.reach(t, node, pools...)
			require.Zero(t, deleted+updated+created, "a second plan has nothing to write")
		})
	}
}

func TestPlanRepairs(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		damage          func(slice *resourcev1.ResourceSlice)
		wantGenerations []int64
	}{
		"owner removed":    {func(s *resourcev1.ResourceSlice) { s.OwnerReferences = nil }, []int64{1, 1}},
		"owner not in use": {func(s *resourcev1.ResourceSlice) { s.OwnerReferences[0].UID = "2" }, []int64{1, 1}},
		"device removed":   {func(s *resourcev1.ResourceSlice) { s.Spec.Devices = s.Spec.Devices[1:] }, []int64{1, 1}},
		"count edited":     {func(s *resourcev1.ResourceSlice) { s.Spec.Pool.ResourceSliceCount = 9 }, []int64{1, 1}},
		"all nodes":        {func(s *resourcev1.ResourceSlice) { s.Spec.AllNodes = new(true) }, []int64{1, 1}},
		// The other slice is of an old generation now, so it is made anew.
		"generation edited": {func(s *resourcev1.ResourceSlice) { s.Spec.Pool.Generation = 5 }, []int64{6, 6}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, node := server{}, testNode("1")
			s.reach(t, node, testPool("a", "b"))
			want := maps.Clone(s)
			first := slices.Min(slices.Collect(maps.Keys(s)))
			s[first] = s[first].DeepCopy()
			test.damage(s[first])
			s.reach(t, node, testPool("a", "b"))
			require.Equal(t, test.wantGenerations, s.generations())
			for name, slice := range s {
				slice.Spec.Pool.Generation = 1
				require.Equal(t, want[name], slice)
			}
		})
	}
}

func TestPlanReplacesSlicesOfAnotherNode(t *testing.T) {
	t.Parallel()
	s := server{}
	s.reach(t, testNode("old"), testPool("a", "b"))
	deleted, updated, created := s.reach(t, testNode("new"), testPool("a", "b"))
	require.Equal(t, []int{2, 0, 2}, []int{deleted, updated, created})
	for _, slice := range s {
		require.Equal(t, types.UID("new"), slice.OwnerReferences[0].UID)
	}
}

func TestPlanKeepsOtherPools(t *testing.T) {
	t.Parallel()
	s, node := server{}, testNode("1")
	other := testPool("x")
	other.Driver = "nic.example.com"
	s.reach(t, node, testPool("a"), other)
	deleted, updated, created := s.reach(t, node, testPool("b"), other)
	require.Equal(t, []int{0, 1, 0}, []int{deleted, updated, created})
	deleted, updated, created = s.reach(t, node, testPool("b"))
	require.Equal(t, []int{1, 0, 0}, []int{deleted, updated, created})
}

// FuzzPlan goes from one random state to another. After every single write the
// newest generation of the pool is incomplete, or exactly what it was or is to
// be; and when all is written there is nothing left to write.
func FuzzPlan(f *testing.F) {
	for seed := range uint64(200) {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, seed uint64) {
		random := rand.New(rand.NewPCG(seed, 0))
		s, node := server{}, testNode("1")
		before := randomContents(random)
		s.reach(t, node, testPool(before...))
		for range 4 {
			after := randomContents(random)
			allowed := []string{contentOf(testPool(before...)), contentOf(testPool(after...))}
			writes, err := Plan(node, []devices.Pool{testPool(after...)}, s.observed(t))
			require.NoError(t, err)
			steps := s.steps(writes)
			// A crash: the rest is never written, and the next plan starts there.
			if random.IntN(3) == 0 {
				steps = steps[:random.IntN(len(steps)+1)]
				after = before
			}
			for _, step := range steps {
				step()
				if complete, content := s.newest(); complete {
					require.Contains(t, allowed, content)
				}
			}
			s.reach(t, node, testPool(after...))
			complete, content := s.newest()
			require.True(t, complete)
			require.Equal(t, contentOf(testPool(after...)), content)
			deleted, updated, created := s.reach(t, node, testPool(after...))
			require.Zero(t, deleted+updated+created)
			before = after
		}
	})
}

func randomContents(random *rand.Rand) []string {
	contents := make([]string, 1+random.IntN(4))
	for i := range contents {
		contents[i] = fmt.Sprintf("%c%d", 'a'+rune(random.IntN(3)), i)
	}
	return contents
}

func contentOf(pool devices.Pool) string {
	var names []string
	for _, device := range pool.Devices {
		names = append(names, device.Name)
	}
	return strings.Join(names, " ")
}

// newest reads the pool as the scheduler does: the slices of the newest
// generation, in the order of their names.
func (s server) newest() (complete bool, content string) {
	newest := slices.Max(append(s.generations(), 0))
	count, expected := 0, int64(-1)
	var pool devices.Pool
	for _, name := range slices.Sorted(maps.Keys(s)) {
		slice := s[name]
		if slice.Spec.Pool.Generation != newest {
			continue
		}
		if expected < 0 {
			expected = slice.Spec.Pool.ResourceSliceCount
		}
		count++
		pool.Devices = append(pool.Devices, slice.Spec.Devices...)
	}
	return int64(count) == expected, contentOf(pool)
}

func TestContentOf(t *testing.T) {
	t.Parallel()
	spec := func(change func(*resourcev1.ResourceSliceSpec)) Content {
		s := &resourcev1.ResourceSliceSpec{
			Driver: testDriver, NodeName: new("node"),
			Pool: resourcev1.ResourcePool{Name: "node", Generation: 1, ResourceSliceCount: 1},
			Devices: []resourcev1.Device{{
				Name:     "gpu",
				Capacity: map[resourcev1.QualifiedName]resourcev1.DeviceCapacity{"memory": {Value: resource.MustParse("80Gi")}},
				Taints:   []resourcev1.DeviceTaint{{Key: "xid", Effect: resourcev1.DeviceTaintEffectNoExecute}},
			}},
		}
		change(s)
		content, err := ContentOf(s)
		require.NoError(t, err)
		return content
	}
	base := spec(func(*resourcev1.ResourceSliceSpec) {})
	for name, change := range map[string]func(*resourcev1.ResourceSliceSpec){
		"generation": func(s *resourcev1.ResourceSliceSpec) { s.Pool.Generation = 7 },
		"count":      func(s *resourcev1.ResourceSliceSpec) { s.Pool.ResourceSliceCount = 7 },
		"quantity": func(s *resourcev1.ResourceSliceSpec) {
			s.Devices[0].Capacity["memory"] = resourcev1.DeviceCapacity{Value: resource.MustParse("81920Mi")}
		},
		"time of a taint": func(s *resourcev1.ResourceSliceSpec) { s.Devices[0].Taints[0].TimeAdded = new(metav1.Now()) },
	} {
		require.Equal(t, base, spec(change), name)
	}
	for name, change := range map[string]func(*resourcev1.ResourceSliceSpec){
		"capacity": func(s *resourcev1.ResourceSliceSpec) {
			s.Devices[0].Capacity["memory"] = resourcev1.DeviceCapacity{Value: resource.MustParse("81Gi")}
		},
		"attribute": func(s *resourcev1.ResourceSliceSpec) {
			s.Devices[0].Attributes = map[resourcev1.QualifiedName]resourcev1.DeviceAttribute{"a": {BoolValue: new(true)}}
		},
		"taint":    func(s *resourcev1.ResourceSliceSpec) { s.Devices[0].Taints = nil },
		"counters": func(s *resourcev1.ResourceSliceSpec) { s.SharedCounters = []resourcev1.CounterSet{{Name: "c"}} },
		"node":     func(s *resourcev1.ResourceSliceSpec) { s.NodeName = nil },
		"driver":   func(s *resourcev1.ResourceSliceSpec) { s.Driver = "other" },
	} {
		require.NotEqual(t, base, spec(change), name)
	}
}

func FuzzNameOf(f *testing.F) {
	f.Add("node", "gpu.example.com", 0)
	f.Add(strings.Repeat("n", 253), strings.Repeat("d", 63), 4095)
	f.Add("a.-.b", "UPPER.example.com", 1)
	f.Add(strings.Repeat("a.", 30)+"a", "g", 2)
	f.Fuzz(func(t *testing.T, node, driver string, index int) {
		if len(content.IsDNS1123Subdomain(node)) > 0 || len(content.IsDNS1123Subdomain(strings.ToLower(driver))) > 0 || index < 0 || index > 0xfffff {
			t.Skip()
		}
		pool := &devices.Pool{Driver: driver, Name: node}
		of := func(uid string, index int) string {
			return nameOf(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: node, UID: types.UID(uid)}}, pool, index)
		}
		name := of("1", index)
		require.Empty(t, content.IsDNS1123Subdomain(name), name)
		require.Equal(t, name, of("1", index))
		require.NotEqual(t, name, of("2", index))
		require.Less(t, name, of("1", index+1))
	})
}
