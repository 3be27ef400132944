package plan

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kwok-dra/kwok-dra/internal/devices"
	"github.com/kwok-dra/kwok-dra/internal/observe/facts"
)

// TestPlan starts from a published pool, does something to it, and plans. The
// wants read "<verb> <index>@<generation>/<slice count>".
func TestPlan(t *testing.T) {
	t.Parallel()
	node := fakeNode("n", true)
	edit := func(index int, change func(*resourcev1.ResourceSlice)) func(*model) {
		return func(m *model) {
			name := sliceName(node, &devices.Pool{Driver: "d", Name: "p"}, index)
			changed := m.slices[name].DeepCopy()
			change(changed)
			m.store(changed)
		}
	}
	remove := func(index int) func(*model) {
		return func(m *model) {
			delete(m.slices, sliceName(node, &devices.Pool{Driver: "d", Name: "p"}, index))
		}
	}
	nothing := func(*model) {}
	for name, test := range map[string]struct {
		published []int
		then      func(*model)
		wanted    []int
		want      string
	}{
		"first":                     {nil, nothing, []int{1}, "create 0@1/1"},
		"first of three":            {nil, nothing, []int{1, 1, 1}, "create 0@1/3, create 1@1/3, create 2@1/3"},
		"nothing to nothing":        {nil, nothing, nil, ""},
		"no change":                 {[]int{1, 1}, nothing, []int{1, 1}, ""},
		"only one changes":          {[]int{1}, nothing, []int{2}, "update 0@1/1"},
		"one of three changes":      {[]int{1, 1, 1}, nothing, []int{1, 2, 1}, "update 1@1/3"},
		"two of three change":       {[]int{1, 1, 1}, nothing, []int{2, 1, 2}, "update 0@2/3, update 1@2/3, update 2@2/3"},
		"one added":                 {[]int{1}, nothing, []int{1, 1}, "update 0@2/2, create 1@2/2"},
		"two to one":                {[]int{1, 1}, nothing, []int{1}, "delete 1, update 0@1/1"},
		"three to two":              {[]int{1, 1, 1}, nothing, []int{1, 1}, "delete 2, update 0@2/2, update 1@2/2"},
		"three to one":              {[]int{1, 1, 1}, nothing, []int{1}, "delete 1, delete 2, update 0@1/1"},
		"retired":                   {[]int{1, 1}, nothing, nil, "delete 0, delete 1"},
		"only one is missing":       {[]int{1}, remove(0), []int{1}, "create 0@1/1"},
		"one is missing":            {[]int{1, 1}, remove(1), []int{1, 1}, "update 0@2/2, create 1@2/2"},
		"the missing is not wanted": {[]int{1, 1}, remove(1), []int{1}, "update 0@1/1"},
		"no owner":                  {[]int{1, 1}, edit(0, func(s *resourcev1.ResourceSlice) { s.OwnerReferences = nil }), []int{1, 1}, "update 0@1/2"},
		"another owner":             {[]int{1, 1}, edit(0, func(s *resourcev1.ResourceSlice) { s.OwnerReferences[0].UID = "2" }), []int{1, 1}, "update 0@1/2"},
		"no owners": {[]int{1, 1}, func(m *model) {
			edit(0, func(s *resourcev1.ResourceSlice) { s.OwnerReferences = nil })(m)
			edit(1, func(s *resourcev1.ResourceSlice) { s.OwnerReferences[0].Controller = nil })(m)
		}, []int{1, 1}, "update 0@1/2, update 1@1/2"},
		"one owner too many": {[]int{1}, edit(0, func(s *resourcev1.ResourceSlice) {
			s.OwnerReferences = append(s.OwnerReferences, metav1.OwnerReference{Kind: "Pod", Name: "a"})
		}), []int{1}, ""},
		"no owner and another changes": {[]int{1, 1}, edit(0, func(s *resourcev1.ResourceSlice) { s.OwnerReferences = nil }), []int{1, 2}, "update 0@1/2, update 1@1/2"},
		"devices edited":               {[]int{1, 1}, edit(1, func(s *resourcev1.ResourceSlice) { s.Spec.Devices = nil }), []int{1, 1}, "update 1@1/2"},
		"count edited":                 {[]int{1, 1}, edit(1, func(s *resourcev1.ResourceSlice) { s.Spec.Pool.ResourceSliceCount = 7 }), []int{1, 1}, "update 1@1/2"},
		"generation raised by hand":    {[]int{1, 1}, edit(0, func(s *resourcev1.ResourceSlice) { s.Spec.Pool.Generation = 7 }), []int{1, 1}, "delete 1, update 0@8/2, create 1@8/2"},
		"generation lowered by hand":   {[]int{1, 1}, edit(0, func(s *resourcev1.ResourceSlice) { s.Spec.Pool.Generation = 0 }), []int{1, 1}, "delete 0, update 1@2/2, create 0@2/2"},
		"selector set by hand":         {[]int{1}, edit(0, func(s *resourcev1.ResourceSlice) { s.Spec.AllNodes = new(true) }), []int{1}, "update 0@1/1"},
		"shared counters set by hand": {[]int{1}, edit(0, func(s *resourcev1.ResourceSlice) {
			s.Spec.SharedCounters = []resourcev1.CounterSet{{Name: "a"}}
		}), []int{1}, "update 0@1/1"},
		"foreign slice in the pool": {[]int{1}, func(m *model) {
			foreign := m.slices[sliceName(node, &devices.Pool{Driver: "d", Name: "p"}, 0)].DeepCopy()
			foreign.Name = "mine"
			m.store(foreign)
		}, []int{1}, "delete mine"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := newModel(t)
			m.apply(m.plan(node, poolsOf(test.published)...))
			test.then(m)
			writes := m.plan(node, poolsOf(test.wanted)...)
			require.Equal(t, test.want, summary(writes))
			m.apply(writes)
			again := m.plan(node, poolsOf(test.wanted)...)
			require.True(t, again.IsEmpty(), summary(again))
		})
	}
}

