package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kwok-dra/kwok-dra/test/cluster"
	"github.com/kwok-dra/kwok-dra/test/sidecar"
)

// generalStages are the general and chaos Stages of nodes and Pods, with those of
// kwok that they do not replace.
func generalStages(t *testing.T) []string {
	t.Helper()
	files := []string{
		kwokFile(t, "kustomize/stage/node/fast/node-initialize.yaml"),
		kwokFile(t, "kustomize/stage/node/heartbeat-with-lease/node-heartbeat-with-lease.yaml"),
	}
	for _, folder := range []string{"node/general", "node/chaos", "pod/general", "pod/chaos"} {
		files = append(files, stageFiles(t, folder)...)
	}
	return files
}

// TestFaithful tells the stories of a recorded kubelet and driver: what is written
// to Pods and claims must be the same, in the same order.
func TestFaithful(t *testing.T) {
	t.Parallel()
	h := newHarness(t, allFeatures(cluster.Options{
		Config: generalStages(t), Audit: true,
		ExtraArgs: map[string][]string{cluster.Kwok: {"node-ip=10.1.2.3"}}, // or nodes have no address
	}))
	for _, folder := range []string{"node", "pod"} {
		document, err := os.ReadFile(filepath.Join(sidecar.Root(), "stages", folder, "general", "kwok-dra-configuration.yaml"))
		require.NoError(t, err)
		h.configure("general-"+folder, string(document))
	}
	h.configure("retry", "apiVersion: dra.kwok.x-k8s.io/v1alpha1\nkind: KwokDRAConfiguration\nmetadata: {name: retry}\nspec: {retryInterval: 4s}\n")
	h.sidecar()
	for name, test := range map[string]func(*harness){
		"StartAndDeletion": testStartAndDeletion,
		"Sharing":          testSharing,
		"Completion":       testCompletion,
		"ForceDeletion":    testForceDeletion,
		"DriverGoesAway":   testDriverGoesAway,
		"KubeletRestart":   testKubeletRestartKeepsClaims,
		"PrepareFail":      testPrepareFail,
		"UnprepareFail":    testUnprepareFail,
		"DeletedWaiting":   testDeletedWaiting,
		"WithoutClaims":    testGeneralWithoutClaims,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(h.on(t))
		})
	}
}

// recordedDriver reports what the driver of the recording did.
const recordedDriver = `claimStatus: {mode: None, data: {model: {string: H100}}, cdiDeviceIDs: [k8s.gpu.example.com/gpu=common]}`

// recorded makes a scene whose node and Pods do in a moment what takes seconds by
// default.
func (h *harness) recorded(name string) {
	h.Helper()
	h.configure(name, withSpec(template(name, driver, name, gpus(4)), recordedDriver))
	h.namespace(name, driver)
	h.stagedNode(name, name, 4)
}

func quickPod(name, kind string, claims ...string) *corev1.Pod {
	pod := newPod(name, kind, claims...)
	pod.Annotations = map[string]string{}
	for _, stage := range []string{"pod-ready", "pod-complete", "pod-delete", "pod-create"} {
		pod.Annotations[stage+".stage.kwok.x-k8s.io/delay"] = "100ms"
		pod.Annotations[stage+".stage.kwok.x-k8s.io/jitter-delay"] = "100ms"
	}
	return pod
}

// The steps of the recording.
func waits(pod string) step {
	return step{"pod " + pod, []string{
		"PodReadyToStartContainers=False", "Initialized=True", "Ready=False ContainersNotReady", "ContainersReady=False ContainersNotReady",
		"c waiting ContainerCreating", "hostIP", "hostIPs", "observedGeneration", "startTime",
	}}
}

func prepared(pool string) step {
	return step{"claim", []string{"device of " + driver + " in pool " + pool + ` data {"model":{"string":"H100"}}`}}
}

func canStart(pod string) step {
	return step{"pod " + pod, []string{"PodReadyToStartContainers=True"}}
}

func runs(pod string) step {
	return step{"pod " + pod, []string{
		"phase=Running", "Ready=True", "ContainersReady=True", "podIP", "c running", "c claim:claim-0 k8s.gpu.example.com/gpu=common Unknown",
	}}
}

func succeeds(pod string) step {
	return step{"pod " + pod, []string{
		"phase=Succeeded", "PodReadyToStartContainers=False", "Initialized=True PodCompleted", "Ready=False PodCompleted", "ContainersReady=False PodCompleted", "c terminated 0",
	}}
}

func (h *harness) startedBy(pod string) []step {
	return []step{
		{"claim", []string{"created"}},
		{"pod " + pod, []string{"resourceClaimStatuses"}},
		{"claim", []string{"allocated", "reserved for 1"}},
		waits(pod), prepared(pod), canStart(pod), runs(pod),
	}
}

