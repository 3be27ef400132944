package dashboards

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kwok-dra/kwok-dra/test/cluster"
	"github.com/kwok-dra/kwok-dra/test/internal/sidecar"
)

// patience is how long something takes that will never happen, however busy the
// machine, and pause is the time between two
// looks at what is waited for.
const (
	patience = 5 * time.Minute
	pause    = 50 * time.Millisecond
)

// The drivers: one whose devices are used, one whose second slice a policy
// refuses, and one of whose devices the API server drops a field.
const (
	whole  = "gpu.example.com"
	torn   = "torn.example.com"
	poorer = "poorer.example.com"
)

// world is a cluster with a sidecar to which things happen.
type world struct {
	*testing.T
	cluster *cluster.Cluster
	process *sidecar.Process
}

func newWorld(t *testing.T) *world {
	t.Helper()
	c := cluster.ForTest(t, cluster.Options{
		Config:        fastStages(t),
		FeatureGates:  map[string]bool{"DRADeviceTaints": true, "DRADeviceBindingConditions": false},
		RuntimeConfig: map[string]bool{"resource.k8s.io/v1alpha3": true},
	})
	w := &world{T: t, cluster: c}
	w.apply(policy)
	w.eventually(func() string {
		if _, err := c.KubectlInput(t.Context(), strings.NewReader(refusedSlice), "create", "--dry-run=server", "-f", "-"); err == nil {
			return "the policy refuses nothing"
		}
		return ""
	})
	w.apply(fmt.Sprintf(classes, whole))
	w.apply(fmt.Sprintf(configuration, whole, torn, poorer))
	process, err := sidecar.Start(t.Context(), c, "--config-map", "default/kwok-dra")
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, process.Kill()) })
	w.process = process
	return w
}

// fastStages are kwok's own fast Stages, with the project's in place of pod-ready.
func fastStages(t *testing.T) []string {
	t.Helper()
	kwok, err := sidecar.ModuleDir(t.Context(), "sigs.k8s.io/kwok")
	require.NoError(t, err)
	files, err := filepath.Glob(filepath.Join(sidecar.Root(), "stages", "pod", "fast", "*.yaml"))
	require.NoError(t, err)
	files = slices.DeleteFunc(files, func(file string) bool { return filepath.Base(file) == "kustomization.yaml" })
	for _, stage := range []string{"node/fast/node-initialize.yaml", "pod/fast/pod-complete.yaml", "pod/fast/pod-delete.yaml"} {
		files = append(files, filepath.Join(kwok, "kustomize", "stage", stage))
	}
	return files
}

func (w *world) apply(manifests string) {
	w.Helper()
	_, err := w.cluster.KubectlInput(w.Context(), strings.NewReader(manifests), "apply", "-f", "-")
	require.NoError(w, err)
}

// round has a node come, a Pod be prepared, another fail because it is told to,
// and one because no scheduler saw it; and a node with a mistake in its annotation.
func (w *world) round(number int) {
	w.Helper()
	before := w.counts()
	w.apply(fmt.Sprintf(events, number))
	w.eventually(func() string {
		now := w.counts()
		for what := range now {
			if now[what] <= before[what] {
				return fmt.Sprintf("%s is %v, as before", what, now[what])
			}
		}
		return ""
	})
}

// counts are of all that a round has happen.
func (w *world) counts() map[string]float64 {
	w.Helper()
	counts := map[string]float64{}
	for _, what := range []string{
		`kwok_dra_prepare_duration_seconds_count`,
		`kwok_dra_publish_duration_seconds_count`,
		`kwok_dra_prepare_failures_total{reason="simulated"}`,
		`kwok_dra_prepare_failures_total{reason="not_reserved"}`,
		`kwok_dra_publish_failures_total{cause="annotation"}`,
		`kwok_dra_publish_failures_total{cause="api"}`,
		`kwok_dra_incomplete_pools`,
		`workqueue_retries_total{name="slices"}`,
	} {
		counts[what] = w.metric(what)
	}
	return counts
}

// refuse gives kwok-dra a configuration that is invalid.
func (w *world) refuse() {
	w.Helper()
	w.apply(`{apiVersion: v1, kind: ConfigMap, metadata: {name: kwok-dra, namespace: default}, data: {mistake: "kind: Nothing"}}`)
	w.eventually(func() string {
		if w.metric("kwok_dra_config_refused_total") == 0 {
			return "the configuration is not refused"
		}
		return ""
	})
}

// metric is the sum of the series of a metric, which may have a label.
func (w *world) metric(series string) float64 {
	w.Helper()
	name, label, _ := strings.Cut(strings.TrimSuffix(series, "}"), "{")
	value, err := w.process.Metric(w.Context(), name, label)
	require.NoError(w, err)
	return value
}

// eventually waits until check returns "", which otherwise is what is missing.
func (w *world) eventually(check func() string) {
	w.Helper()
	ctx, cancel := context.WithTimeout(w.Context(), patience)
	defer cancel()
	for missing := check(); missing != ""; missing = check() {
		select {
		case <-ctx.Done():
			w.Fatalf("after %s: %s", patience, missing)
		case <-time.After(pause):
		}
	}
}