func poolsOf(versions []int) []devices.Pool {
	if versions == nil {
		return nil
	}
	return []devices.Pool{poolOf("p", versions...)}
}

func TestPlanOfSeveralPools(t *testing.T) {
	t.Parallel()
	node := fakeNode("n", true)
	other := poolOf("p", 1)
	other.Driver = "e"
	m := newModel(t)
	m.apply(m.plan(node, poolOf("p", 1, 1), poolOf("q", 1), other))
	require.Len(t, m.slices, 4)

	require.Equal(t, "update 0@1/1", summary(m.plan(node, poolOf("p", 1, 1), poolOf("q", 2), other)), "pools have nothing to do with each other")
	m.apply(m.plan(node, poolOf("q", 1), other))
	require.Len(t, m.slices, 2, "the obsolete pool is gone, that of the other driver is not")
	m.apply(m.plan(nil))
	require.Empty(t, m.slices, "so is everything with the node")
}

// TestPlanForANewNode: a node that comes again under its name has another UID.
// The generation goes on, or the old slices would hide the new ones.
func TestPlanForANewNode(t *testing.T) {
	t.Parallel()
	old, renewed := fakeNode("n", true), fakeNode("n", true)
	renewed.UID = "another"
	m := newModel(t)
	m.apply(m.plan(old, poolOf("p", 1, 1)))
	writes := m.plan(renewed, poolOf("p", 1, 1))
	require.Equal(t, "delete 0, delete 1, create 0@2/2, create 1@2/2", summary(writes))
	m.apply(writes)
	for _, slice := range m.slices {
		require.Equal(t, []metav1.OwnerReference{{APIVersion: "v1", Kind: "Node", Name: "n", UID: renewed.UID, Controller: new(true)}}, slice.OwnerReferences)
	}
}

func TestNewSlices(t *testing.T) {
	t.Parallel()
	node := fakeNode("n", true)
	pool := poolOf("p", 1, 1)
	made := slicesOf(t, node, &pool)
	require.Len(t, made, 2)
	require.Equal(t, &resourcev1.ResourceSlice{
		ObjectMeta: metav1.ObjectMeta{
			Name:   sliceName(node, &pool, 1),
			Labels: map[string]string{"dra.kwok.x-k8s.io/managed-by": "kwok-dra"},
			OwnerReferences: []metav1.OwnerReference{
				{APIVersion: "v1", Kind: "Node", Name: "n", UID: "uid-of-n", Controller: new(true)},
			},
		},
		Spec: resourcev1.ResourceSliceSpec{
			Driver:   "d",
			NodeName: new("n"),
			Pool:     resourcev1.ResourcePool{Name: "p", ResourceSliceCount: 2},
			Devices:  pool.Devices[perSlice:],
		},
	}, made[1])
}

// view is what the scheduler makes of a pool (GatherPools in
// k8s.io/dynamic-resource-allocation/structured): the slices of the highest
// generation, if they are as many as they say they are. It takes the count of
// any slice, so a view is complete if it might be.
type view struct {
	complete bool
	// contents by index, so that a pool of another node UID can be equal.
	contents string
}

func (m *model) view(driver, pool string) view {
	var newest []*facts.Slice
	generation := int64(-1)
	for _, slice := range m.observed() {
		if slice.Driver != driver || slice.Pool != pool || slice.Generation < generation {
			continue
		}
		if slice.Generation > generation {
			generation, newest = slice.Generation, nil
		}
		newest = append(newest, slice)
	}
	var v view
	contents := map[string]facts.Content{}
	for _, slice := range newest {
		v.complete = v.complete || int(slice.Count) == len(newest)
		contents[index(slice.GetName())] = slice.Content
	}
	for _, key := range slices.Sorted(maps.Keys(contents)) {
		v.contents += fmt.Sprint(key, ":", contents[key], " ")
	}
	return v
}

