package claims

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kwok-dra/kwok-dra/pkg/config"
)

func TestUses(t *testing.T) {
	t.Parallel()
	s := newStates()
	require.True(t, s.use("c", "p"), "the first Pod")
	require.False(t, s.use("c", "q"))
	require.True(t, s.use("b", "p"))
	require.Equal(t, 2, s.prepared())
	require.True(t, s.uses("c", "p"))
	require.False(t, s.uses("b", "q"))

	require.False(t, s.unuse("c", "p"))
	require.False(t, s.unuse("c", "p"), "once is enough")
	require.False(t, s.unuse("c", "r"))
	require.True(t, s.unuse("c", "q"), "the last Pod")
	require.False(t, s.unuse("c", "q"))
	require.Equal(t, 1, s.prepared())
	require.True(t, s.use("c", "q"), "the first one again")
}

func TestPodsOfOneName(t *testing.T) {
	t.Parallel()
	s := newStates()
	key := types.NamespacedName{Namespace: "default", Name: "p"}
	first, former := s.pod(key, "1")
	require.Nil(t, former)
	first.claims = []types.UID{"c"}
	again, former := s.pod(key, "1")
	require.Same(t, first, again)
	require.Nil(t, former)

	s.bound(key, "2", noon) // the informer may tell of it before the worker looks
	current, former := s.pod(key, "2")
	require.Same(t, first, former, "so that its claims can be released")
	require.Equal(t, noon, s.boundAt(current))
	_, former = s.pod(key, "2")
	require.Nil(t, former, "once")

	s.bound(key, "3", noon)
	forgotten := s.forgetPod(key)
	require.EqualValues(t, "3", forgotten.uid)
	require.Same(t, current, forgotten.former)
	require.Nil(t, s.forgetPod(key))
}

// TestReleaseOfSeveral: each Pod that had the name is released.
func TestReleaseOfSeveral(t *testing.T) {
	t.Parallel()
	p := &Preparer{states: newStates()}
	p.metrics = newMetrics(p.states.prepared)
	first := &podState{uid: "1", claims: []types.UID{"b"}}
	second := &podState{uid: "2", claims: []types.UID{"c"}, former: first}
	p.states.use("b", "1")
	p.states.use("c", "2")
	p.release(second)
	require.Zero(t, p.states.prepared())
	p.release(nil)
}

func TestClaimStates(t *testing.T) {
	t.Parallel()
	s := newStates()
	state := s.claim("c")
	require.Same(t, state, s.claim("c"))
	s.forgetClaim("c")
	require.NotSame(t, state, s.claim("c"))
}

func TestFailureLeft(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		pod := newPod("p", "c")
		pod.Labels, pod.Annotations = map[string]string{"a": "b"}, map[string]string{"a": "b"}
		edited := func(change func(pod *corev1.Pod)) *corev1.Pod {
			pod := pod.DeepCopy()
			change(pod)
			return pod
		}
		retry := time.Now().Add(time.Minute)
		set, other := &config.Set{}, &config.Set{}
		of := func(pod *corev1.Pod, set *config.Set) *attempt { return &attempt{pod: pod, set: set} }
		genuine, simulated := newFailure(of(pod, set), reasonNotAllocated, retry), newFailure(of(pod, set), reasonSimulated, retry)
		template := newFailure(of(pod, set), reasonTemplate, retry)
		for name, test := range map[string]struct {
			failure *failure
			pod     *corev1.Pod
			gate    gate
			want    time.Duration
		}{
			"none":                      {nil, pod, gatePrepare, 0},
			"genuine":                   {genuine, pod, gatePrepare, time.Minute},
			"genuine, and failWhen":     {genuine, pod, gateFail, time.Minute},
			"simulated, still":          {simulated, pod, gateFail, time.Minute},
			"simulated, no longer":      {simulated, pod, gatePrepare, 0},
			"status":                    {genuine, edited(func(pod *corev1.Pod) { pod.Status.Phase = corev1.PodRunning }), gatePrepare, time.Minute},
			"label changed":             {genuine, edited(func(pod *corev1.Pod) { pod.Labels["a"] = "c" }), gatePrepare, 0},
			"label gone":                {genuine, edited(func(pod *corev1.Pod) { pod.Labels = nil }), gatePrepare, 0},
			"simulated, and edited":     {simulated, edited(func(pod *corev1.Pod) { pod.Labels = nil }), gateFail, time.Minute},
			"annotation added":          {genuine, edited(func(pod *corev1.Pod) { pod.Annotations["b"] = "c" }), gatePrepare, 0},
			"spec changed":              {genuine, edited(func(pod *corev1.Pod) { pod.Generation++ }), gatePrepare, 0},
			"only the resource version": {genuine, edited(func(pod *corev1.Pod) { pod.ResourceVersion = "9" }), gatePrepare, time.Minute},
		} {
			require.Equal(t, test.want, test.failure.left(of(test.pod, set), test.gate), name)
		}
		require.Equal(t, time.Minute, template.left(of(pod, set), gatePrepare))
		require.Zero(t, template.left(of(pod, other), gatePrepare), "what is to blame has changed")
		require.Equal(t, time.Minute, genuine.left(of(pod, other), gatePrepare))
		time.Sleep(time.Minute - time.Second)
		require.Equal(t, time.Second, genuine.left(of(pod, set), gatePrepare))
		time.Sleep(time.Hour)
		require.Zero(t, genuine.left(of(pod, set), gatePrepare))
	})
}

