package e2e

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kwok-dra/kwok-dra/test/cluster"
)

// fastStages are kwok's own fast Stages, with the project's in place of pod-ready.
func fastStages(t *testing.T) []string {
	t.Helper()
	return append([]string{
		kwokFile(t, "kustomize/stage/node/fast/node-initialize.yaml"),
		kwokFile(t, "kustomize/stage/pod/fast/pod-complete.yaml"),
		kwokFile(t, "kustomize/stage/pod/fast/pod-delete.yaml"),
	}, stageFiles(t, "pod/fast")...)
}

// TestPrepare has the stories of claims that share one cluster and sidecar, with
// the fast Stages.
func TestPrepare(t *testing.T) {
	t.Parallel()
	h := newHarness(t, allFeatures(cluster.Options{Config: fastStages(t), Audit: true}))
	h.configure("configuration", knobs)
	h.sidecar()
	for name, test := range map[string]func(*harness){
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
		"ClaimOfAnotherPod":       testClaimOfAnotherPod,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(h.on(t))
		})
	}
}

// knobs has Pods with the label hold wait, and those with the label fail fail.
const knobs = `
apiVersion: dra.kwok.x-k8s.io/v1alpha1
kind: KwokDRAConfiguration
metadata: {name: knobs}
spec:
  prepareWhen: {matchExpressions: [{key: .metadata.labels.hold, operator: DoesNotExist}]}
  failWhen: {matchLabels: {fail: "true"}}
  retryInterval: 2s
`

// scene makes a namespace, a node and a template of that name, with a
// claimStatus, and waits for the slices.
func (h *harness) scene(name, claimStatus string) {
	h.Helper()
	h.sceneOf(name, driver, gpus(8), claimStatus)
}

func (h *harness) sceneOf(name, driver, devices, claimStatus string) {
	h.Helper()
	h.configure(name, withSpec(template(name, driver, name, devices), claimStatus))
	h.createNode(name, name)
	h.published(name, driver, countOf(devices))
	h.namespace(name, driver)
}

// withSpec adds fields to the spec of a template.
func withSpec(template, fields string) string {
	if fields == "" {
		return template
	}
	return strings.Replace(template, "spec:", "spec:\n  "+fields, 1)
}

// countOf is the count of the only device group, or 1.
func countOf(devices string) int {
	count := 1
	if _, text, found := strings.Cut(devices, "count: "); found {
		_, _ = fmt.Sscan(text, &count)
	}
	return count
}

func testFromTemplate(h *harness) {
	h.scene("simple", `claimStatus: {data: {uuid: "{{ .Device.attributes.uuid.string }}", model: {string: H100}}}`)
	h.createPod("simple", newPod("pod", "simple", fromTemplate))
	pod := h.running("simple", "pod")
	require.True(h, isReady(pod))

	claim := h.claimOf("simple", "pod")
	require.Len(h, claim.Status.Devices, 1)
	entry, result := claim.Status.Devices[0], claim.Status.Allocation.Devices.Results[0]
	require.Equal(h, []string{result.Driver, result.Pool, result.Device}, []string{entry.Driver, entry.Pool, entry.Device})
	require.Len(h, entry.Conditions, 1)
	require.Equal(h, "Ready", entry.Conditions[0].Type)
	require.Equal(h, metav1.ConditionTrue, entry.Conditions[0].Status)
	require.Equal(h, "Prepared", entry.Conditions[0].Reason)
	var uuid string
	for _, device := range h.slicesOf("simple")[0].Spec.Devices {
		if device.Name == entry.Device {
			uuid = *device.Attributes["uuid"].StringValue
		}
	}
	require.JSONEq(h, fmt.Sprintf(`{"uuid": %q, "model": {"string": "H100"}}`, uuid), string(entry.Data.Raw))

	h.deletePod("simple", "pod", 1)
	h.gone("simple", "pod")
}

func testTwentyPodsShareAClaim(h *harness) {
	h.scene("shared", "")
	h.createClaim("shared", "one", claimSpec("shared"))
	for i := range 20 {
		h.createPod("shared", newPod(fmt.Sprint("pod-", i), "shared", "one"))
	}
	for i := range 20 {
		h.running("shared", fmt.Sprint("pod-", i))
	}
	h.entries("shared", "one", 1)
	for i := range 20 {
		require.Len(h, h.claim("shared", "one").Status.Devices, 1)
		h.deletePod("shared", fmt.Sprint("pod-", i), 0)
	}
	h.entries("shared", "one", 0)
	require.Nil(h, h.claim("shared", "one").Status.Allocation)
	require.Len(h, h.writesTo("resourceclaims", "one"), 1, "written once")
}

