package plan

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"github.com/kwok-dra/kwok-dra/internal/config"
	"github.com/kwok-dra/kwok-dra/internal/testing/claimstest"
)

func TestFailureLeft(t *testing.T) {
	t.Parallel()
	{
		pod := claimstest.NewPod("p", "c")
		pod.Labels, pod.Annotations = map[string]string{"a": "b"}, map[string]string{"a": "b"}
		edited := func(change func(pod *corev1.Pod)) *corev1.Pod {
			pod := pod.DeepCopy()
			change(pod)
			return pod
		}
		now := claimstest.Noon
		retry := now.Add(time.Minute)
		set, other := &config.Set{}, &config.Set{}
		of := func(pod *corev1.Pod, set *config.Set) *PodView { return &PodView{Pod: pod, Set: set} }
		genuine, simulated := NewLastFailure(of(pod, set), &Failure{Reason: ReasonNotAllocated}, retry), NewLastFailure(of(pod, set), &Failure{Reason: ReasonSimulated}, retry)
		template, parameters := NewLastFailure(of(pod, set), &Failure{Reason: ReasonTemplate}, retry), NewLastFailure(of(pod, set), &Failure{Reason: ReasonParameters}, retry)
		for name, test := range map[string]struct {
			failure *LastFailure
			pod     *corev1.Pod
			fail    bool
			want    time.Duration
		}{
			"none":                      {nil, pod, false, 0},
			"genuine":                   {genuine, pod, false, time.Minute},
			"genuine, and failWhen":     {genuine, pod, true, time.Minute},
			"simulated, still":          {simulated, pod, true, time.Minute},
			"simulated, no longer":      {simulated, pod, false, 0},
			"status":                    {genuine, edited(func(pod *corev1.Pod) { pod.Status.Phase = corev1.PodRunning }), false, time.Minute},
			"label changed":             {genuine, edited(func(pod *corev1.Pod) { pod.Labels["a"] = "c" }), false, 0},
			"label gone":                {genuine, edited(func(pod *corev1.Pod) { pod.Labels = nil }), false, 0},
			"simulated, and edited":     {simulated, edited(func(pod *corev1.Pod) { pod.Labels = nil }), true, time.Minute},
			"annotation added":          {genuine, edited(func(pod *corev1.Pod) { pod.Annotations["b"] = "c" }), false, 0},
			"spec changed":              {genuine, edited(func(pod *corev1.Pod) { pod.Generation++ }), false, 0},
			"only the resource version": {genuine, edited(func(pod *corev1.Pod) { pod.ResourceVersion = "9" }), false, time.Minute},
		} {
			require.Equal(t, test.want, test.failure.remainingDelay(of(test.pod, set), test.fail, now), name)
		}
		require.Equal(t, time.Minute, template.remainingDelay(of(pod, set), false, now))
		require.Zero(t, template.remainingDelay(of(pod, other), false, now), "what is to blame has changed")
		require.Equal(t, time.Minute, parameters.remainingDelay(of(pod, set), false, now))
		require.Zero(t, parameters.remainingDelay(of(pod, other), false, now), "the schema may have changed")
		require.Equal(t, time.Minute, genuine.remainingDelay(of(pod, other), false, now))
		now = now.Add(time.Minute - time.Second)
		require.Equal(t, time.Second, genuine.remainingDelay(of(pod, set), false, now))
		now = now.Add(time.Hour)
		require.Zero(t, genuine.remainingDelay(of(pod, set), false, now))
	}
}

func TestFailureOf(t *testing.T) {
	t.Parallel()
	pod := claimstest.NewPod("p")
	require.Equal(t, "failWhen selects the Pod", simulatedFailureText(pod))
	claimstest.Say(corev1.ConditionFalse, "")(pod)
	require.Equal(t, "failWhen selects the Pod", simulatedFailureText(pod))
	claimstest.Say(corev1.ConditionTrue, "all is well")(pod)
	require.Equal(t, "failWhen selects the Pod", simulatedFailureText(pod))
	claimstest.Say(corev1.ConditionFalse, "broken")(pod)
	require.Equal(t, "broken", simulatedFailureText(pod))
}
