// Package prepare proves that claims are prepared before their Pods run, and
// withdrawn afterwards, whatever fails in between.
package prepare

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kwok-dra/kwok-dra/test/cluster"
	"github.com/kwok-dra/kwok-dra/test/e2e/harness"
)

// TestPrepare has the stories of claims that share one cluster and sidecar, with
// the fast Stages.
func TestPrepare(t *testing.T) {
	t.Parallel()
	h := harness.New(t, harness.AllFeatures(cluster.Options{Config: harness.FastStages(t), Audit: true}))
	h.Configure("configuration", harness.Knobs)
	process := h.Sidecar()
	for name, test := range map[string]func(*harness.H){
		"FromTemplate":            testFromTemplate,
		"TwentyPodsShareAClaim":   testTwentyPodsShareAClaim,
		"SecondClaimNotAllocated": testSecondClaimNotAllocated,
		"ExtendedResource":        testExtendedResource,
		"TwoDriversOneForeign":    testTwoDriversOneForeign,
		"TwoDriversOneFails":      testTwoDriversOneFails,
		"RealNode":                testRealNode,
		"DriverNotRegistered":     testDriverNotRegistered,
		"SimulatedFailure":        testSimulatedFailure,
		"DeletedWhilePreparing":   testDeletedWhilePreparing,
		"ForceDeleted":            testForceDeleted,
		"Completed":               testCompleted,
		"NodeDeleted":             testNodeDeleted,
		"PodWithoutClaims":        testPodWithoutClaims,
		"Reports":                 testReports,
		"NamesItsPods":            testNamesItsPods,
		"ModeNone":                testModeNone,
		"Parameters":              testParameters,
		"ClaimOfAnotherPod":       testClaimOfAnotherPod,
		"Timeline":                func(h *harness.H) { testTimeline(h, process) },
		"Waiting":                 func(h *harness.H) { testWaiting(h, process) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(h.On(t))
		})
	}
}

func testFromTemplate(h *harness.H) {
	h.Scene("simple", `claimStatus: {data: {uuid: "{{ .Device.attributes.uuid.string }}", model: {string: H100}}}`)
	h.CreatePod("simple", harness.NewPod("pod", "simple", harness.FromTemplate))
	pod := h.Running("simple", "pod")
	require.True(h, harness.IsReady(pod))

	claim := h.ClaimOf("simple", "pod")
	require.Len(h, claim.Status.Devices, 1)
	entry, result := claim.Status.Devices[0], claim.Status.Allocation.Devices.Results[0]
	require.Equal(h, []string{result.Driver, result.Pool, result.Device}, []string{entry.Driver, entry.Pool, entry.Device})
	require.Len(h, entry.Conditions, 1)
	require.Equal(h, "Ready", entry.Conditions[0].Type)
	require.Equal(h, metav1.ConditionTrue, entry.Conditions[0].Status)
	require.Equal(h, "Prepared", entry.Conditions[0].Reason)
	var uuid string
	for _, device := range h.SlicesOf("simple")[0].Spec.Devices {
		if device.Name == entry.Device {
			uuid = *device.Attributes["uuid"].StringValue
		}
	}
	require.JSONEq(h, fmt.Sprintf(`{"uuid": %q, "model": {"string": "H100"}}`, uuid), string(entry.Data.Raw))

	h.DeletePod("simple", "pod", 1)
	h.Gone("simple", "pod")
}

func testTwentyPodsShareAClaim(h *harness.H) {
	h.Scene("shared", "")
	h.CreateClaim("shared", "one", harness.ClaimSpec("shared"))
	for i := range 20 {
		h.CreatePod("shared", harness.NewPod(fmt.Sprint("pod-", i), "shared", "one"))
	}
	for i := range 20 {
		h.Running("shared", fmt.Sprint("pod-", i))
	}
	h.Entries("shared", "one", 1)
	for i := range 20 {
		require.Len(h, h.Claim("shared", "one").Status.Devices, 1)
		h.DeletePod("shared", fmt.Sprint("pod-", i), 0)
	}
	h.Entries("shared", "one", 0)
	require.Nil(h, h.Claim("shared", "one").Status.Allocation)
	require.Len(h, h.WritesTo("resourceclaims", "one"), 1, "written once")
}