// withConditions is a result with these binding conditions and failure
// conditions.
func withConditions(kinds, failures []string) resourcev1.DeviceRequestAllocationResult {
	gpu := device("d", "gpu-0")
	gpu.BindingConditions, gpu.BindingFailureConditions = kinds, failures
	return gpu
}

func TestPendingBindings(t *testing.T) {
	t.Parallel()
	isTrue := func(kinds ...string) []metav1.Condition {
		var conditions []metav1.Condition
		for _, kind := range kinds {
			conditions = append(conditions, metav1.Condition{Type: kind, Status: metav1.ConditionTrue})
		}
		return conditions
	}
	two := withConditions([]string{"a", "b"}, []string{"x", "y"})
	foreign := two
	foreign.Driver = "other"
	for name, test := range map[string]struct {
		result     resourcev1.DeviceRequestAllocationResult
		conditions []metav1.Condition
		want       int
	}{
		"no conditions":     {device("d", "gpu-0"), nil, 0},
		"foreign":           {foreign, nil, 0},
		"no entry":          {two, nil, 1},
		"one of two":        {two, isTrue("a"), 1},
		"all":               {two, isTrue("b", "a", "c"), 0},
		"failed":            {two, isTrue("y"), 0},
		"one False":         {two, append(isTrue("a"), metav1.Condition{Type: "b", Status: metav1.ConditionFalse}), 1},
		"failure is False":  {two, []metav1.Condition{{Type: "x", Status: metav1.ConditionFalse}}, 1},
		"failed afterwards": {two, isTrue("a", "b", "x"), 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			claim := allocated("c")
			allocate(claim, test.result, device("d", "gpu-1"))
			claim.Status.Devices = []resourcev1.AllocatedDeviceStatus{{Driver: "d", Pool: "n", Device: "gpu-1"}}
			if test.conditions != nil {
				claim.Status.Devices = append(claim.Status.Devices, resourcev1.AllocatedDeviceStatus{Driver: "d", Pool: "n", Device: "gpu-0", Conditions: test.conditions})
			}
			require.Len(t, pendingBindings(claim, func(result *resourcev1.DeviceRequestAllocationResult) bool { return result.Driver == "d" }), test.want)
		})
	}
}

func TestBindingEntry(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		result  resourcev1.DeviceRequestAllocationResult
		failure string
		want    []metav1.Condition
	}{
		"all": {withConditions([]string{"a", "b"}, []string{"x"}), "", []metav1.Condition{
			{Type: "a", Status: metav1.ConditionTrue, Reason: "Bound", Message: "device is ready to be bound"},
			{Type: "b", Status: metav1.ConditionTrue, Reason: "Bound", Message: "device is ready to be bound"},
		}},
		"failure": {withConditions([]string{"a", "b"}, []string{"x", "y"}), "broken", []metav1.Condition{
			{Type: "x", Status: metav1.ConditionTrue, Reason: "BindingFailed", Message: "broken"},
		}},
		"cannot fail": {withConditions([]string{"a"}, nil), "broken", []metav1.Condition{
			{Type: "a", Status: metav1.ConditionTrue, Reason: "Bound", Message: "device is ready to be bound"},
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			result := shared("s", test.result)
			entry := bindingEntry(&result, test.failure)
			require.Equal(t, deviceID{"d", "n", "gpu-0", "s"}, entryID(&entry))
			require.Equal(t, test.want, entry.Conditions)
			entry = bindingEntry(&test.result, test.failure)
			require.Nil(t, entry.ShareID)
		})
	}
}
