package plan

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/kwok-dra/kwok-dra/internal/observe/facts"
	"github.com/kwok-dra/kwok-dra/internal/testing/claimstest"
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
- {type: PodScheduled, status: "True", observedGeneration: 1, lastProbeTime: null, lastTransitionTime: "2026-07-20T12:00:00Z"}
containerStatuses:
- {name: c, image: busybox, imageID: "", ready: false, started: false, restartCount: 0, lastState: {}, state: {waiting: {reason: ContainerCreating}},
   volumeMounts: [{name: kube-api-access-x, mountPath: /var/run/secrets/kubernetes.io/serviceaccount, readOnly: true, recursiveReadOnly: Disabled}]}
resources: {}
`

func TestWaitingStatus(t *testing.T) {
	t.Parallel()
	pod := claimstest.NewPod("p", "c")
	pod.Spec.Containers[0].VolumeMounts = []corev1.VolumeMount{
		{Name: "kube-api-access-x", MountPath: "/var/run/secrets/kubernetes.io/serviceaccount", ReadOnly: true},
	}
	got, err := json.Marshal(writtenStatus(pod, waitingStatus(pod, claimstest.NewNode("n"), claimstest.Noon)))
	require.NoError(t, err)
	want, err := yaml.YAMLToJSON([]byte(recordedWaiting))
	require.NoError(t, err)
	require.JSONEq(t, string(want), string(got))
}

func condition(status corev1.PodStatus, kind corev1.PodConditionType) corev1.PodCondition {
	return facts.PodCondition(&corev1.Pod{Status: status}, kind)
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
	status := writtenStatus(pod, waitingStatus(pod, claimstest.NewNode("n"), claimstest.Noon))
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

// TestVolumeMounts: as the kubelet's convertToAPIContainerStatuses, on a node whose runtime does
// not mount recursively read-only.
func TestVolumeMounts(t *testing.T) {
	t.Parallel()
	pod := claimstest.NewPod("p", "c")
	mount := corev1.VolumeMount{Name: "v", MountPath: "/v", SubPath: "s", MountPropagation: new(corev1.MountPropagationNone)}
	readOnly := func(mode *corev1.RecursiveReadOnlyMode) corev1.VolumeMount {
		mount := mount
		mount.ReadOnly, mount.RecursiveReadOnly = true, mode
		return mount
	}
	pod.Spec.Containers[0].VolumeMounts = []corev1.VolumeMount{
		mount, readOnly(nil), readOnly(new(corev1.RecursiveReadOnlyDisabled)),
		readOnly(new(corev1.RecursiveReadOnlyIfPossible)), readOnly(new(corev1.RecursiveReadOnlyEnabled)),
	}
	pod.Spec.InitContainers = []corev1.Container{{Name: "i", VolumeMounts: []corev1.VolumeMount{mount}}}
	status := writtenStatus(pod, waitingStatus(pod, claimstest.NewNode("n"), claimstest.Noon))
	shown := corev1.VolumeMountStatus{Name: "v", MountPath: "/v"}
	require.Equal(t, []corev1.VolumeMountStatus{shown}, status.InitContainerStatuses[0].VolumeMounts)
	want := []corev1.VolumeMountStatus{shown}
	for _, mode := range []corev1.RecursiveReadOnlyMode{"Disabled", "Disabled", "Disabled", "Enabled"} {
		want = append(want, corev1.VolumeMountStatus{Name: "v", MountPath: "/v", ReadOnly: true, RecursiveReadOnly: &mode})
	}
	require.Equal(t, want, status.ContainerStatuses[0].VolumeMounts)
}

// TestResources: as the kubelet's getEffectiveAllocatedResources.
func TestResources(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct{ spec, resources, allocated string }{
		"claims only": {`{containers: [{resources: {claims: [{name: c}]}}]}`, `{}`, `{}`},
		"sum, and the largest init container": {
			`{initContainers: [{resources: {requests: {memory: 2Gi, cpu: 1m}}}],
				containers: [{resources: {requests: {cpu: 100m, memory: 1Gi}}}, {resources: {requests: {cpu: 900m}, limits: {cpu: 2}}}], overhead: {cpu: 1}}`,
			`{requests: {cpu: "2", memory: 2Gi}, limits: {cpu: "3"}}`, `{cpu: "2", memory: 2Gi}`,
		},
		"extended resource": {
			`{containers: [{resources: {requests: {example.com/gpu: 2}, limits: {example.com/gpu: 2}}}]}`,
			`{requests: {example.com/gpu: "2"}, limits: {example.com/gpu: "2"}}`, `{example.com/gpu: "2"}`,
		},
		"of the Pod": {
			`{resources: {requests: {cpu: 3}, limits: {cpu: 4}, claims: [{name: p}]}, containers: [{resources: {requests: {cpu: 1, memory: 1Gi}}}]}`,
			`{requests: {cpu: "3", memory: 1Gi}, limits: {cpu: "4"}, claims: [{name: p}]}`, `{cpu: "3", memory: 1Gi}`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pod := claimstest.NewPod("p", "c")
			require.NoError(t, yaml.Unmarshal([]byte(test.spec), &pod.Spec))
			spec := pod.Spec.DeepCopy()
			status := writtenStatus(pod, waitingStatus(pod, claimstest.NewNode("n"), claimstest.Noon))
			require.YAMLEq(t, test.resources, yamlOf(t, status.Resources))
			require.YAMLEq(t, test.allocated, yamlOf(t, status.AllocatedResources))
			require.Equal(t, *spec, pod.Spec)
		})
	}
}

func yamlOf(t *testing.T, value any) string {
	t.Helper()
	encoded, err := yaml.Marshal(value)
	require.NoError(t, err)
	return string(encoded)
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
			status := writtenStatus(claimstest.NewPod("p", "c"), waitingStatus(claimstest.NewPod("p", "c"), node, claimstest.Noon))
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
	status := writtenStatus(pod, waitingStatus(pod, claimstest.NewNode("n"), claimstest.Noon))
	require.Equal(t, earlier, condition(status, corev1.PodReady).LastTransitionTime)
	require.Equal(t, claimstest.Noon, condition(status, corev1.PodInitialized).LastTransitionTime.Time)
	require.Equal(t, claimstest.Noon, condition(status, corev1.ContainersReady).LastTransitionTime.Time)
	require.Equal(t, earlier, condition(status, corev1.PodScheduled).LastTransitionTime)
	require.EqualValues(t, 7, condition(status, corev1.PodReady).ObservedGeneration)

	started := writtenStatus(pod, startStatus(corev1.ConditionTrue))
	require.Equal(t, corev1.PodStatus{Conditions: []corev1.PodCondition{{
		Type: corev1.PodReadyToStartContainers, Status: corev1.ConditionTrue, LastTransitionTime: metav1.NewTime(claimstest.Noon), ObservedGeneration: 7,
	}}}, started)
	require.Equal(t, earlier, writtenStatus(pod, startStatus(corev1.ConditionFalse)).Conditions[0].LastTransitionTime)
}

// writtenStatus is what a patch at noon writes.
func writtenStatus(pod *corev1.Pod, status corev1.PodStatus) corev1.PodStatus {
	return newStatusPatch(pod, PatchWaiting, status, claimstest.Noon).Content.(statusPatch).Status
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
	patch := encoded(t, newStatusPatch(pod, PatchReady, startStatus(corev1.ConditionTrue), claimstest.Noon))
	require.JSONEq(t, `{"metadata": {"uid": "uid-of-p"}, "status": {"conditions": [{"type": "PodReadyToStartContainers", "status": "True",
		"observedGeneration": 1, "lastProbeTime": null, "lastTransitionTime": "2026-07-20T12:00:00Z"}]}}`, patch)
	patch = encoded(t, newStatusPatch(pod, PatchWaiting, waitingStatus(pod, claimstest.NewNode("n"), claimstest.Noon), claimstest.Noon))
	require.Contains(t, patch, `"metadata":{"uid":"uid-of-p","resourceVersion":"7"}`)
}