// testSecondClaimNotAllocated has a Pod that the scheduler has not seen.
func testSecondClaimNotAllocated(h *harness) {
	h.scene("second", "")
	h.createClaim("second", "first", claimSpec("second"))
	h.createClaim("second", "last", claimSpec("second"))
	bypass := newPod("pod", "second", "first", "last")
	bypass.Spec.NodeName = "second"
	created := h.createPod("second", bypass)
	require.Contains(h, h.failedPrepare("second", "pod").Message, "Failed to prepare dynamic resources: prepare dynamic resources: pod pod (")
	h.createPod("second", newPod("other", "second", "first"))
	h.running("second", "other")
	before := len(h.writesTo("resourceclaims", "first"))

	h.podEventually("second", "pod", func(pod *corev1.Pod) bool {
		return podCondition(pod, corev1.PodReadyToStartContainers) == corev1.ConditionFalse
	})
	last := h.claim("second", "last")
	h.eventually(patience, func() string {
		want := fmt.Sprintf("pod pod (%s) is not allowed to use ResourceClaim last (%s)", created.UID, last.UID)
		if messages := h.messages("second", "pod", "FailedPrepareDynamicResources"); !strings.Contains(messages, want) {
			return "want an event " + want + ", have " + messages
		}
		return ""
	})
	require.Empty(h, h.claim("second", "last").Status.Devices)
	require.Empty(h, h.writesTo("resourceclaims", "last"))
	require.Len(h, h.writesTo("resourceclaims", "first"), before)

	h.createPod("second", newPod("helper", "second", "last"))
	h.running("second", "pod")
	h.entries("second", "last", 1)
}

func testExtendedResource(h *harness) {
	h.scene("extended", "")
	class, err := h.client.ResourceV1().DeviceClasses().Get(h.Context(), "extended", metav1.GetOptions{})
	require.NoError(h, err)
	class.Spec.ExtendedResourceName = new("example.com/gpu")
	_, err = h.client.ResourceV1().DeviceClasses().Update(h.Context(), class, metav1.UpdateOptions{})
	require.NoError(h, err)
	pod := newPod("pod", "extended")
	pod.Spec.Containers[0].Resources.Limits = corev1.ResourceList{"example.com/gpu": resource.MustParse("2")}
	h.createPod("extended", pod)
	running := h.running("extended", "pod")
	require.True(h, isReady(running))
	h.entries("extended", running.Status.ExtendedResourceClaimStatus.ResourceClaimName, 2)
}

// testTwoDriversOneForeign has a driver beside it that writes to the claim too.
func testTwoDriversOneForeign(h *harness) {
	const foreign = "foreign.example.com"
	h.scene("beside", "")
	h.foreignSlice("beside", foreign)
	h.deviceClass("beside-foreign", foreign)
	h.createClaim("beside", "both", claimSpec("beside", "beside-foreign"))
	h.createClaim("beside", "foreign", claimSpec("beside-foreign"))
	pod := newPod("pod", "beside", "both")
	pod.Labels = map[string]string{"hold": "true"}
	h.createPod("beside", pod)
	h.podEventually("beside", "pod", func(pod *corev1.Pod) bool { return pod.Spec.NodeName != "" })
	h.reportForeign("beside", "both", foreign)
	before := foreignEntry(h.claim("beside", "both"), foreign)
	h.patchPod("beside", "pod", `{"metadata": {"labels": {"hold": null}}}`)
	h.running("beside", "pod")
	require.Equal(h, before, foreignEntry(h.entries("beside", "both", 2), foreign))

	h.createPod("beside", newPod("pod-2", "beside", "foreign"))
	require.True(h, isReady(h.running("beside", "pod-2")), "a driver without a template counts as prepared")
	require.Empty(h, h.writesTo("resourceclaims", "foreign"))
}

// testTwoDriversOneFails has two drivers with templates, one of which is down: none
// of the Pod's claims is prepared until it is back.
func testTwoDriversOneFails(h *harness) {
	const other = "other.example.com"
	h.sceneOf("pair", driver, gpus(8), "")
	h.configure("pair-other", withSpec(template("pair-other", other, "pair", gpus(8)), `retireWhen: {matchLabels: {retired: "true"}}`))
	h.eventually(patience, func() string { return h.complete("pair", map[string]int{driver: 8, other: 8}) })
	h.deviceClass("pair-other", other)
	h.createClaim("pair", "pair-1", claimSpec("pair"))
	h.createClaim("pair", "pair-2", claimSpec("pair-other", "pair"))
	h.createPod("pair", newPod("first", "pair", "pair-1", "pair-2"))
	h.running("pair", "first")
	h.entries("pair", "pair-1", 1)
	h.entries("pair", "pair-2", 2)
	h.deletePod("pair", "first", 0)
	h.entries("pair", "pair-2", 0)

	held := newPod("second", "pair", "pair-1", "pair-2")
	held.Labels = map[string]string{"hold": "true"}
	h.createPod("pair", held)
	h.podEventually("pair", "second", func(pod *corev1.Pod) bool { return pod.Spec.NodeName != "" })
	h.label("pair", "retired", "true")
	h.eventually(patience, func() string { return h.complete("pair", map[string]int{driver: 8}) })
	h.patchPod("pair", "second", `{"metadata": {"labels": {"hold": null}}}`)
	require.Contains(h, h.failedPrepare("pair", "second").Message, "DRA driver "+other+" is not registered")
	require.Empty(h, h.claim("pair", "pair-1").Status.Devices, "all of a Pod's claims or none")
	h.label("pair", "retired", nil)
	h.running("pair", "second")
	h.entries("pair", "pair-2", 2)
}

