package observe

import (
	"context"
	"fmt"
	"runtime"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/tools/cache"

	"github.com/kwok-dra/kwok-dra/internal/observe/cached"
	"github.com/kwok-dra/kwok-dra/internal/observe/facts"
	"github.com/kwok-dra/kwok-dra/internal/observe/lifecycle"
	"github.com/kwok-dra/kwok-dra/internal/testing/claimstest"
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
	seen := observePod(with, nil)
	require.Equal(t, kept, seen.Decode())
	one, other := seen.Decode(), seen.Decode()
	require.NotSame(t, one, other, "a copy")
	require.Equal(t, meta(kept), seen.Meta)
	require.Equal(t, "n", seen.Node)
	require.Equal(t, facts.ClaimKeys(kept), seen.Claims)
	require.False(t, seen.Terminal)
	want := &Pod{Node: "n"}
	want.Meta = meta(without)
	require.Equal(t, want, observePod(without, nil))
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
		require.NoError(t, store.Add(observePod(pod, nil)))
	}
	each := (heap() - before) / pods
	t.Logf("%d bytes for each Pod without claims", each)
	require.LessOrEqual(t, each, uint64(most))
	require.Len(t, store.ListKeys(), pods)
}

// TestPodKeepsItsClaims: what a client drops from the status of a Pod stays known of that Pod, and not of another one of its name.
func TestPodKeepsItsClaims(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "p", UID: "1"}, Spec: corev1.PodSpec{NodeName: "n"}}
		pod.Status.ExtendedResourceClaimStatus = &corev1.PodExtendedResourceClaimStatus{ResourceClaimName: "c"}
		client := fake.NewClientset(pod)
		pods := New(client, &lifecycle.ManagedNodes{}).Pods
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() { defer close(done); pods.Run(ctx) }()
		defer func() { cancel(); <-done }()
		key := types.NamespacedName{Namespace: "default", Name: "p"}
		claim := &resourcev1.ResourceClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "c"}}
		claim.Status.ReservedFor = []resourcev1.ResourceClaimConsumerReference{{Resource: "pods", Name: "p", UID: "1"}}
		update := func(change func(pod *corev1.Pod)) {
			synctest.Wait()
			now := pod.DeepCopy()
			change(now)
			_, err := client.CoreV1().Pods("default").Update(ctx, now, metav1.UpdateOptions{})
			require.NoError(t, err)
			synctest.Wait()
		}
		update(func(pod *corev1.Pod) { pod.Status.ExtendedResourceClaimStatus = nil })
		require.NotNil(t, pods.Get(key).Status.ExtendedResourceClaimStatus)
		require.Len(t, pods.Consumers(claim), 1)
		require.Len(t, pods.On("n"), 1)
		update(func(pod *corev1.Pod) { pod.UID, pod.Status.ExtendedResourceClaimStatus = "2", nil })
		require.Nil(t, pods.Get(key))
		require.Empty(t, pods.Consumers(claim))
		require.Empty(t, pods.On("n"))
		claim.Status.ReservedFor[0].UID = "2"
		require.Equal(t, "n", pods.Consumers(claim)[0].Spec.NodeName)
		update(func(pod *corev1.Pod) { pod.UID, pod.Status = "2", corev1.PodStatus{Phase: corev1.PodFailed} })
		require.Empty(t, pods.Consumers(claim))
	})
}