func testStartAndDeletion(h *harness) {
	h.recorded("start")
	h.createPod("start", quickPod("start", "start", fromTemplate))
	h.shownHealth("start", "start")
	h.requireStory("start", h.startedBy("start")...)
	h.deletePod("start", "start", 30)
	h.gone("start", "start")
	deleted := append(h.startedBy("start"), succeeds("start"),
		step{"claim", []string{"deallocated", "reserved for 0", "devices gone"}})
	h.requireEnd("start", deleted, step{"claim", []string{"deleted"}}, step{"pod start", []string{"deleted"}})
}

// requireEnd wants the steps, and then the claim's and the Pod's end, which the
// claim controller and KWOK bring about side by side.
func (h *harness) requireEnd(namespace string, steps []step, ends ...step) {
	h.Helper()
	story := h.story(namespace)
	require.Greater(h, len(story), len(ends))
	require.ElementsMatch(h, ends, story[len(story)-len(ends):], tell(story))
	h.requireStory(namespace, append(steps, story[len(story)-len(ends):]...)...)
}

// shownHealth waits for the last write to a Pod that starts.
func (h *harness) shownHealth(namespace, pod string) {
	h.Helper()
	h.podEventually(namespace, pod, func(pod *corev1.Pod) bool {
		return pod.Status.Phase == corev1.PodRunning && len(pod.Status.ContainerStatuses[0].AllocatedResourcesStatus) > 0
	})
}

func testSharing(h *harness) {
	h.recorded("sharing")
	h.createClaim("sharing", "shared", claimSpec("sharing"))
	h.createPod("sharing", quickPod("first", "sharing", "shared"))
	h.shownHealth("sharing", "first")
	h.createPod("sharing", quickPod("second", "sharing", "shared"))
	h.shownHealth("sharing", "second")
	first := []step{
		{"claim", []string{"created"}},
		{"claim", []string{"allocated", "reserved for 1"}},
		waits("first"), prepared("sharing"), canStart("first"), runs("first"),
	}
	second := []step{{"claim", []string{"reserved for 2"}}, waits("second"), canStart("second"), runs("second")}
	h.requireStory("sharing", append(first, second...)...)
	h.deletePod("sharing", "first", 30)
	h.gone("sharing", "first")
	require.Len(h, h.claim("sharing", "shared").Status.Devices, 1, "the other Pod still uses it")
}

func testCompletion(h *harness) {
	h.recorded("completion")
	pod := quickPod("", "completion", fromTemplate)
	pod.Spec.RestartPolicy = corev1.RestartPolicyNever
	_, err := h.client.BatchV1().Jobs("completion").Create(h.Context(), &batchv1.Job{
		ObjectMeta: metav1.ObjectMeta{Name: "job"},
		Spec:       batchv1.JobSpec{Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Annotations: pod.Annotations}, Spec: pod.Spec}},
	}, metav1.CreateOptions{})
	require.NoError(h, err)
	h.eventually(patience, func() string {
		claims, err := h.client.ResourceV1().ResourceClaims("completion").List(h.Context(), metav1.ListOptions{})
		require.NoError(h, err)
		job, err := h.client.BatchV1().Jobs("completion").Get(h.Context(), "job", metav1.GetOptions{})
		require.NoError(h, err)
		if job.Status.Succeeded == 1 && len(claims.Items) == 0 {
			return ""
		}
		return fmt.Sprintf("%+v", job.Status)
	})
	pods, err := h.client.CoreV1().Pods("completion").List(h.Context(), metav1.ListOptions{})
	require.NoError(h, err)
	name := pods.Items[0].Name
	started := h.startedBy(name)
	started[4] = prepared("completion")
	h.requireStory("completion", append(started,
		step{"pod " + name, []string{"Ready=False PodCompleted", "ContainersReady=False PodCompleted", "Initialized=True PodCompleted", "c terminated 0"}},
		step{"pod " + name, []string{"phase=Succeeded", "PodReadyToStartContainers=False"}},
		step{"claim", []string{"deallocated", "reserved for 0", "devices gone"}},
		step{"claim", []string{"deleted"}})...)
}

func testForceDeletion(h *harness) {
	h.recorded("force")
	h.createClaim("force", "mine", claimSpec("force"))
	h.createPod("force", quickPod("force", "force", "mine"))
	h.shownHealth("force", "force")
	h.deletePod("force", "force", 0)
	h.entries("force", "mine", 0)
	require.Nil(h, h.claim("force", "mine").Status.Allocation)
}

