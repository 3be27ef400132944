package e2e

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
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
	h := newHarness(t, cluster.Options{Config: fastStages(t), Audit: true})
	h.sidecar()
	for name, test := range map[string]func(*harness){
		"FromTemplate": testFromTemplate,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(h.on(t))
		})
	}
}

// prepared makes a namespace, a node and a template of that name, with a
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

var _ = json.Marshal
var _ corev1.Pod
