package stages

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kwok-dra/kwok-dra/test/cluster"
	"github.com/kwok-dra/kwok-dra/test/e2e/harness"
)

// retry is how soon a Pod that cannot be prepared is tried again.
const retry = 4 * time.Second

// TestFaithful tells the stories of a recorded kubelet and driver: what is written
// to Pods and claims must be the same, in the same order.
func TestFaithful(t *testing.T) {
	t.Parallel()
	h := harness.New(t, harness.AllFeatures(cluster.Options{
		Config: harness.GeneralStages(t), Audit: true,
		ExtraArgs: map[string][]string{cluster.Kwok: {"node-ip=10.1.2.3"}}, // or nodes have no address
	}))
	h.ConfigureGeneral(retry)
	h.Sidecar()
	tests := map[string]func(*harness.H){
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
	}
	for name, change := range atRest {
		tests["AtRest-"+name] = testAtRest(name, change)
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(h.On(t))
		})
	}
}

// recordedDriver reports what the driver of the recording did.
const recordedDriver = `claimStatus: {mode: None, data: {model: {string: H100}}, cdiDeviceIDs: [k8s.gpu.example.com/gpu=common]}`

// recorded makes a scene whose node and Pods do in a moment what takes seconds by
// default.
func recorded(h *harness.H, name string) {
	h.Helper()
	h.Configure(name, harness.WithSpec(harness.Template(name, harness.Driver, name, harness.GPUs(4)), recordedDriver))
	h.Namespace(name, harness.Driver)
	h.StagedNode(name, name, 4)
}

func quickPod(name, kind string, claims ...string) *corev1.Pod {
	pod := harness.NewPod(name, kind, claims...)
	mount(pod)
	// The recorded containers handle SIGTERM.
	pod.Annotations = map[string]string{"pod-terminate.stage.kwok.x-k8s.io/exit-code": "0"}
	for _, stage := range []string{"pod-ready", "pod-complete", "pod-delete", "pod-create"} {
		pod.Annotations[stage+".stage.kwok.x-k8s.io/delay"] = "100ms"
		pod.Annotations[stage+".stage.kwok.x-k8s.io/jitter-delay"] = "100ms"
	}
	return pod
}

// The steps of the recording.
func waits(pod string) step {
	return step{"pod " + pod, []string{
		"PodScheduled=True", "PodReadyToStartContainers=False", "Initialized=True", "Ready=False ContainersNotReady",
		"ContainersReady=False ContainersNotReady", "c waiting ContainerCreating", "c mounts token at /var/run/secrets/kubernetes.io/serviceaccount read-only, recursively Disabled",
		"hostIP", "hostIPs", "observedGeneration", "startTime",
	}}
}

func prepared(pool string) step {
	return step{"claim", []string{"device of " + harness.Driver + " in pool " + pool + ` data {"model":{"string":"H100"}}`}}
}

// canStart has the health of devices too. The recorded kubelet wrote the condition alone here, and the health with the next
// status that it computed, that of running containers.
func canStart(pod string) step {
	return step{"pod " + pod, []string{"PodReadyToStartContainers=True", "c claim:claim-0 k8s.gpu.example.com/gpu=common Unknown"}}
}

func runs(pod string) step {
	return step{"pod " + pod, []string{
		"phase=Running", "Ready=True", "ContainersReady=True", "podIP", "c running", `c resources {"claims":[{"name":"claim-0"}]}`,
	}}
}

func succeeds(pod string) step {
	return step{"pod " + pod, []string{
		"phase=Succeeded", "PodReadyToStartContainers=False", "Initialized=True PodCompleted", "Ready=False PodCompleted", "ContainersReady=False PodCompleted", "c terminated 0",
	}}
}

func startedBy(pod string) []step {
	return []step{
		{"claim", []string{"created"}},
		{"pod " + pod, []string{"resourceClaimStatuses"}},
		{"claim", []string{"allocated", "reserved for 1"}},
		waits(pod), prepared(pod), canStart(pod), runs(pod),
	}
}