func testDriverGoesAway(h *harness) {
	h.recorded("away")
	// Long enough for a Pod to find the plugin crashed and its slices still there.
	h.patchMetadata("away", "annotations", "node-dra-plugin-crash.stage.kwok.x-k8s.io/delay", "15s")
	h.label("away", "node-dra-plugin-crash.stage.kwok.x-k8s.io", "true")
	h.nodeCondition("away", "dra.kwok.x-k8s.io/PluginRegistered", corev1.ConditionUnknown)
	h.createPod("away", quickPod("away", "away", fromTemplate))
	event := h.failedPrepare("away", "away")
	require.True(h, strings.HasPrefix(event.Message,
		"Failed to prepare dynamic resources: prepare dynamic resources: NodePrepareResources: rpc error: code = Unavailable"), event.Message)
	h.requireStory("away", h.startedBy("away")[:4]...)
	h.retired("away")
	failures := h.events("away", "FailedPrepareDynamicResources")
	h.label("away", "node-dra-plugin-crash.stage.kwok.x-k8s.io", nil)
	require.Equal(h, int64(1), generation(h.published("away", driver, 4)))
	h.shownHealth("away", "away")
	require.LessOrEqual(h, h.events("away", "FailedPrepareDynamicResources"), failures+2)
	h.requireStory("away", h.startedBy("away")...)
}

func testKubeletRestartKeepsClaims(h *harness) {
	h.recorded("kubelet")
	h.createPod("kubelet", quickPod("kubelet", "kubelet", fromTemplate))
	h.shownHealth("kubelet", "kubelet")
	before := h.slicesOf("kubelet")[0].UID
	h.label("kubelet", "node-kubelet-restart.stage.kwok.x-k8s.io", "true")
	h.eventually(patience, func() string {
		if pool := h.slicesOf("kubelet"); len(pool) == 1 && pool[0].UID != before {
			return ""
		}
		return "the slice is still the old one"
	})
	wait(h.Context(), time.Second)
	h.requireStory("kubelet", h.startedBy("kubelet")...)
}

func testPrepareFail(h *harness) {
	h.recorded("fail")
	pod := quickPod("fail", "fail", fromTemplate)
	pod.Labels = map[string]string{"pod-prepare-fail.stage.kwok.x-k8s.io": "true"}
	pod.Annotations["pod-prepare-fail.stage.kwok.x-k8s.io/message"] = "GPU is on fire"
	h.createPod("fail", pod)
	require.Contains(h, h.failedPrepare("fail", "fail").Message, "NodePrepareResources failed for ResourceClaim "+h.claimOf("fail", "fail").Name+": GPU is on fire")
	require.Empty(h, h.claimOf("fail", "fail").Status.Devices)
	h.patchPod("fail", "fail", `{"metadata": {"labels": {"pod-prepare-fail.stage.kwok.x-k8s.io": null}}}`)
	h.shownHealth("fail", "fail")
	h.requireStory("fail", h.startedBy("fail")...)
}

func testUnprepareFail(h *harness) {
	h.recorded("stuck")
	h.createPod("stuck", quickPod("stuck", "stuck", fromTemplate))
	h.shownHealth("stuck", "stuck")
	h.patchPod("stuck", "stuck", `{"metadata": {"labels": {"pod-unprepare-fail.stage.kwok.x-k8s.io": "true"}}}`)
	h.deletePod("stuck", "stuck", 30)
	pod := h.podEventually("stuck", "stuck", func(pod *corev1.Pod) bool {
		return podCondition(pod, "dra.kwok.x-k8s.io/UnprepareResources") == corev1.ConditionFalse
	})
	require.Equal(h, corev1.PodRunning, pod.Status.Phase)
	require.True(h, isReady(pod), "terminating, and still prepared")
	require.Len(h, h.claimOf("stuck", "stuck").Status.Devices, 1)
	h.patchPod("stuck", "stuck", `{"metadata": {"labels": {"pod-unprepare-fail.stage.kwok.x-k8s.io": null}}}`)
	h.gone("stuck", "stuck")
}

// testDeletedWaiting has a Pod deleted that never started.
func testDeletedWaiting(h *harness) {
	h.recorded("early")
	pod := quickPod("early", "early", fromTemplate)
	pod.Labels = map[string]string{"pod-prepare-fail.stage.kwok.x-k8s.io": "true"}
	h.createPod("early", pod)
	h.failedPrepare("early", "early")
	h.deletePod("early", "early", 30)
	h.gone("early", "early")
	for _, step := range h.story("early") {
		require.NotContains(h, strings.Join(step.changes, " "), "device of")
	}
}

func testGeneralWithoutClaims(h *harness) {
	h.recorded("plain")
	h.createPod("plain", quickPod("without-claims", "plain"))
	h.running("plain", "without-claims")
	require.Empty(h, h.writesTo("pods", "without-claims"))
	h.deletePod("plain", "without-claims", 1)
	h.gone("plain", "without-claims")
}
