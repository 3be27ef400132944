package templates

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"

	"github.com/kwok-dra/kwok-dra/internal/claims/plan"
	"github.com/kwok-dra/kwok-dra/internal/testing/claimstest"
	"github.com/kwok-dra/kwok-dra/internal/testing/configtest"
)

// BenchmarkPreparePlan works out what a Pod needs whose claims are to be prepared,
// where they show nothing of their device, and where they show what is rendered of it.
func BenchmarkPreparePlan(b *testing.B) {
	const uuid = "---\napiVersion: dra.kwok.x-k8s.io/v1alpha1\nkind: ResourcePoolTemplate\nmetadata: {name: d}\n" +
		"spec:\n  driver: d\n  devices: [{name: gpu, count: 8, attributes: {model: X, index: {int: '{{ .Index }}'}, uuid: '{{ uuid .Node.metadata.uid .Index }}'}}]\n" +
		"  claimStatus: {data: {uuid: '{{ .Device.attributes.uuid.string }}'}}\n"
	b.Run("plain", func(b *testing.B) { benchmarkPreparePlan(b, claimstest.Template("d", "")) })
	b.Run("device", func(b *testing.B) { benchmarkPreparePlan(b, uuid) })
}

func benchmarkPreparePlan(b *testing.B, template string) {
	b.Helper()
	set, node, pod := configtest.SetOf(b, template), claimstest.NewNode("n"), claimstest.NewPod("p", "c", "e")
	claims := plan.PodClaims{
		Known: map[string]*resourcev1.ResourceClaim{"c": claimstest.Allocated("c", pod), "e": claimstest.Allocated("e", pod)},
		Users: func(*resourcev1.ResourceClaim) []*corev1.Pod { return []*corev1.Pod{pod} },
	}
	b.ReportAllocs()
	for b.Loop() {
		view := &plan.PodView{
			Pod:     pod,
			Node:    node,
			Set:     set,
			Driver:  New(set, node, Slices{Of: func(string) (has, known bool) { return true, true }}, nil),
			Claims:  claims,
			Standby: func([]*resourcev1.ResourceClaim) bool { return false },
		}
		next, err := plan.ForPod(b.Context(), view, claimstest.Noon)
		if err != nil || len(next.Entries) != 2 || next.Patch == nil {
			b.Fatal(next, err)
		}
	}
}
