package claims

import (
	"fmt"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"

	"github.com/kwok-dra/kwok-dra/pkg/api/v1alpha1"
	"github.com/kwok-dra/kwok-dra/pkg/cached"
)

// ended is a container that has ended with that exit code.
func ended(exitCode int32) corev1.ContainerStatus {
	return corev1.ContainerStatus{State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: exitCode}}}
}

func running() corev1.ContainerStatus {
	return corev1.ContainerStatus{State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}}
}

func TestEnding(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		policy     corev1.RestartPolicy
		containers int
		statuses   []corev1.ContainerStatus
		phase      corev1.PodPhase
		deleted    bool
		want       bool
	}{
		"new":                          {corev1.RestartPolicyNever, 1, nil, "", false, false},
		"pending":                      {corev1.RestartPolicyNever, 1, nil, corev1.PodPending, false, false},
		"running":                      {corev1.RestartPolicyNever, 1, []corev1.ContainerStatus{running()}, corev1.PodRunning, false, false},
		"succeeded":                    {corev1.RestartPolicyAlways, 1, nil, corev1.PodSucceeded, false, true},
		"failed":                       {corev1.RestartPolicyAlways, 1, nil, corev1.PodFailed, false, true},
		"unknown":                      {corev1.RestartPolicyAlways, 1, nil, corev1.PodUnknown, false, false},
		"deleted":                      {corev1.RestartPolicyAlways, 1, []corev1.ContainerStatus{running()}, corev1.PodRunning, true, true},
		"never, ended well":            {corev1.RestartPolicyNever, 1, []corev1.ContainerStatus{ended(0)}, corev1.PodRunning, false, true},
		"never, ended badly":           {corev1.RestartPolicyNever, 1, []corev1.ContainerStatus{ended(1)}, corev1.PodRunning, false, true},
		"never, one of two":            {corev1.RestartPolicyNever, 2, []corev1.ContainerStatus{ended(0), running()}, corev1.PodRunning, false, false},
		"never, one of two known":      {corev1.RestartPolicyNever, 2, []corev1.ContainerStatus{ended(0)}, corev1.PodRunning, false, false},
		"on failure, ended well":       {corev1.RestartPolicyOnFailure, 1, []corev1.ContainerStatus{ended(0)}, corev1.PodRunning, false, true},
		"on failure, ended badly":      {corev1.RestartPolicyOnFailure, 1, []corev1.ContainerStatus{ended(1)}, corev1.PodRunning, false, false},
		"on failure, one of two badly": {corev1.RestartPolicyOnFailure, 2, []corev1.ContainerStatus{ended(0), ended(1)}, corev1.PodRunning, false, false},
		"always, ended well":           {corev1.RestartPolicyAlways, 1, []corev1.ContainerStatus{ended(0)}, corev1.PodRunning, false, false},
		"no policy is always":          {"", 1, []corev1.ContainerStatus{ended(0)}, corev1.PodRunning, false, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pod := newPod("p")
			pod.Spec.RestartPolicy, pod.Spec.Containers = test.policy, make([]corev1.Container, test.containers)
			pod.Status = corev1.PodStatus{Phase: test.phase, ContainerStatuses: test.statuses}
			if test.deleted {
				pod.DeletionTimestamp = new(metav1.Now())
			}
			require.Equal(t, test.want, ending(pod))
		})
	}
}

func TestClaimsOf(t *testing.T) {
	t.Parallel()
	pod := newPod("p", "a")
	pod.Spec.ResourceClaims = append(pod.Spec.ResourceClaims,
		corev1.PodResourceClaim{Name: "made", ResourceClaimTemplateName: new("t")},
		corev1.PodResourceClaim{Name: "not needed", ResourceClaimTemplateName: new("t")},
		corev1.PodResourceClaim{Name: "not made yet", ResourceClaimTemplateName: new("t")})
	pod.Status.ResourceClaimStatuses = []corev1.PodResourceClaimStatus{{Name: "made", ResourceClaimName: new("p-made-x")}, {Name: "not needed"}}
	require.Equal(t, []types.NamespacedName{{Namespace: "default", Name: "a"}, {Namespace: "default", Name: "p-made-x"}}, claimsOf(pod))
	require.True(t, usesClaims(pod))

	before := len(pod.Spec.ResourceClaims)
	pod.Status.ExtendedResourceClaimStatus = &corev1.PodExtendedResourceClaimStatus{ResourceClaimName: "e"}
	require.Equal(t, types.NamespacedName{Namespace: "default", Name: "e"}, claimsOf(pod)[2])
	require.Len(t, pod.Spec.ResourceClaims, before, "the Pod of the cache is left as it is")

	require.False(t, usesClaims(newPod("p")))
	require.Empty(t, claimsOf(newPod("p")))
	pod = newPod("p")
	pod.Status.ExtendedResourceClaimStatus = &corev1.PodExtendedResourceClaimStatus{ResourceClaimName: "e"}
	require.True(t, usesClaims(pod))
}

