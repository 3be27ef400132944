package slices

import (
	"testing"

	"github.com/stretchr/testify/require"
	resourcev1 "k8s.io/api/resource/v1"

	"github.com/kwok-dra/kwok-dra/pkg/config"
	"github.com/kwok-dra/kwok-dra/pkg/devices"
)

// eight are 8 devices of 9 attributes, one of them rendered.
const eight = `{name: gpu, count: 8, attributes: {a: x, b: x, c: x, d: x, e: x, f: x, g: x, h: x, uuid: "{{ uuid .Node.metadata.uid .Index }}"}, capacity: {memory: 80Gi}}`

func eightOn(b *testing.B) *config.Set {
	b.Helper()
	store := config.NewStore("test")
	replace(b, store, template("a", "d", eight))
	return store.Current()
}

// BenchmarkDesire works out what a node should have, with the template rendered.
func BenchmarkDesire(b *testing.B) {
	set := eightOn(b)
	node := fakeNode("n", true)
	b.ReportAllocs()
	for b.Loop() {
		if want := desire(b.Context(), set, node, nil, nil); len(want.pools) != 1 {
			b.Fatal(want)
		}
	}
}

// BenchmarkPlan plans for a node whose slices are as they should be, as after a
// restart.
func BenchmarkPlan(b *testing.B) {
	node := fakeNode("n", true)
	pools := desire(b.Context(), eightOn(b), node, nil, nil).pools
	h := nodeHolder(node)
	created, err := Plan(h, pools, devices.CountersApart, nil)
	require.NoError(b, err)
	existing := []*Observed{observedOf(b, created.Create[0])}
	b.ReportAllocs()
	for b.Loop() {
		if writes, err := Plan(h, pools, devices.CountersApart, existing); err != nil || !writes.Empty() {
			b.Fatal(writes, err)
		}
	}
}

// BenchmarkObserve is what a slice takes from the bytes on the wire to the cache.
func BenchmarkObserve(b *testing.B) {
	node := fakeNode("n", true)
	pools := desire(b.Context(), eightOn(b), node, nil, nil).pools
	wire, err := slicesOf(b, node, &pools[0])[0].Marshal()
	require.NoError(b, err)
	b.ReportAllocs()
	for b.Loop() {
		var received resourcev1.ResourceSlice
		if err := received.Unmarshal(wire); err != nil {
			b.Fatal(err)
		}
		if _, err := observe(&received); err != nil {
			b.Fatal(err)
		}
	}
}