func testStartAndDeletion(h *harness.H) {
	recorded(h, "start")
	h.CreatePod("start", quickPod("start", "start", harness.FromTemplate))
	shownHealth(h, "start", "start")
	requireStory(h, "start", startedBy("start")...)
	require.Equal(h, []string{"kwok-dra", "kwok", "kwok-dra", "kwok"}, statusWriters(h, "start"), "waits, is to be prepared, is prepared, runs")
	h.DeletePod("start", "start", 30)
	h.Gone("start", "start")
	deleted := append(startedBy("start"), succeeds("start"),
		step{"claim", []string{"deallocated", "reserved for 0", "devices gone"}})
	requireEnd(h, "start", deleted, step{"claim", []string{"deleted"}}, step{"pod start", []string{"deleted"}})
}

// statusWriters names for each write of the status of a namespace's Pods who made it, if that is kwok or kwok-dra.
func statusWriters(h *harness.H, namespace string) []string {
	h.Helper()
	var writers []string
	for _, event := range h.Audited(func(event *cluster.AuditEvent) bool {
		return event.ObjectRef.Namespace == namespace && event.ObjectRef.Resource == "pods" && event.ObjectRef.Subresource == "status" && event.Mutating()
	}) {
		program, _, _ := strings.Cut(event.UserAgent, "/")
		if program = strings.TrimSuffix(program, "-controller"); program == "kwok" || program == "kwok-dra" {
			writers = append(writers, program)
		}
	}
	return writers
}

// requireEnd wants the steps, and beside the last of them the claim's and the Pod's end, which the
// claim controller and KWOK bring about side by side.
func requireEnd(h *harness.H, namespace string, steps []step, ends ...step) {
	h.Helper()
	h.Eventually(harness.Patience, func() string {
		told := story(h, namespace)
		rest := slices.Clone(told)
		for _, end := range ends {
			last := lastOf(rest, end.object)
			if last < 0 || !slices.Equal(rest[last].changes, end.changes) {
				return end.object + " has not ended:\n" + tell(told)
			}
			rest = slices.Delete(rest, last, last+1)
		}
		return differs(rest, steps)
	})
}

// lastOf is the index of the last step of an object, or -1.
func lastOf(steps []step, object string) int {
	for i, s := range slices.Backward(steps) {
		if s.object == object {
			return i
		}
	}
	return -1
}

// shownHealth waits for the last write to a Pod that starts.
func shownHealth(h *harness.H, namespace, pod string) {
	h.Helper()
	h.PodEventually(namespace, pod, func(pod *corev1.Pod) bool {
		return pod.Status.Phase == corev1.PodRunning && len(pod.Status.ContainerStatuses[0].AllocatedResourcesStatus) > 0
	})
}

func testSharing(h *harness.H) {
	recorded(h, "sharing")
	h.CreateClaim("sharing", "shared", harness.ClaimSpec("sharing"))
	h.CreatePod("sharing", quickPod("first", "sharing", "shared"))
	shownHealth(h, "sharing", "first")
	h.CreatePod("sharing", quickPod("second", "sharing", "shared"))
	shownHealth(h, "sharing", "second")
	first := []step{
		{"claim", []string{"created"}},
		{"claim", []string{"allocated", "reserved for 1"}},
		waits("first"), prepared("sharing"), canStart("first"), runs("first"),
	}
	second := []step{{"claim", []string{"reserved for 2"}}, waits("second"), canStart("second"), runs("second")}
	requireStory(h, "sharing", append(first, second...)...)
	h.DeletePod("sharing", "first", 30)
	h.Gone("sharing", "first")
	require.Len(h, h.Claim("sharing", "shared").Status.Devices, 1, "the other Pod still uses it")
}

