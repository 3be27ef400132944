package plan

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/kwok-dra/kwok-dra/pkg/internal/claimstest"
)

// recordedWaiting is the status with which a real kubelet starts a Pod that has
// to wait for its claims, as recorded at the API server.
const recordedWaiting = `
phase: Pending
observedGeneration: 1
startTime: "2026-07-20T12:00:00Z"
hostIP: 10.0.0.1
hostIPs: [{ip: 10.0.0.1}]
conditions:
- {type: PodReadyToStartContainers, status: "False", observedGeneration: 1, lastProbeTime: null, lastTransitionTime: "2026-07-20T12:00:00Z"}
- {type: Initialized, status: "True", observedGeneration: 1, lastProbeTime: null, lastTransitionTime: "2026-07-20T12:00:00Z"}
- {type: Ready, status: "False", observedGeneration: 1, lastProbeTime: null, lastTransitionTime: "2026-07-20T12:00:00Z",
   reason: ContainersNotReady, message: "containers with unready status: [c]"}
- {type: ContainersReady, status: "False", observedGeneration: 1, lastProbeTime: null, lastTransitionTime: "2026-07-20T12:00:00Z",
   reason: ContainersNotReady, message: "containers with unready status: [c]"}
containerStatuses:
- {name: c, image: busybox, imageID: "", ready: false, started: false, restartCount: 0, lastState: {}, state: {waiting: {reason: ContainerCreating}}}
`

func TestWaitingStatus(t *testing.T) {
	t.Parallel()
	got, err := json.Marshal(waitingStatus(claimstest.NewPod("p", "c"), claimstest.NewNode("n"), claimstest.Noon))
	require.NoError(t, err)
	want, err := yaml.YAMLToJSON([]byte(recordedWaiting))
	require.NoError(t, err)
	require.JSONEq(t, string(want), string(got))
}

func condition(status corev1.PodStatus, kind corev1.PodConditionType) corev1.PodCondition {
	return podCondition(&corev1.Pod{Status: status}, kind)
}

// TestWaitingStatusOfInitContainers has the texts of the kubelet's
// GeneratePodInitializedCondition and GenerateContainersReadyCondition.
func TestWaitingStatusOfInitContainers(t *testing.T) {
	t.Parallel()
	pod := claimstest.NewPod("p", "c")
	pod.Spec.Containers = append(pod.Spec.Containers, corev1.Container{Name: "second"})
	pod.Spec.InitContainers = []corev1.Container{
		{Name: "init", Image: "i"},
		{Name: "sidecar", RestartPolicy: new(corev1.ContainerRestartPolicyAlways)},
		{Name: "once", RestartPolicy: new(corev1.ContainerRestartPolicyNever)},
	}
	status := waitingStatus(pod, claimstest.NewNode("n"), claimstest.Noon)
	initialized := condition(status, corev1.PodInitialized)
	require.Equal(t, corev1.ConditionFalse, initialized.Status)
	require.Equal(t, "ContainersNotInitialized", initialized.Reason)
	require.Equal(t, "containers with incomplete status: [init sidecar once]", initialized.Message)
	require.Equal(t, "containers with unready status: [sidecar c second]", condition(status, corev1.PodReady).Message)
	require.Equal(t, condition(status, corev1.PodReady).Message, condition(status, corev1.ContainersReady).Message)
	require.Len(t, status.InitContainerStatuses, 3)
	require.Len(t, status.ContainerStatuses, 2)
	for _, container := range append(status.InitContainerStatuses, status.ContainerStatuses...) {
		require.Equal(t, "PodInitializing", container.State.Waiting.Reason)
		require.False(t, *container.Started)
	}
}

