package observe

import (
	"fmt"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"

	"github.com/kwok-dra/kwok-dra/pkg/cached"
	"github.com/kwok-dra/kwok-dra/pkg/claims/plan"
	"github.com/kwok-dra/kwok-dra/pkg/internal/claimstest"
)

// TestObservePod keeps all that selectors see of Pods with claims, and hardly
// anything of the many others.
func TestObservePod(t *testing.T) {
	t.Parallel()
	with, without := claimstest.NewPod("p", "c"), claimstest.NewPod("q")
	for _, pod := range []*corev1.Pod{with, without} {
		pod.ResourceVersion, pod.Labels = "5", map[string]string{"a": "b"}
		pod.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: "m"}}
	}
	kept := with.DeepCopy()
	kept.ManagedFields = nil
	meta := func(pod *corev1.Pod) cached.Meta {
		return cached.Meta{Name: pod.Name, Namespace: "default", UID: pod.UID, ResourceVersion: "5"}
	}
	seen := observePod(with)
	require.Equal(t, kept, seen.Decode())
	one, other := seen.Decode(), seen.Decode()
	require.NotSame(t, one, other, "a copy")
	require.Equal(t, meta(kept), seen.Meta)
	require.Equal(t, "n", seen.Node)
	require.Equal(t, plan.ClaimKeys(kept), seen.Claims)
	require.False(t, seen.Terminal)
	want := &Pod{}
	want.Meta = meta(without)
	require.Equal(t, want, observePod(without))
	require.False(t, want.HasClaims())
}

// TestPodsWithoutClaimsAreCheap measures what the cache takes for each of very
// many Pods that have nothing to do with devices. It runs beside no other test.
func TestPodsWithoutClaimsAreCheap(t *testing.T) {
	const pods, most = 100_000, 600
	heap := func() uint64 {
		runtime.GC()
		var stats runtime.MemStats
		runtime.ReadMemStats(&stats)
		return stats.HeapAlloc
	}
	before := heap()
	store := cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.TypedIndexersToIndexers(podIndexers))
	for i := range pods {
		pod := &corev1.Pod{Spec: corev1.PodSpec{NodeName: "n"}, ObjectMeta: metav1.ObjectMeta{
			Name: fmt.Sprintf("a-workload-5d4f8c7b9-%05d", i), Namespace: fmt.Sprintf("team-%d", i%100), ResourceVersion: fmt.Sprint(1e6 + i),
		}}
		require.NoError(t, store.Add(observePod(pod)))
	}
	each := (heap() - before) / pods
	t.Logf("%d bytes for each Pod without claims", each)
	require.LessOrEqual(t, each, uint64(most))
	require.Len(t, store.ListKeys(), pods)
}