func testCompletion(h *harness.H) {
	recorded(h, "completion")
	pod := quickPod("", "completion", harness.FromTemplate)
	pod.Spec.RestartPolicy = corev1.RestartPolicyNever
	pod.Annotations["pod-complete.stage.kwok.x-k8s.io/delay"] = "1h"
	pod.Annotations["pod-complete.stage.kwok.x-k8s.io/jitter-delay"] = "1h"
	_, err := h.Client.BatchV1().Jobs("completion").Create(h.Context(), &batchv1.Job{
		ObjectMeta: metav1.ObjectMeta{Name: "job"},
		Spec:       batchv1.JobSpec{Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Annotations: pod.Annotations}, Spec: pod.Spec}},
	}, metav1.CreateOptions{})
	require.NoError(h, err)
	name := podOfJob(h, "completion")
	shownHealth(h, "completion", name)
	h.PatchPod("completion", name, `{"metadata": {"annotations": {"pod-complete.stage.kwok.x-k8s.io/delay": "100ms", "pod-complete.stage.kwok.x-k8s.io/jitter-delay": "100ms"}}}`)
	h.Eventually(harness.Patience, func() string {
		claims, err := h.Client.ResourceV1().ResourceClaims("completion").List(h.Context(), metav1.ListOptions{})
		require.NoError(h, err)
		job, err := h.Client.BatchV1().Jobs("completion").Get(h.Context(), "job", metav1.GetOptions{})
		require.NoError(h, err)
		if job.Status.Succeeded == 1 && len(claims.Items) == 0 {
			return ""
		}
		return fmt.Sprintf("%+v", job.Status)
	})
	started := startedBy(name)
	started[4] = prepared("completion")
	requireStory(h, "completion", append(started,
		step{"pod " + name, []string{"Ready=False PodCompleted", "ContainersReady=False PodCompleted", "Initialized=True PodCompleted", "c terminated 0"}},
		step{"pod " + name, []string{"phase=Succeeded", "PodReadyToStartContainers=False"}},
		step{"claim", []string{"deallocated", "reserved for 0", "devices gone"}},
		step{"claim", []string{"deleted"}})...)
}

// podOfJob waits for the only Pod of a namespace.
func podOfJob(h *harness.H, namespace string) (name string) {
	h.Helper()
	h.Eventually(harness.Patience, func() string {
		pods, err := h.Client.CoreV1().Pods(namespace).List(h.Context(), metav1.ListOptions{})
		require.NoError(h, err)
		if len(pods.Items) != 1 {
			return fmt.Sprintf("there are %d Pods", len(pods.Items))
		}
		name = pods.Items[0].Name
		return ""
	})
	return name
}

func testForceDeletion(h *harness.H) {
	recorded(h, "force")
	h.CreateClaim("force", "mine", harness.ClaimSpec("force"))
	h.CreatePod("force", quickPod("force", "force", "mine"))
	shownHealth(h, "force", "force")
	h.DeletePod("force", "force", 0)
	h.Entries("force", "mine", 0)
	require.Nil(h, h.Claim("force", "mine").Status.Allocation)
}

func testDriverGoesAway(h *harness.H) {
	recorded(h, "away")
	// A Pod is to find the plugin crashed and its slices still there.
	h.PatchMetadata("away", "annotations", "node-dra-plugin-crash.stage.kwok.x-k8s.io/delay", "1h")
	h.Label("away", "node-dra-plugin-crash.stage.kwok.x-k8s.io", "true")
	h.NodeCondition("away", "dra.kwok.x-k8s.io/PluginRegistered", corev1.ConditionUnknown)
	h.CreatePod("away", quickPod("away", "away", harness.FromTemplate))
	event := h.FailedPrepare("away", "away")
	require.True(h, strings.HasPrefix(event.Message,
		"Failed to prepare dynamic resources: prepare dynamic resources: NodePrepareResources: rpc error: code = Unavailable"), event.Message)
	requireStory(h, "away", startedBy("away")[:4]...)
	h.PluginRegistered("away", "False")
	h.Retired("away")
	failures, since := h.Events("away", "FailedPrepareDynamicResources"), time.Now()
	h.Label("away", "node-dra-plugin-crash.stage.kwok.x-k8s.io", nil)
	require.Equal(h, int64(1), harness.Generation(h.Published("away", harness.Driver, 4)))
	shownHealth(h, "away", "away")
	require.LessOrEqual(h, h.Events("away", "FailedPrepareDynamicResources"), failures+2+int(time.Since(since)/retry))
	requireStory(h, "away", startedBy("away")...)
}