// TestHostIPs: as the kubelet's GetNodeHostIPs, the first address and the first
// of the other family. The API server refuses more.
func TestHostIPs(t *testing.T) {
	t.Parallel()
	internal := func(ip string) corev1.NodeAddress {
		return corev1.NodeAddress{Type: corev1.NodeInternalIP, Address: ip}
	}
	external := func(ip string) corev1.NodeAddress {
		return corev1.NodeAddress{Type: corev1.NodeExternalIP, Address: ip}
	}
	for name, test := range map[string]struct {
		addresses []corev1.NodeAddress
		want      []string
	}{
		"none":           {nil, nil},
		"no IP":          {[]corev1.NodeAddress{{Type: corev1.NodeHostName, Address: "n"}}, nil},
		"one":            {[]corev1.NodeAddress{internal("10.0.0.1")}, []string{"10.0.0.1"}},
		"two families":   {[]corev1.NodeAddress{internal("10.0.0.1"), internal("fd00::1")}, []string{"10.0.0.1", "fd00::1"}},
		"IPv6 first":     {[]corev1.NodeAddress{internal("fd00::1"), internal("10.0.0.1")}, []string{"fd00::1", "10.0.0.1"}},
		"two of one":     {[]corev1.NodeAddress{internal("10.0.0.1"), internal("10.0.0.2")}, []string{"10.0.0.1"}},
		"four":           {[]corev1.NodeAddress{internal("10.0.0.1"), internal("10.0.0.2"), internal("fd00::1"), internal("fd00::2")}, []string{"10.0.0.1", "fd00::1"}},
		"internal first": {[]corev1.NodeAddress{external("192.0.2.1"), internal("10.0.0.1")}, []string{"10.0.0.1"}},
		"external only":  {[]corev1.NodeAddress{external("192.0.2.1")}, []string{"192.0.2.1"}},
		"not an IP":      {[]corev1.NodeAddress{internal("here"), internal("10.0.0.1")}, []string{"10.0.0.1"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			node := claimstest.NewNode("n")
			node.Status.Addresses = test.addresses
			status := waitingStatus(claimstest.NewPod("p", "c"), node, claimstest.Noon)
			var got []string
			for _, ip := range status.HostIPs {
				got = append(got, ip.IP)
			}
			require.Equal(t, test.want, got)
			if len(got) == 0 {
				require.Empty(t, status.HostIP)
			} else {
				require.Equal(t, got[0], status.HostIP)
			}
		})
	}
}

// TestTransitions: a condition that keeps its status keeps its time.
func TestTransitions(t *testing.T) {
	t.Parallel()
	earlier := metav1.NewTime(claimstest.Noon.Add(-time.Hour))
	pod := claimstest.NewPod("p", "c")
	pod.Generation = 7
	pod.Status.Conditions = []corev1.PodCondition{
		{Type: corev1.PodScheduled, Status: corev1.ConditionTrue, LastTransitionTime: earlier},
		{Type: corev1.PodReady, Status: corev1.ConditionFalse, LastTransitionTime: earlier},
		{Type: corev1.PodInitialized, Status: corev1.ConditionFalse, LastTransitionTime: earlier},
		{Type: corev1.PodReadyToStartContainers, Status: corev1.ConditionFalse, LastTransitionTime: earlier},
	}
	status := waitingStatus(pod, claimstest.NewNode("n"), claimstest.Noon)
	require.Equal(t, earlier, condition(status, corev1.PodReady).LastTransitionTime)
	require.Equal(t, claimstest.Noon, condition(status, corev1.PodInitialized).LastTransitionTime.Time)
	require.Equal(t, claimstest.Noon, condition(status, corev1.ContainersReady).LastTransitionTime.Time)
	require.Len(t, status.Conditions, 4, "PodScheduled is the scheduler's")
	require.EqualValues(t, 7, condition(status, corev1.PodReady).ObservedGeneration)

	started := startStatus(pod, corev1.ConditionTrue, claimstest.Noon)
	require.Equal(t, corev1.PodStatus{Conditions: []corev1.PodCondition{{
		Type: corev1.PodReadyToStartContainers, Status: corev1.ConditionTrue, LastTransitionTime: metav1.NewTime(claimstest.Noon), ObservedGeneration: 7,
	}}}, started)
	require.Equal(t, earlier, startStatus(pod, corev1.ConditionFalse, claimstest.Noon).Conditions[0].LastTransitionTime)
}

func encoded(t *testing.T, patch *Patch) string {
	t.Helper()
	encoded, err := json.Marshal(patch.Content)
	require.NoError(t, err)
	return string(encoded)
}

// TestStatusPatch says nothing but what is to change, of which Pod, and of which
// version where it would set the Pod back.
func TestStatusPatch(t *testing.T) {
	t.Parallel()
	pod := claimstest.NewPod("p", "c")
	pod.ResourceVersion = "7"
	patch := encoded(t, newStatusPatch(pod, PatchReady, startStatus(pod, corev1.ConditionTrue, claimstest.Noon)))
	require.JSONEq(t, `{"metadata": {"uid": "uid-of-p"}, "status": {"conditions": [{"type": "PodReadyToStartContainers", "status": "True",
		"observedGeneration": 1, "lastProbeTime": null, "lastTransitionTime": "2026-07-20T12:00:00Z"}]}}`, patch)
	patch = encoded(t, newStatusPatch(pod, PatchWaiting, waitingStatus(pod, claimstest.NewNode("n"), claimstest.Noon)))
	require.Contains(t, patch, `"metadata":{"uid":"uid-of-p","resourceVersion":"7"}`)
}
