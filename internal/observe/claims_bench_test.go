package observe

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kwok-dra/kwok-dra/internal/testing/claimstest"
)

// BenchmarkObservePod is what a Pod takes from the bytes on the wire to the
// cache, with a claim and without.
func BenchmarkObservePod(b *testing.B) {
	for name, pod := range map[string]*corev1.Pod{"claim": claimstest.NewPod("p", "c"), "plain": claimstest.NewPod("p")} {
		pod.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: "kwok", FieldsV1: metav1.NewFieldsV1(strings.Repeat("f", 1000))}}
		wire, err := pod.Marshal()
		require.NoError(b, err)
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				var received corev1.Pod
				if err := received.Unmarshal(wire); err != nil {
					b.Fatal(err)
				}
				observePod(&received, nil)
			}
		})
	}
}

// BenchmarkObserveClaim is the same for a claim.
func BenchmarkObserveClaim(b *testing.B) {
	wire, err := claimstest.Allocated("c", claimstest.NewPod("p")).Marshal()
	require.NoError(b, err)
	b.ReportAllocs()
	for b.Loop() {
		var received resourcev1.ResourceClaim
		if err := received.Unmarshal(wire); err != nil {
			b.Fatal(err)
		}
		observeClaim(&received)
	}
}
