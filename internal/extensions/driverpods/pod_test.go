package driverpods

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

var noon = time.Date(2026, 7, 20, 12, 0, 0, 0, time.UTC)

func at(seconds int) metav1.Time {
	return metav1.NewTime(noon.Add(time.Duration(seconds) * time.Second))
}

// plugin is a Pod that runs a plugin, Ready, on the node n.
func plugin(name, driver string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, Labels: map[string]string{"app": "x"}, CreationTimestamp: at(0)},
		Spec: corev1.PodSpec{NodeName: "n", Containers: []corev1.Container{
			{Name: "plugin", Image: "r.example.com:5000/x:v1", Args: []string{"--a"}, Env: []corev1.EnvVar{
				{Name: "DRIVER", Value: driver}, {Name: "NODE", ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{FieldPath: "spec.nodeName"}}},
			}},
			{Name: "other", Image: "y"},
		}},
		Status: corev1.PodStatus{
			Phase:             corev1.PodRunning,
			Conditions:        []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue, LastTransitionTime: at(1)}},
			ContainerStatuses: []corev1.ContainerStatus{{Name: "plugin", State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}}},
		},
	}
}

// TestPodState: what the kubelet knows of the plugin.
func TestPodState(t *testing.T) {
	t.Parallel()
	terminated := func(seconds int) corev1.ContainerState {
		return corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{FinishedAt: at(seconds)}}
	}
	waiting := corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "CrashLoopBackOff"}}
	deleted := func(pod *corev1.Pod, seconds int) {
		pod.DeletionTimestamp, pod.DeletionGracePeriodSeconds = new(at(seconds+30)), new(int64(30))
	}
	for name, test := range map[string]struct {
		change func(pod *corev1.Pod, plugin *corev1.ContainerStatus)
		want   string
	}{
		"Ready":     {func(*corev1.Pod, *corev1.ContainerStatus) {}, "ready connected registered"},
		"not Ready": {func(pod *corev1.Pod, _ *corev1.ContainerStatus) { pod.Status.Conditions[0].Status = "False" }, "connected registered"},
		"no longer Ready": {func(pod *corev1.Pod, c *corev1.ContainerStatus) {
			c.State.Running.StartedAt, pod.Status.Conditions[0].Status = at(0), "False"
		}, "ready connected registered"},
		"crashed": {func(_ *corev1.Pod, c *corev1.ContainerStatus) { c.State = terminated(5) }, "registered lost 5"},
		"will start again": {func(_ *corev1.Pod, c *corev1.ContainerStatus) {
			c.State, c.LastTerminationState = waiting, terminated(6)
		}, "registered lost 6"},
		"runs again":          {func(_ *corev1.Pod, c *corev1.ContainerStatus) { c.LastTerminationState = terminated(6) }, "ready connected registered"},
		"being deleted":       {func(pod *corev1.Pod, _ *corev1.ContainerStatus) { deleted(pod, 7) }, "lost 7"},
		"ended, then deleted": {func(pod *corev1.Pod, c *corev1.ContainerStatus) { c.State = terminated(5); deleted(pod, 7) }, "lost 5"},
		"deleted, then ended": {func(pod *corev1.Pod, c *corev1.ContainerStatus) { c.State = terminated(9); deleted(pod, 7) }, "lost 7"},
		"failed": {func(pod *corev1.Pod, c *corev1.ContainerStatus) {
			pod.Status.Phase, c.State = corev1.PodFailed, terminated(8)
		}, "lost 8"},
		"never started": {func(pod *corev1.Pod, c *corev1.ContainerStatus) {
			pod.Status.Phase, c.State, pod.Status.Conditions[0].Status = corev1.PodPending, waiting, "False"
		}, ""},
		"never started, deleted": {func(pod *corev1.Pod, c *corev1.ContainerStatus) {
			pod.Status.Phase, c.State = corev1.PodPending, waiting
			deleted(pod, 7)
		}, ""},
		"bound":                       {func(pod *corev1.Pod, _ *corev1.ContainerStatus) { pod.Status = corev1.PodStatus{} }, ""},
		"a status without containers": {func(pod *corev1.Pod, _ *corev1.ContainerStatus) { pod.Status.ContainerStatuses = nil }, "ready connected registered"},
		"failed without containers": {func(pod *corev1.Pod, _ *corev1.ContainerStatus) {
			pod.Status.Phase, pod.Status.ContainerStatuses, pod.Status.Conditions[0].Status = corev1.PodFailed, nil, "False"
		}, "lost 1"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pod := plugin("a", "d")
			test.change(pod, &pod.Status.ContainerStatuses[0])
			require.Equal(t, test.want, stateText(NewPod(pod, "")))
		})
	}
}

func stateText(p *Pod) string {
	text := ""
	for _, is := range []struct {
		it   bool
		name string
	}{{p.Ready, "ready"}, {p.Connected, "connected"}, {p.Registered, "registered"}} {
		if is.it {
			text += " " + is.name
		}
	}
	if !p.Lost.IsZero() {
		text += fmt.Sprintf(" lost %v", p.Lost.Sub(noon).Seconds())
	}
	if text == "" {
		return ""
	}
	return text[1:]
}

func TestPodIsSame(t *testing.T) {
	t.Parallel()
	first, other := plugin("a", "d"), plugin("a", "d")
	other.ResourceVersion = "2"
	require.True(t, NewPod(first, "").Same(NewPod(other, "")))
	other.Status.Conditions[0].Status = corev1.ConditionFalse
	require.False(t, NewPod(first, "").Same(NewPod(other, "")))
	require.False(t, NewPod(first, "").Same(NewPod(plugin("a", "e"), "")))
}

func TestTagOf(t *testing.T) {
	t.Parallel()
	for image, want := range map[string]string{
		"a:v1": "v1", "r:5000/a:v1": "v1", "r:5000/a": "latest", "a": "latest", "a@sha256:0": "", "a:v1@sha256:0": "v1", "": "",
	} {
		require.Equal(t, want, tagOf(image), image)
	}
}
