package drajudge

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func statementIDs(violations []Violation) []string {
	var ids []string
	for _, violation := range violations {
		ids = append(ids, violation.Statement.ID)
	}
	return ids
}

// TestDecisionLag: a decision by slices that have changed shortly before the write is right, and one by older slices is not.
func TestDecisionLag(t *testing.T) {
	t.Parallel()
	s := newStory()
	slice := sliceOf(gpus(1)...)
	s.create(slice)
	s.now = s.now.Add(time.Second)
	s.remove(slice)
	other := sliceOf(gpu(1))
	other.Name = "other"
	s.create(other)
	s.now = s.now.Add(4 * time.Second)
	s.run(claimWith("a", requestFor("r", 1)), given("r", "gpu-0"))
	s.run(claimWith("b", requestFor("r", 1)), given("r", "gpu-1"))

	require.Equal(t, []string{poolNewest}, statementIDs(Judge(t.Context(), s.history, Options{})))
	require.Equal(t, []string{poolNewest}, statementIDs(Judge(t.Context(), s.history, Options{DecisionLag: 3 * time.Second})))
	require.Empty(t, Judge(t.Context(), s.history, Options{DecisionLag: 5 * time.Second}))

	for i := range s.history { // without times there is nothing to go by
		if _, isClaim := s.history[i].Object.(*resourcev1.ResourceClaim); isClaim {
			s.history[i].Time = time.Time{}
		}
	}
	require.Equal(t, []string{poolNewest}, statementIDs(Judge(t.Context(), s.history, Options{DecisionLag: 5 * time.Second})))
}

// TestHistoryIsSorted: several watches deliver events out of order, and a list repeats what is known.
func TestHistoryIsSorted(t *testing.T) {
	t.Parallel()
	s := newStory()
	s.create(sliceOf(gpus(1)...))
	s.run(claimWith("a", requestFor("r", 1)), given("r", "gpu-0"))
	listed := slices.Clone(s.history)
	slices.Reverse(listed)
	require.Empty(t, Judge(t.Context(), append(s.history, listed...), Options{}))
}

func TestReadWatch(t *testing.T) {
	t.Parallel()
	history, err := ReadWatch(strings.NewReader(`
		{"type": "ADDED", "time": "2026-01-01T00:00:00.500000Z", "object": {"kind": "Pod", "metadata": {"name": "a", "resourceVersion": "9"}}}
		{"type": "ADDED", "object": {"kind": "Lease", "metadata": {"name": "b"}}}
		{"type": "BOOKMARK", "object": {"kind": "Pod", "metadata": {"resourceVersion": "10"}}}
		{"type": "DELETED", "object": {"kind": "DeviceTaintRule", "apiVersion": "resource.k8s.io/v1alpha3", "metadata": {"name": "c"}, "spec": {"taint": {"key": "k"}}}}`))
	require.NoError(t, err)
	require.Len(t, history, 2)
	require.Equal(t, "a", history[0].Object.(*corev1.Pod).Name)
	require.Equal(t, 500*time.Millisecond, time.Duration(history[0].Time.Nanosecond()))
	require.Equal(t, "k", history[1].Object.(*resourcev1.DeviceTaintRule).Spec.Taint.Key)

	_, err = ReadWatch(strings.NewReader(`{"type": "ADDED", "object": {"kind": "Pod", "spec": 1}}`))
	require.ErrorContains(t, err, "read watch event 1: decode a Pod")
	_, err = ReadWatch(strings.NewReader(`{"type": "ADDED"`))
	require.ErrorContains(t, err, "read watch event 1")
}

func TestViolationOnOneLine(t *testing.T) {
	t.Parallel()
	s := newStory()
	s.create(sliceOf(gpus(1)...))
	s.run(claimWith("a", requestFor("r", 1)), given("r", "gpu-9"))
	violations := Judge(t.Context(), s.history, Options{})
	require.Len(t, violations, 1)
	require.Equal(t, "pool-newest (must) at version 8, ResourceClaim default/a: "+
		"request r, device gpu.example.com/node-1/gpu-9: no slice of the pool's highest generation, 1, has the device", violations[0].String())
}

