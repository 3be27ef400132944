package facts

import (
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kwok-dra/kwok-dra/internal/testing/claimstest"
)

// ended is a container that has ended with that exit code.
func ended(exitCode int32) corev1.ContainerStatus {
	return corev1.ContainerStatus{State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: exitCode}}}
}

func running() corev1.ContainerStatus {
	return corev1.ContainerStatus{State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}}
}

func TestIsEnding(t *testing.T) {
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
			pod := claimstest.NewPod("p")
			pod.Spec.RestartPolicy, pod.Spec.Containers = test.policy, make([]corev1.Container, test.containers)
			pod.Status = corev1.PodStatus{Phase: test.phase, ContainerStatuses: test.statuses}
			if test.deleted {
				pod.DeletionTimestamp = new(metav1.Now())
			}
			require.Equal(t, test.want, IsEnding(pod))
		})
	}
}

func TestClaimKeys(t *testing.T) {
	t.Parallel()
	pod := claimstest.NewPod("p", "a")
	pod.Spec.ResourceClaims = append(pod.Spec.ResourceClaims,
		corev1.PodResourceClaim{Name: "made", ResourceClaimTemplateName: new("t")},
		corev1.PodResourceClaim{Name: "not needed", ResourceClaimTemplateName: new("t")},
		corev1.PodResourceClaim{Name: "not made yet", ResourceClaimTemplateName: new("t")})
	pod.Status.ResourceClaimStatuses = []corev1.PodResourceClaimStatus{{Name: "made", ResourceClaimName: new("p-made-x")}, {Name: "not needed"}}
	require.Equal(t, []types.NamespacedName{{Namespace: "default", Name: "a"}, {Namespace: "default", Name: "p-made-x"}}, ClaimKeys(pod))
	require.True(t, UsesClaims(pod))

	before := len(pod.Spec.ResourceClaims)
	pod.Status.ExtendedResourceClaimStatus = &corev1.PodExtendedResourceClaimStatus{ResourceClaimName: "e"}
	require.Equal(t, types.NamespacedName{Namespace: "default", Name: "e"}, ClaimKeys(pod)[2])
	require.Len(t, pod.Spec.ResourceClaims, before, "the Pod of the cache is left as it is")

	require.False(t, UsesClaims(claimstest.NewPod("p")))
	require.Empty(t, ClaimKeys(claimstest.NewPod("p")))
	pod = claimstest.NewPod("p")
	pod.Status.ExtendedResourceClaimStatus = &corev1.PodExtendedResourceClaimStatus{ResourceClaimName: "e"}
	require.True(t, UsesClaims(pod))
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
			require.Equal(t, test.want, NodeOf(&resourcev1.ResourceClaim{Status: resourcev1.ResourceClaimStatus{Allocation: test.allocation}}))
		})
	}
}