func testKubeletRestartKeepsClaims(h *harness.H) {
	recorded(h, "kubelet")
	h.CreatePod("kubelet", quickPod("kubelet", "kubelet", harness.FromTemplate))
	shownHealth(h, "kubelet", "kubelet")
	before := h.SlicesOf("kubelet")[0].UID
	h.Label("kubelet", "node-kubelet-restart.stage.kwok.x-k8s.io", "true")
	h.Eventually(harness.Patience, func() string {
		if pool := h.SlicesOf("kubelet"); len(pool) == 1 && pool[0].UID != before {
			return ""
		}
		return "the slice is still the old one"
	})
	harness.Wait(h.Context(), time.Second)
	requireStory(h, "kubelet", startedBy("kubelet")...)
}

func testPrepareFail(h *harness.H) {
	recorded(h, "fail")
	pod := quickPod("fail", "fail", harness.FromTemplate)
	pod.Labels = map[string]string{"pod-prepare-fail.stage.kwok.x-k8s.io": "true"}
	pod.Annotations["pod-prepare-fail.stage.kwok.x-k8s.io/message"] = "GPU is on fire"
	h.CreatePod("fail", pod)
	require.Contains(h, h.FailedPrepare("fail", "fail").Message, "NodePrepareResources failed for ResourceClaim "+h.ClaimOf("fail", "fail").Name+": GPU is on fire")
	require.Empty(h, h.ClaimOf("fail", "fail").Status.Devices)
	h.PatchPod("fail", "fail", `{"metadata": {"labels": {"pod-prepare-fail.stage.kwok.x-k8s.io": null}}}`)
	shownHealth(h, "fail", "fail")
	requireStory(h, "fail", startedBy("fail")...)
}

func testUnprepareFail(h *harness.H) {
	recorded(h, "stuck")
	h.CreatePod("stuck", quickPod("stuck", "stuck", harness.FromTemplate))
	shownHealth(h, "stuck", "stuck")
	h.PatchPod("stuck", "stuck", `{"metadata": {"labels": {"pod-unprepare-fail.stage.kwok.x-k8s.io": "true"}}}`)
	h.DeletePod("stuck", "stuck", 30)
	pod := h.PodEventually("stuck", "stuck", func(pod *corev1.Pod) bool {
		return harness.PodCondition(pod, "dra.kwok.x-k8s.io/UnprepareResources") == corev1.ConditionFalse
	})
	require.Equal(h, corev1.PodRunning, pod.Status.Phase)
	require.True(h, harness.IsReady(pod), "terminating, and still prepared")
	require.Len(h, h.ClaimOf("stuck", "stuck").Status.Devices, 1)
	h.PatchPod("stuck", "stuck", `{"metadata": {"labels": {"pod-unprepare-fail.stage.kwok.x-k8s.io": null}}}`)
	h.Gone("stuck", "stuck")
}

// testDeletedWaiting has a Pod deleted that never started.
func testDeletedWaiting(h *harness.H) {
	recorded(h, "early")
	pod := quickPod("early", "early", harness.FromTemplate)
	pod.Labels = map[string]string{"pod-prepare-fail.stage.kwok.x-k8s.io": "true"}
	h.CreatePod("early", pod)
	h.FailedPrepare("early", "early")
	h.DeletePod("early", "early", 30)
	h.Gone("early", "early")
	for _, step := range story(h, "early") {
		require.NotContains(h, strings.Join(step.changes, " "), "device of")
	}
}

func testGeneralWithoutClaims(h *harness.H) {
	recorded(h, "plain")
	h.CreatePod("plain", quickPod("without-claims", "plain"))
	h.Running("plain", "without-claims")
	require.Empty(h, h.WritesTo("pods", "without-claims"))
	h.DeletePod("plain", "without-claims", 1)
	h.Gone("plain", "without-claims")
}