func TestNodeOf(t *testing.T) {
	t.Parallel()
	fields := func(requirements ...corev1.NodeSelectorRequirement) *corev1.NodeSelector {
		return &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchFields: requirements}}}
	}
	in := corev1.NodeSelectorRequirement{Key: "metadata.name", Operator: corev1.NodeSelectorOpIn, Values: []string{"n"}}
	notIn, two, other := in, in, in
	notIn.Operator, two.Values, other.Key = corev1.NodeSelectorOpNotIn, []string{"n", "m"}, "metadata.uid"
	for name, test := range map[string]struct {
		allocation *resourcev1.AllocationResult
		want       string
	}{
		"not allocated": {nil, ""},
		"any node":      {&resourcev1.AllocationResult{}, ""},
		"one node":      {&resourcev1.AllocationResult{NodeSelector: fields(in)}, "n"},
		"one and more":  {&resourcev1.AllocationResult{NodeSelector: fields(other, in)}, "n"},
		"all but one":   {&resourcev1.AllocationResult{NodeSelector: fields(notIn)}, ""},
		"two nodes":     {&resourcev1.AllocationResult{NodeSelector: fields(two)}, ""},
		"another field": {&resourcev1.AllocationResult{NodeSelector: fields(other)}, ""},
		"no terms":      {&resourcev1.AllocationResult{NodeSelector: &corev1.NodeSelector{}}, ""},
		"by label": {&resourcev1.AllocationResult{NodeSelector: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
			MatchExpressions: []corev1.NodeSelectorRequirement{in},
		}}}}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			require.Equal(t, test.want, nodeOf(&resourcev1.ResourceClaim{Status: resourcev1.ResourceClaimStatus{Allocation: test.allocation}}))
		})
	}
}

func TestFailureOf(t *testing.T) {
	t.Parallel()
	pod := newPod("p")
	require.Equal(t, "failWhen selects the Pod", failureOf(pod))
	say(corev1.ConditionFalse, "")(pod)
	require.Equal(t, "failWhen selects the Pod", failureOf(pod))
	say(corev1.ConditionTrue, "all is well")(pod)
	require.Equal(t, "failWhen selects the Pod", failureOf(pod))
	say(corev1.ConditionFalse, "broken")(pod)
	require.Equal(t, "broken", failureOf(pod))
}

// TestObservePod keeps all that selectors see of Pods with claims, and hardly
// anything of the many others.
func TestObservePod(t *testing.T) {
	t.Parallel()
	with, without := newPod("p", "c"), newPod("q")
	for _, pod := range []*corev1.Pod{with, without} {
		pod.ResourceVersion, pod.Labels = "5", map[string]string{"a": "b"}
		pod.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: "m"}}
	}
	kept := with.DeepCopy()
	kept.ManagedFields = nil
	kept.Spec.NodeName, with.Spec.NodeName = "n", "n"
	meta := func(pod *corev1.Pod) cached.Meta {
		return cached.Meta{Name: pod.Name, Namespace: "default", UID: pod.UID, ResourceVersion: "5"}
	}
	observed, err := observePod(with)
	require.NoError(t, err)
	seen := observed.(*observedPod)
	require.Equal(t, kept, seen.pod())
	one, other := seen.pod(), seen.pod()
	require.NotSame(t, one, other, "a copy")
	require.Equal(t, meta(kept), seen.Meta)
	require.Equal(t, "n", seen.node)
	require.Equal(t, claimsOf(kept), seen.claims)
	require.False(t, seen.terminal)
	again, err := observePod(observed)
	require.NoError(t, err)
	require.Same(t, observed, again)
	observed, err = observePod(without)
	require.NoError(t, err)
	want := &observedPod{}
	want.Meta = meta(without)
	require.Equal(t, want, observed)
	require.Nil(t, observed.(*observedPod).pod())
	odd, err := observePod("odd")
	require.NoError(t, err)
	require.Equal(t, "odd", odd)
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
		observed, err := observePod(pod)
		require.NoError(t, err)
		require.NoError(t, store.Add(observed))
	}
	each := (heap() - before) / pods
	t.Logf("%d bytes for each Pod without claims", each)
	require.LessOrEqual(t, each, uint64(most))
	require.Len(t, store.ListKeys(), pods)
}

func TestPluginOf(t *testing.T) {
	t.Parallel()
	node := newNode("n")
	require.Equal(t, pluginUp, pluginOf(node))
	node.Status.Conditions = []corev1.NodeCondition{
		{Type: corev1.NodeReady, Status: corev1.ConditionFalse},
		{Type: v1alpha1.PluginRegistered, Status: corev1.ConditionUnknown, Reason: v1alpha1.PluginCrashed},
	}
	require.Equal(t, pluginSilent, pluginOf(node))
	node.Status.Conditions[1].Reason = "Other"
	require.Equal(t, pluginGone, pluginOf(node))
}
