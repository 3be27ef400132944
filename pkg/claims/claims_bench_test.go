package claims

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"
)

// BenchmarkObservePod is what a Pod takes from the bytes on the wire to the
// cache, with a claim and without.
func BenchmarkObservePod(b *testing.B) {
	for name, pod := range map[string]*corev1.Pod{"claim": newPod("p", "c"), "plain": newPod("p")} {
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
				if _, err := observePod(&received); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkObserveClaim is the same for a claim.
func BenchmarkObserveClaim(b *testing.B) {
	wire, err := allocated("c", newPod("p", "c")).Marshal()
	require.NoError(b, err)
	b.ReportAllocs()
	for b.Loop() {
		var received resourcev1.ResourceClaim
		if err := received.Unmarshal(wire); err != nil {
			b.Fatal(err)
		}
		if _, err := observeClaim(&received); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkPreparePlan performs the kubelet's checks of a Pod and works out what its
// claims are to show.
func BenchmarkPreparePlan(b *testing.B) {
	f := newFixture()
	p := &Preparer{states: newStates(), pods: newPodInformer(fake.NewClientset())}
	a := attemptOf(setOf(b, template("d", "")), f.pod)
	b.ReportAllocs()
	for b.Loop() {
		f.asked = f.asked[:0]
		claims, err := check(f.pod, f.view())
		if err != nil {
			b.Fatal(err)
		}
		wanted, err := p.plan(a, claims, gatePrepare)
		if err != nil || len(wanted) != 2 {
			b.Fatal(wanted, err)
		}
	}
}
