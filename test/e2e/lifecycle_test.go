package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kwok-dra/kwok-dra/test/cluster"
	"github.com/kwok-dra/kwok-dra/test/sidecar"
)

// TestRecreatedNode has no garbage collector: what goes, the sidecar deletes.
func TestRecreatedNode(t *testing.T) {
	t.Parallel()
	h := newHarness(t, cluster.Options{})
	require.NoError(t, h.cluster.StopComponent(t.Context(), cluster.ControllerManager))
	h.sidecar()
	h.configure("again", template("again", driver, "again", gpus(300)))
	h.createNode("again", "again")
	h.published("again", driver, 300)

	h.deleteNode("again")
	node := h.createNode("again", "again")
	h.eventually(soon, func() string {
		pool := h.slicesOf("again")
		if missing := completePool(pool, 300); missing != "" {
			return missing
		}
		for _, slice := range pool {
			if slice.OwnerReferences[0].UID != node.UID {
				return "slice " + slice.Name + " belongs to the old node"
			}
		}
		return ""
	})

	h.deleteNode("again")
	h.eventually(soon, func() string {
		if n := len(h.slicesOf("again")); n > 0 {
			return fmt.Sprintf("%d slices are left", n)
		}
		return ""
	})
}

// TestLifecycle plays nodes with kwok's Stages, its chaos Stage among them.
func TestLifecycle(t *testing.T) {
	t.Parallel()
	h := newHarness(t, cluster.Options{Config: []string{
		kwokFile(t, "kustomize/stage/node/fast/node-initialize.yaml"),
		kwokFile(t, "kustomize/stage/node/chaos/node-not-ready.yaml"),
	}})
	h.sidecar()
	for name, test := range map[string]func(*harness){
		"NotReadyStays":          testNotReadyStays,
		"RetireWhen":             testRetireWhen,
		"PublishWhenOfOneDriver": testPublishWhen,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(h.on(t))
		})
	}
}

func testNotReadyStays(h *harness) {
	h.configure("stays", template("stays", driver, "stays", gpus(8)))
	h.createNode("stays", "stays")
	before := h.published("stays", driver, 8)
	h.label("stays", "node-not-ready.stage.kwok.x-k8s.io", "true")
	h.nodeReady("stays", corev1.ConditionFalse)

	// Another template makes the sidecar look at the node again.
	h.configure("stays", template("stays", driver, "stays", gpus(8))+template("stays-nic", "nic.example.com", "stays", `[{name: nic}]`))
	h.configure("other", template("other", driver, "other", gpus(1)))
	h.createNode("other", "other")
	h.published("other", driver, 1)
	require.Equal(h, before, h.slicesOf("stays"), "slices stay as they are, and no new pool is published")

	h.label("stays", "node-not-ready.stage.kwok.x-k8s.io", nil)
	h.nodeReady("stays", corev1.ConditionTrue)
	h.eventually(patience, func() string { return h.complete("stays", map[string]int{driver: 8, "nic.example.com": 1}) })
}

func testRetireWhen(h *harness) {
	retire := `retireWhen: {matchExpressions: [{key: '.status.conditions.[] | select( .type == "dra.kwok.x-k8s.io/PluginRegistered" ) | .status', operator: In, values: ["False"]}]}`
	h.configure("retire", strings.Replace(template("retire", driver, "retire", gpus(8)), "spec:", "spec:\n  "+retire, 1))
	h.createNode("retire", "retire")
	h.published("retire", driver, 8)
	h.pluginRegistered("retire", "False")
	h.retired("retire")
	h.pluginRegistered("retire", "True")
	require.Equal(h, int64(1), generation(h.published("retire", driver, 8)))
}

func testPublishWhen(h *harness) {
	publish := `publishWhen: {matchExpressions: [{cel: {expression: 'self.metadata.labels.exists(k, k == "driver-up")'}}]}`
	late := strings.Replace(template("late", "late.example.com", "when", gpus(1)), "spec:", "spec:\n  "+publish, 1)
	h.configure("when", late+template("early", driver, "when", gpus(1)))
	h.createNode("when", "when")
	h.published("when", driver, 1)
	h.label("when", "driver-up", "yes")
	h.eventually(patience, func() string { return h.complete("when", map[string]int{driver: 1, "late.example.com": 1}) })
	h.label("when", "driver-up", nil)
	h.configure("when", late+template("early", driver, "when", gpus(2)))
	h.eventually(patience, func() string { return h.complete("when", map[string]int{driver: 2, "late.example.com": 1}) })
}

func (h *harness) pluginRegistered(node, status string) {
	h.Helper()
	patch := fmt.Sprintf(`{"status":{"conditions":[{"type":"dra.kwok.x-k8s.io/PluginRegistered","status":%q}]}}`, status)
	_, err := h.client.CoreV1().Nodes().Patch(h.Context(), node, types.StrategicMergePatchType, []byte(patch), metav1.PatchOptions{}, "status")
	require.NoError(h, err)
}

