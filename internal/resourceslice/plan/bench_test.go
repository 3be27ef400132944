package plan

import (
	"testing"

	"github.com/stretchr/testify/require"
	resourcev1 "k8s.io/api/resource/v1"

	"github.com/kwok-dra/kwok-dra/internal/config"
	"github.com/kwok-dra/kwok-dra/internal/observe/facts"
	"github.com/kwok-dra/kwok-dra/internal/testing/configtest"
)

// eight are 8 devices of 9 attributes, one of them rendered.
const eight = `{name: gpu, count: 8, attributes: {a: x, b: x, c: x, d: x, e: x, f: x, g: x, h: x, uuid: "{{ uuid .Node.metadata.uid .Index }}"}, capacity: {memory: 80Gi}}`

func eightOn(b *testing.B) *config.Set {
	b.Helper()
	return configtest.SetOf(b, "apiVersion: dra.kwok.x-k8s.io/v1alpha1\nkind: ResourcePoolTemplate\nmetadata: {name: a}\n"+
		"spec: {driver: d, devices: ["+eight+"]}\n")
}

// BenchmarkDesiredPools works out what a node should have, with the template rendered.
func BenchmarkDesiredPools(b *testing.B) {
	set := eightOn(b)
	node := fakeNode("n", true)
	b.ReportAllocs()
	for b.Loop() {
		if want := DesiredPools(b.Context(), &View{Set: set, Node: node}); len(want.Pools) != 1 {
			b.Fatal(want)
		}
	}
}

// BenchmarkPlan plans for a node whose slices are as they should be, as after a
// restart.
func BenchmarkPlan(b *testing.B) {
	node := fakeNode("n", true)
	pools := DesiredPools(b.Context(), &View{Set: eightOn(b), Node: node}).Pools
	created, err := New("", node, fitted(pools...), nil)
	require.NoError(b, err)
	existing := []*facts.Slice{observedOf(b, created.Create[0])}
	b.ReportAllocs()
	for b.Loop() {
		if needs, err := New("", node, fitted(pools...), existing); err != nil || !needs.IsEmpty() {
			b.Fatal(needs, err)
		}
	}
}

// BenchmarkObserve is what a slice takes from the bytes on the wire to the cache.
func BenchmarkObserve(b *testing.B) {
	node := fakeNode("n", true)
	pools := DesiredPools(b.Context(), &View{Set: eightOn(b), Node: node}).Pools
	wire, err := slicesOf(b, node, &pools[0])[0].Marshal()
	require.NoError(b, err)
	b.ReportAllocs()
	for b.Loop() {
		var received resourcev1.ResourceSlice
		if err := received.Unmarshal(wire); err != nil {
			b.Fatal(err)
		}
		facts.ObserveSlice(&received)
	}
}