func TestMatchesRequirement(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		operator corev1.NodeSelectorOperator
		values   []string
		value    string
		exists   bool
		matches  bool
	}{
		{corev1.NodeSelectorOpIn, []string{"a", "b"}, "b", true, true},
		{corev1.NodeSelectorOpIn, []string{""}, "", false, false},
		{corev1.NodeSelectorOpNotIn, []string{"a"}, "a", true, false},
		{corev1.NodeSelectorOpNotIn, []string{"a"}, "", false, true},
		{corev1.NodeSelectorOpExists, nil, "a", true, true},
		{corev1.NodeSelectorOpExists, nil, "", false, false},
		{corev1.NodeSelectorOpDoesNotExist, nil, "", false, true},
		{corev1.NodeSelectorOpGt, []string{"5"}, "6", true, true},
		{corev1.NodeSelectorOpGt, []string{"5"}, "5", true, false},
		{corev1.NodeSelectorOpLt, []string{"5"}, "4", true, true},
		{corev1.NodeSelectorOpLt, []string{"5"}, "many", true, false},
		{corev1.NodeSelectorOpLt, []string{"5"}, "", false, false},
	} {
		requirement := &corev1.NodeSelectorRequirement{Operator: c.operator, Values: c.values}
		require.Equal(t, c.matches, matchesRequirement(requirement, c.value, c.exists), "%v", c)
	}
}

// longHistory has nodes with eight devices each, whose claims come and go with their Pods: six events each.
func longHistory(events int) History {
	const nodes = 100
	s := newStory()
	for i := range nodes {
		name := fmt.Sprintf("worker-%d", i)
		s.create(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}})
		slice := sliceOf(gpus(8)...)
		slice.Name, slice.Spec.NodeName, slice.Spec.Pool.Name = name, &name, name
		s.create(slice)
	}
	for i := 0; len(s.history) < events; i++ {
		node, first := fmt.Sprintf("worker-%d", i%nodes), i/nodes%4*2
		claim := claimWith(fmt.Sprintf("claim-%d", i), requestFor("r", 2, func(r *resourcev1.ExactDeviceRequest) {
			r.Selectors = selectors(`device.attributes["gpu.example.com"].index < 8`)
		}))
		claim.Spec.Devices.Constraints = []resourcev1.DeviceConstraint{{DistinctAttribute: new(resourcev1.FullyQualifiedName(driver + "/index"))}}
		pod := podWith(fmt.Sprintf("pod-%d", i), claim.Name)
		s.create(claim, pod)
		reserve(claim, pod)
		claim.Status.Allocation = &resourcev1.AllocationResult{NodeSelector: onlyNode(node)}
		for _, device := range []int{first, first + 1} {
			result := given("r", fmt.Sprintf("gpu-%d", device))
			result.Pool = node
			claim.Status.Allocation.Devices.Results = append(claim.Status.Allocation.Devices.Results, result)
		}
		s.update(claim)
		s.bind(pod, node)
		s.remove(pod)
		s.remove(claim)
	}
	return s.history
}

// TestLongHistory: 10,000 events are judged in two seconds. The limit leaves room for a machine that has other work.
func TestLongHistory(t *testing.T) {
	t.Parallel()
	history := longHistory(10_000)
	started := time.Now()
	require.Empty(t, Judge(t.Context(), history, Options{DecisionLag: time.Second}))
	require.Less(t, time.Since(started), 10*time.Second)
}

func BenchmarkJudge(b *testing.B) {
	history := longHistory(10_000)
	for b.Loop() {
		if violations := Judge(b.Context(), history, Options{}); len(violations) > 0 {
			b.Fatal(violations)
		}
	}
}