func (h *harness) nodeReady(name string, want corev1.ConditionStatus) {
	h.Helper()
	h.nodeCondition(name, corev1.NodeReady, want)
}

func (h *harness) nodeCondition(name string, kind corev1.NodeConditionType, want corev1.ConditionStatus) {
	h.Helper()
	h.eventually(patience, func() string {
		node, err := h.client.CoreV1().Nodes().Get(h.Context(), name, metav1.GetOptions{})
		require.NoError(h, err)
		for _, condition := range node.Status.Conditions {
			if condition.Type == kind && condition.Status == want {
				return ""
			}
		}
		return fmt.Sprintf("%s of node %s is not %s", kind, name, want)
	})
}

// kwokFile is the path of a file of the kwok module.
func kwokFile(t *testing.T, name string) string {
	t.Helper()
	module, err := sidecar.ModuleDir(t.Context(), "sigs.k8s.io/kwok")
	require.NoError(t, err)
	path := filepath.Join(module, name)
	_, err = os.Stat(path)
	require.NoError(t, err)
	return path
}

// TestInvalidConfiguration makes the configuration invalid and valid again.
func TestInvalidConfiguration(t *testing.T) {
	t.Parallel()
	h := newHarness(t, cluster.Options{})
	process := h.sidecar()
	carrier := `carrier="ConfigMap default/kwok-dra"`
	h.configure("config", template("config", driver, "config", gpus(8)))
	h.createNode("config", "config")
	before := h.published("config", driver, 8)

	h.configure("config", template("config", driver, "config", `[{name: gpu, attributes: {compute-capability: "9.0"}}]`))
	h.eventually(patience, func() string {
		if h.events(configMapName, "InvalidConfiguration") == 0 {
			return "no event on the ConfigMap"
		}
		return ""
	})
	require.InDelta(t, 1, h.metric(process, "kwok_dra_config_refused_total", carrier), 0)
	require.InDelta(t, 0, h.metric(process, "kwok_dra_config_last_reload_successful", carrier), 0)
	require.Equal(t, before, h.slicesOf("config"))

	// The last good version also serves nodes that come now.
	h.createNode("config-2", "config")
	h.published("config-2", driver, 8)

	h.configure("config", template("config", driver, "config", gpus(4)))
	h.published("config", driver, 4)
	require.InDelta(t, 1, h.metric(process, "kwok_dra_config_last_reload_successful", carrier), 0)

	// A sidecar that starts with an invalid configuration touches nothing.
	h.configure("config", "kind: Nonsense")
	require.NoError(t, process.Stop())
	before = h.slicesOf("config")
	h.sidecar()
	h.eventually(patience, func() string {
		if h.events(configMapName, "InvalidConfiguration") < 2 {
			return "no second event on the ConfigMap"
		}
		return ""
	})
	require.Equal(t, before, h.slicesOf("config"))
}

// TestDroppedField runs with the feature gate of device taints off.
func TestDroppedField(t *testing.T) {
	t.Parallel()
	gates := map[string]bool{"DRADeviceTaints": false}
	if kubernetesMinor() > 36 {
		gates["DRADeviceTaintRules"] = false // it is on, and needs the other
	}
	h := newHarness(t, cluster.Options{FeatureGates: gates, Audit: true})
	process := h.sidecar()
	h.configure("taints", template("taints", driver, "taints",
		`[{name: gpu, count: 8, taints: [{key: example.com/broken, effect: NoSchedule}]}]`))
	for i := range 20 {
		h.createNode(fmt.Sprintf("taints-%d", i), "taints")
	}
	for i := range 20 {
		pool := h.published(fmt.Sprintf("taints-%d", i), driver, 8)
		require.Empty(t, pool[0].Spec.Devices[0].Taints)
	}
	h.eventually(patience, func() string {
		if h.metric(process, "kwok_dra_dropped_fields", `template="taints"`, `field="taints"`) != 1 {
			return "the metric does not say that the field is dropped"
		}
		return ""
	})
	events := func() int {
		list, err := h.client.CoreV1().Events("").List(t.Context(), metav1.ListOptions{FieldSelector: "reason=FieldsDropped"})
		require.NoError(t, err)
		return len(list.Items)
	}
	h.eventually(patience, func() string {
		if events() != 1 {
			return fmt.Sprintf("%d events say that the field is dropped, want 1", events())
		}
		return ""
	})

	// One write for each node, and the one dry run that asked the server.
	require.NoError(t, process.Stop())
	require.Len(t, h.writes("resourceslices"), 21)

	// Nor does a restart write: it asks again, and that is all.
	restarted := h.sidecar()
	h.createNode("taints-last", "taints")
	h.published("taints-last", driver, 8)
	require.NoError(t, restarted.Stop())
	require.Len(t, h.writes("resourceslices"), 23)
}
