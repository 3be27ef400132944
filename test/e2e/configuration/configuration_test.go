// Package configuration proves what becomes of templates that are invalid, and of
// those that are custom resources.
package configuration

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kwok-dra/kwok-dra/test/cluster"
	"github.com/kwok-dra/kwok-dra/test/e2e/harness"
)

// TestInvalidConfiguration makes the configuration invalid and valid again.
func TestInvalidConfiguration(t *testing.T) {
	t.Parallel()
	h := harness.New(t, cluster.Options{})
	process := h.Sidecar()
	carrier := `carrier="ConfigMap default/kwok-dra"`
	h.Configure("config", harness.Template("config", harness.Driver, "config", harness.GPUs(8)))
	h.CreateNode("config", "config")
	before := h.Published("config", harness.Driver, 8)

	h.Configure("config", harness.Template("config", harness.Driver, "config", `[{name: gpu, attributes: {compute-capability: "9.0"}}]`))
	h.Eventually(harness.Patience, func() string {
		if h.Events(harness.ConfigMapName, "InvalidConfiguration") == 0 {
			return "no event on the ConfigMap"
		}
		return ""
	})
	require.InDelta(t, 1, h.Metric(process, "kwok_dra_config_refused_total", carrier), 0)
	require.InDelta(t, 0, h.Metric(process, "kwok_dra_config_last_reload_successful", carrier), 0)
	require.Equal(t, before, h.SlicesOf("config"))

	// The last good version also serves nodes that come now.
	h.CreateNode("config-2", "config")
	h.Published("config-2", harness.Driver, 8)

	h.Configure("config", harness.Template("config", harness.Driver, "config", harness.GPUs(4)))
	h.Published("config", harness.Driver, 4)
	require.InDelta(t, 1, h.Metric(process, "kwok_dra_config_last_reload_successful", carrier), 0)

	// A sidecar that starts with an invalid configuration touches nothing.
	h.Configure("config", "kind: Nonsense")
	require.NoError(t, process.Stop())
	before = h.SlicesOf("config")
	h.Sidecar()
	h.Eventually(harness.Patience, func() string {
		if h.Events(harness.ConfigMapName, "InvalidConfiguration") < 2 {
			return "no second event on the ConfigMap"
		}
		return ""
	})
	require.Equal(t, before, h.SlicesOf("config"))
}

// TestDroppedField runs with the feature gate of device taints off.
func TestDroppedField(t *testing.T) {
	t.Parallel()
	gates := map[string]bool{"DRADeviceTaints": false}
	if harness.KubernetesMinor() > 36 {
		gates["DRADeviceTaintRules"] = false // it is on, and needs the other
	}
	h := harness.New(t, cluster.Options{FeatureGates: gates, Audit: true})
	began := time.Now()
	process := h.Sidecar()
	h.Configure("taints", harness.Template("taints", harness.Driver, "taints",
		`[{name: gpu, count: 8, taints: [{key: example.com/broken, effect: NoSchedule}]}]`))
	for i := range 20 {
		h.CreateNode(fmt.Sprintf("taints-%d", i), "taints")
	}
	for i := range 20 {
		pool := h.Published(fmt.Sprintf("taints-%d", i), harness.Driver, 8)
		require.Empty(t, pool[0].Spec.Devices[0].Taints)
	}
	h.Eventually(harness.Patience, func() string {
		if h.Metric(process, "kwok_dra_dropped_fields", `template="taints"`, `field="taints"`) != 1 {
			return "the metric does not say that the field is dropped"
		}
		return ""
	})
	events := func() int {
		list, err := h.Client.CoreV1().Events("").List(t.Context(), metav1.ListOptions{FieldSelector: "reason=FieldsDropped"})
		require.NoError(t, err)
		return len(list.Items)
	}
	h.Eventually(harness.Patience, func() string {
		if events() != 1 {
			return fmt.Sprintf("%d events say that the field is dropped, want 1", events())
		}
		return ""
	})

	// One write for each node, and the one dry run that asked the server: it asks again after half a minute, or
	// ten seconds without an answer.
	again := func() int { return int(time.Since(began) / (10 * time.Second)) }
	require.NoError(t, process.Stop())
	kept, asked := sliceWrites(h)
	require.Equal(t, 20, kept)
	require.Positive(t, asked)
	require.LessOrEqual(t, asked, 1+again())

	// Nor does a restart write: it asks again, and that is all.
	began = time.Now()
	restarted := h.Sidecar()
	h.CreateNode("taints-last", "taints")
	h.Published("taints-last", harness.Driver, 8)
	require.NoError(t, restarted.Stop())
	kept, askedAgain := sliceWrites(h)
	require.Equal(t, 21, kept)
	require.Greater(t, askedAgain, asked)
	require.LessOrEqual(t, askedAgain, asked+1+again())
}

// sliceWrites counts the sidecar's writes of slices: those that are kept, and dry runs.
func sliceWrites(h *harness.H) (kept, asked int) {
	h.Helper()
	for _, event := range h.Writes("resourceslices") {
		if event.DryRun() {
			asked++
		} else {
			kept++
		}
	}
	return kept, asked
}