// wantedView is what the scheduler is to see of the pool in the end.
func wantedView(t testing.TB, node *corev1.Node, pools []devices.Pool, name string) view {
	t.Helper()
	m := newModel(t)
	m.apply(m.plan(node, pools...))
	return m.view("d", name)
}

// choices are decisions taken from fuzz data; 0 when it runs out.
type choices []byte

func (c *choices) below(n int) int {
	if len(*c) == 0 {
		return 0
	}
	first := int((*c)[0])
	*c = (*c)[1:]
	return first % n
}

func (c *choices) pools() []devices.Pool {
	var pools []devices.Pool
	for _, name := range []string{"p", "q"} {
		versions := make([]int, c.below(5))
		if len(versions) == 0 {
			continue
		}
		for i := range versions {
			versions[i] = c.below(2)
		}
		pools = append(pools, poolOf(name, versions...))
	}
	return pools
}

// tamper does to a random slice what people do by hand.
func (c *choices) tamper(m *model) {
	names := slices.Sorted(maps.Keys(m.slices))
	if len(names) == 0 {
		return
	}
	slice := m.slices[names[c.below(len(names))]].DeepCopy()
	switch c.below(5) {
	case 0:
		delete(m.slices, slice.Name)
		return
	case 1:
		slice.OwnerReferences = nil
	case 2:
		slice.Spec.Devices = slice.Spec.Devices[:0]
	case 3:
		slice.Spec.AllNodes = new(true)
	case 4:
		// What a crash leaves of an old generation is never all of it.
		slice.Name = "left-" + slice.Name
		slice.Spec.Pool.Generation--
		slice.Spec.Pool.ResourceSliceCount = 9
	}
	m.store(slice)
}

// FuzzPlan goes through a random history: pools change, the sidecar ends in the
// middle of its writes, slices are edited by hand, the node is replaced. At no
// moment may the scheduler see a complete pool other than the one before or the
// one wanted. In the end all is as wanted, and nothing is left to write.
func FuzzPlan(f *testing.F) {
	f.Add([]byte{})
	f.Add([]byte{1, 0, 0, 0, 0, 0, 2, 0, 1, 0})
	f.Add([]byte{3, 0, 0, 0, 2, 1, 1, 9, 0, 0, 3, 1, 0, 1, 0, 9, 1, 0, 2, 2, 0, 1, 0, 9, 0, 0, 0, 0})
	f.Add([]byte{4, 1, 1, 1, 1, 0, 2, 1, 1, 1, 0, 2, 0, 0, 0, 3, 3, 1, 4, 2, 0, 0, 0, 0, 5, 5, 5, 1, 1, 1, 2, 3, 4})
	f.Fuzz(func(t *testing.T, data []byte) {
		if len(data) <= 100 {
			history(t, data)
		}
	})
}

// TestPlanOfRandomHistories is a small share of FuzzPlan for every run.
func TestPlanOfRandomHistories(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(1, 2))
	for range 100 {
		data := make([]byte, 50)
		for i := range data {
			data[i] = byte(random.Uint32())
		}
		history(t, data)
	}
}

func history(t *testing.T, data []byte) {
	t.Helper()
	c := choices(data)
	m := newModel(t)
	node := fakeNode("n", true)
	for round := 0; len(c) > 0; round++ {
		if c.below(4) == 1 {
			node = fakeNode("n", true)
			node.UID = types.UID(fmt.Sprint("uid-", round))
		}
		if c.below(3) == 1 {
			c.tamper(m)
		}
		pools := c.pools()
		requireSafe(t, m, m.plan(node, pools...), node, pools, c.below(8))
	}
}

// requireSafe applies the writes one by one, up to a crash after so many, and
// checks every state in between.
func requireSafe(t *testing.T, m *model, writes Writes, node *corev1.Node, pools []devices.Pool, crash int) {
	t.Helper()
	before, wanted := map[string]view{}, map[string]view{}
	for _, name := range []string{"p", "q"} {
		before[name], wanted[name] = m.view("d", name), wantedView(t, node, pools, name)
	}
	steps := m.steps(writes)
	for i, step := range steps {
		if crash == i+1 {
			return
		}
		step()
		for name := range before {
			got := m.view("d", name)
			if got.complete && got != before[name] && got != wanted[name] {
				t.Fatalf("pool %s after %d of %d writes (%s): complete and wrong", name, i+1, len(steps), summary(writes))
			}
		}
	}
	for name := range before {
		require.Equal(t, wanted[name], m.view("d", name), "pool %s after all writes (%s)", name, summary(writes))
	}
	left := m.plan(node, pools...)
	require.True(t, left.IsEmpty(), "after %s: %s", summary(writes), summary(left))
}