// testSecondClaimNotAllocated has a Pod that the scheduler has not seen.
func testSecondClaimNotAllocated(h *harness.H) {
	h.Scene("second", "")
	h.CreateClaim("second", "first", harness.ClaimSpec("second"))
	h.CreateClaim("second", "last", harness.ClaimSpec("second"))
	bypass := harness.NewPod("pod", "second", "first", "last")
	bypass.Spec.NodeName = "second"
	created := h.CreatePod("second", bypass)
	require.Contains(h, h.FailedPrepare("second", "pod").Message, "Failed to prepare dynamic resources: prepare dynamic resources: pod pod (")
	h.CreatePod("second", harness.NewPod("other", "second", "first"))
	h.Running("second", "other")
	before := len(h.WritesTo("resourceclaims", "first"))

	h.PodEventually("second", "pod", func(pod *corev1.Pod) bool {
		return harness.PodCondition(pod, corev1.PodReadyToStartContainers) == corev1.ConditionFalse
	})
	last := h.Claim("second", "last")
	h.Eventually(harness.Patience, func() string {
		want := fmt.Sprintf("pod pod (%s) is not allowed to use ResourceClaim last (%s)", created.UID, last.UID)
		if messages := h.Messages("second", "pod", "FailedPrepareDynamicResources"); !strings.Contains(messages, want) {
			return "want an event " + want + ", have " + messages
		}
		return ""
	})
	require.Empty(h, h.Claim("second", "last").Status.Devices)
	require.Empty(h, h.WritesTo("resourceclaims", "last"))
	require.Len(h, h.WritesTo("resourceclaims", "first"), before)

	h.CreatePod("second", harness.NewPod("helper", "second", "last"))
	h.Running("second", "pod")
	h.Entries("second", "last", 1)
}

func testExtendedResource(h *harness.H) {
	h.Scene("extended", "")
	class, err := h.Client.ResourceV1().DeviceClasses().Get(h.Context(), "extended", metav1.GetOptions{})
	require.NoError(h, err)
	class.Spec.ExtendedResourceName = new("example.com/gpu")
	_, err = h.Client.ResourceV1().DeviceClasses().Update(h.Context(), class, metav1.UpdateOptions{})
	require.NoError(h, err)
	pod := harness.NewPod("pod", "extended")
	pod.Spec.Containers[0].Resources.Limits = corev1.ResourceList{"example.com/gpu": resource.MustParse("2")}
	h.CreatePod("extended", pod)
	running := h.Running("extended", "pod")
	require.True(h, harness.IsReady(running))
	h.Entries("extended", running.Status.ExtendedResourceClaimStatus.ResourceClaimName, 2)
}

// testTwoDriversOneForeign has a driver beside it that writes to the claim too.
func testTwoDriversOneForeign(h *harness.H) {
	const foreign = "foreign.example.com"
	h.Scene("beside", "")
	h.ForeignSlice("beside", foreign)
	h.DeviceClass("beside-foreign", foreign)
	h.CreateClaim("beside", "both", harness.ClaimSpec("beside", "beside-foreign"))
	h.CreateClaim("beside", "foreign", harness.ClaimSpec("beside-foreign"))
	pod := harness.NewPod("pod", "beside", "both")
	pod.Labels = map[string]string{"hold": "true"}
	h.CreatePod("beside", pod)
	h.PodEventually("beside", "pod", func(pod *corev1.Pod) bool { return pod.Spec.NodeName != "" })
	h.ReportForeign("beside", "both", foreign)
	before := harness.ForeignEntry(h.Claim("beside", "both"), foreign)
	h.PatchPod("beside", "pod", `{"metadata": {"labels": {"hold": null}}}`)
	h.Running("beside", "pod")
	require.Equal(h, before, harness.ForeignEntry(h.Entries("beside", "both", 2), foreign))

	h.CreatePod("beside", harness.NewPod("pod-2", "beside", "foreign"))
	require.True(h, harness.IsReady(h.Running("beside", "pod-2")), "a driver without a template counts as prepared")
	require.Empty(h, h.WritesTo("resourceclaims", "foreign"))
}

// testTwoDriversOneFails has two drivers with templates, one of which is down: none
// of the Pod's claims is prepared until it is back.
func testTwoDriversOneFails(h *harness.H) {
	const other = "other.example.com"
	h.SceneOf("pair", harness.Driver, harness.GPUs(8), "")
	h.Configure("pair-other", harness.WithSpec(harness.Template("pair-other", other, "pair", harness.GPUs(8)), `retireWhen: {matchLabels: {retired: "true"}}`))
	h.Eventually(harness.Patience, func() string { return h.Complete("pair", map[string]int{harness.Driver: 8, other: 8}) })
	h.DeviceClass("pair-other", other)
	h.CreateClaim("pair", "pair-1", harness.ClaimSpec("pair"))
	h.CreateClaim("pair", "pair-2", harness.ClaimSpec("pair-other", "pair"))
	h.CreatePod("pair", harness.NewPod("first", "pair", "pair-1", "pair-2"))
	h.Running("pair", "first")
	h.Entries("pair", "pair-1", 1)
	h.Entries("pair", "pair-2", 2)
	h.DeletePod("pair", "first", 0)
	h.Entries("pair", "pair-1", 0)
	h.Entries("pair", "pair-2", 0)

	held := harness.NewPod("second", "pair", "pair-1", "pair-2")
	held.Labels = map[string]string{"hold": "true"}
	h.CreatePod("pair", held)
	h.PodEventually("pair", "second", func(pod *corev1.Pod) bool { return pod.Spec.NodeName != "" })
	h.Label("pair", "retired", "true")
	h.Eventually(harness.Patience, func() string { return h.Complete("pair", map[string]int{harness.Driver: 8}) })
	h.PatchPod("pair", "second", `{"metadata": {"labels": {"hold": null}}}`)
	require.Contains(h, h.FailedPrepare("pair", "second").Message, "DRA driver "+other+" is not registered")
	require.Empty(h, h.Claim("pair", "pair-1").Status.Devices, "all of a Pod's claims or none")
	h.Label("pair", "retired", nil)
	h.Running("pair", "second")
	h.Entries("pair", "pair-2", 2)
}