// testRealNode has a node that kwok does not play, with a template that selects
// it and slices of its own.
func testRealNode(h *harness) {
	h.configure("real", template("real", driver, "real", gpus(8)))
	node := fakeNode("real", "real")
	node.Annotations = nil
	_, err := h.client.CoreV1().Nodes().Create(h.Context(), node, metav1.CreateOptions{})
	require.NoError(h, err)
	h.foreignSlice("real", driver)
	h.namespace("real", driver)
	pod := newPod("on-real-node", "real", fromTemplate)
	pod.Spec.Tolerations = []corev1.Toleration{{Operator: corev1.TolerationOpExists}}
	h.createPod("real", pod)
	h.podEventually("real", "on-real-node", func(pod *corev1.Pod) bool { return pod.Spec.NodeName == "real" })

	// Another Pod is prepared meanwhile.
	h.scene("fake", "")
	h.createPod("fake", newPod("pod", "fake", fromTemplate))
	h.running("fake", "pod")
	require.Empty(h, h.writesTo("pods", "on-real-node"))
	require.Empty(h, h.writesTo("resourceclaims", h.claimOf("real", "on-real-node").Name))
	require.Empty(h, h.pod("real", "on-real-node").Status.Conditions[1:], "only the scheduler has written")
}

func testDriverNotRegistered(h *harness) {
	h.sceneOf("unregistered", driver, gpus(8), "retireWhen: {matchLabels: {retired: \"true\"}}")
	h.createClaim("unregistered", "shared", claimSpec("unregistered"))
	h.createPod("unregistered", newPod("first", "unregistered", "shared"))
	h.running("unregistered", "first")
	h.label("unregistered", "retired", "true")
	h.retired("unregistered")

	h.createPod("unregistered", newPod("second", "unregistered", "shared"))
	event := h.failedPrepare("unregistered", "second")
	require.Equal(h, "Failed to prepare dynamic resources: prepare dynamic resources: DRA driver "+driver+" is not registered", event.Message)
	require.Equal(h, "kubelet", event.Source.Component)
	require.Equal(h, "unregistered", event.ReportingInstance)
	require.Equal(h, corev1.PodPending, h.pod("unregistered", "second").Status.Phase)

	h.label("unregistered", "retired", nil)
	h.running("unregistered", "second")
	require.Len(h, h.writesTo("resourceclaims", h.claim("unregistered", "shared").Name), 1)
}

func testSimulatedFailure(h *harness) {
	h.scene("fails", "")
	pod := newPod("pod", "fails", fromTemplate)
	pod.Labels = map[string]string{"fail": "true"}
	h.createPod("fails", pod)
	event := h.failedPrepare("fails", "pod")
	require.Regexp(h, `^Failed to prepare dynamic resources: prepare dynamic resources: NodePrepareResources failed for ResourceClaim pod-claim-0-\w+: failWhen selects the Pod$`, event.Message)
	pod = h.podEventually("fails", "pod", func(pod *corev1.Pod) bool {
		return podCondition(pod, corev1.PodReadyToStartContainers) == corev1.ConditionFalse
	})
	require.Equal(h, corev1.PodPending, pod.Status.Phase)
	require.Equal(h, "ContainerCreating", pod.Status.ContainerStatuses[0].State.Waiting.Reason)
	h.eventually(patience, func() string {
		if n := h.events("pod", "FailedPrepareDynamicResources"); n < 2 {
			return fmt.Sprintf("%d failures, want it to be tried again", n)
		}
		return ""
	})
	require.Empty(h, h.claimOf("fails", "pod").Status.Devices)
	h.patchPod("fails", "pod", `{"metadata": {"labels": {"fail": null}}}`)
	h.running("fails", "pod")
	require.Len(h, h.claimOf("fails", "pod").Status.Devices, 1)
}

func testPodWithoutClaims(h *harness) {
	h.createNode("plain", "plain")
	h.namespace("plain", driver)
	h.createPod("plain", newPod("without-claims", "plain"))
	pod := h.running("plain", "without-claims")
	require.Empty(h, podCondition(pod, corev1.PodReadyToStartContainers))
	require.Empty(h, h.writesTo("pods", "without-claims"))
}