// testRealNode has a node that kwok does not play, with a template that selects
// it and slices of its own.
func testRealNode(h *harness.H) {
	h.Configure("real", harness.Template("real", harness.Driver, "real", harness.GPUs(8)))
	node := harness.FakeNode("real", "real")
	node.Annotations = nil
	_, err := h.Client.CoreV1().Nodes().Create(h.Context(), node, metav1.CreateOptions{})
	require.NoError(h, err)
	h.ForeignSlice("real", harness.Driver)
	h.Namespace("real", harness.Driver)
	pod := harness.NewPod("on-real-node", "real", harness.FromTemplate)
	pod.Spec.Tolerations = []corev1.Toleration{{Operator: corev1.TolerationOpExists}}
	h.CreatePod("real", pod)
	h.PodEventually("real", "on-real-node", func(pod *corev1.Pod) bool { return pod.Spec.NodeName == "real" })

	// Another Pod is prepared meanwhile.
	h.Scene("fake", "")
	h.CreatePod("fake", harness.NewPod("pod", "fake", harness.FromTemplate))
	h.Running("fake", "pod")
	require.Empty(h, h.WritesTo("pods", "on-real-node"))
	require.Empty(h, h.WritesTo("resourceclaims", h.ClaimOf("real", "on-real-node").Name))
	require.Empty(h, h.Pod("real", "on-real-node").Status.Conditions[1:], "only the scheduler has written")
}

func testDriverNotRegistered(h *harness.H) {
	h.SceneOf("unregistered", harness.Driver, harness.GPUs(8), "retireWhen: {matchLabels: {retired: \"true\"}}")
	h.CreateClaim("unregistered", "shared", harness.ClaimSpec("unregistered"))
	h.CreatePod("unregistered", harness.NewPod("first", "unregistered", "shared"))
	h.Running("unregistered", "first")
	h.Label("unregistered", "retired", "true")
	h.Retired("unregistered")

	h.CreatePod("unregistered", harness.NewPod("second", "unregistered", "shared"))
	event := h.FailedPrepare("unregistered", "second")
	require.Equal(h, "Failed to prepare dynamic resources: prepare dynamic resources: DRA driver "+harness.Driver+" is not registered", event.Message)
	require.Equal(h, "kubelet", event.Source.Component)
	require.Equal(h, "unregistered", event.ReportingInstance)
	require.Equal(h, corev1.PodPending, h.Pod("unregistered", "second").Status.Phase)

	h.Label("unregistered", "retired", nil)
	h.Running("unregistered", "second")
	require.Len(h, h.WritesTo("resourceclaims", h.Claim("unregistered", "shared").Name), 1)
}

func testSimulatedFailure(h *harness.H) {
	h.Scene("fails", "")
	pod := harness.NewPod("pod", "fails", harness.FromTemplate)
	pod.Labels = map[string]string{"fail": "true"}
	h.CreatePod("fails", pod)
	event := h.FailedPrepare("fails", "pod")
	require.Regexp(h, `^Failed to prepare dynamic resources: prepare dynamic resources: NodePrepareResources failed for ResourceClaim pod-claim-0-\w+: failWhen selects the Pod$`, event.Message)
	pod = h.PodEventually("fails", "pod", func(pod *corev1.Pod) bool {
		return harness.PodCondition(pod, corev1.PodReadyToStartContainers) == corev1.ConditionFalse
	})
	require.Equal(h, corev1.PodPending, pod.Status.Phase)
	require.Equal(h, "ContainerCreating", pod.Status.ContainerStatuses[0].State.Waiting.Reason)
	h.Eventually(harness.Patience, func() string {
		if n := h.Events("pod", "FailedPrepareDynamicResources"); n < 2 {
			return fmt.Sprintf("%d failures, want it to be tried again", n)
		}
		return ""
	})
	require.Empty(h, h.ClaimOf("fails", "pod").Status.Devices)
	h.PatchPod("fails", "pod", `{"metadata": {"labels": {"fail": null}}}`)
	h.Running("fails", "pod")
	require.Len(h, h.ClaimOf("fails", "pod").Status.Devices, 1)
}

func testPodWithoutClaims(h *harness.H) {
	h.CreateNode("plain", "plain")
	h.Namespace("plain", harness.Driver)
	h.CreatePod("plain", harness.NewPod("without-claims", "plain"))
	pod := h.Running("plain", "without-claims")
	require.Empty(h, harness.PodCondition(pod, corev1.PodReadyToStartContainers))
	require.Empty(h, h.WritesTo("pods", "without-claims"))
}
