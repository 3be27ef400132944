package dashboards

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kwok-dra/kwok-dra/test/cluster"
	"github.com/kwok-dra/kwok-dra/test/internal/sidecar"
)

// gpuWorld is a cluster with a node with 8 GPUs of NVIDIA.
func gpuWorld(t *testing.T) *world {
	t.Helper()
	w := &world{T: t, cluster: cluster.ForTest(t, cluster.Options{
		Config:    fastStages(t),
		ExtraArgs: map[string][]string{cluster.ControllerManager: {"horizontal-pod-autoscaler-sync-period=1s"}},
	})}
	w.apply(fmt.Sprintf(classes, "gpu.nvidia.com"))
	w.apply(gpuConfiguration)
	process, err := sidecar.Start(t.Context(), w.cluster, "--config-map", "default/kwok-dra")
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, process.Kill()) })
	w.process = process
	w.apply(gpuNode)
	return w
}

// busy is the label pod of each series of utilization, and its value.
func (w *world) busy(s *samples) map[string]float64 {
	w.Helper()
	s.scrapeDevices(w.T, w.process.URL+"/metrics/devices")
	values := map[string]float64{}
	for _, sample := range s.query(w.T, `DCGM_FI_DEV_GPU_UTIL{namespace="default"}`, s.now) {
		require.Equal(w, "gpus", sample.Metric.Get("Hostname"))
		require.Equal(w, "main", sample.Metric.Get("container"))
		require.Equal(w, "NVIDIA H100 80GB HBM3", sample.Metric.Get("modelName"))
		values[sample.Metric.Get("pod")] = sample.F
	}
	return values
}

// TestMetricsOfDevices has Pods use GPUs on a real cluster, and asks Prometheus' engine what it has
// scraped.
func TestMetricsOfDevices(t *testing.T) {
	t.Parallel()
	w, s := gpuWorld(t), newSamples(t)
	w.apply(fmt.Sprintf(gpuPod, "steady", `"75"`, "40Gi"))
	w.apply(fmt.Sprintf(gpuPod, "wrong", "much", "50%"))
	want := map[string]float64{"steady": 75, "wrong": 0}
	w.eventually(func() string {
		if busy := w.busy(s); fmt.Sprint(busy) != fmt.Sprint(want) {
			return fmt.Sprintf("the GPUs are busy with %v, and not %v", busy, want)
		}
		return ""
	})
	for expression, want := range map[string]float64{
		`DCGM_FI_DEV_FB_USED{pod="steady"}`:             40960,
		`count(count by (UUID) (DCGM_FI_DEV_GPU_UTIL))`: 8,
		`sum(DCGM_FI_DEV_XID_ERRORS)`:                   0,
	} {
		found := s.query(t, expression, s.now)
		require.Len(t, found, 1, expression)
		require.InDelta(t, want, found[0].F, 0, expression)
	}
	w.eventually(func() string {
		events, err := w.cluster.Kubectl(t.Context(), "get", "events", "--field-selector", "reason=InvalidUsage", "-o", "jsonpath={.items[*].message}")
		require.NoError(t, err)
		if !strings.Contains(events, `pod default/wrong: annotation dra.kwok.x-k8s.io/usage-gpu "much"`) {
			return "there is no event: " + events
		}
		return ""
	})
	w.breaksGPU(s)
	w.answersKubeletQueries(s)
}

// breaksGPU has an idle GPU show the XID error of its taint.
func (w *world) breaksGPU(s *samples) {
	w.Helper()
	_, err := w.cluster.Kubectl(w.Context(), "annotate", "node", "gpus", "dra.kwok.x-k8s.io/device-taints=gpu-7:gpu.nvidia.com/xid=48:NoSchedule")
	require.NoError(w, err)
	w.eventually(func() string {
		s.scrapeDevices(w.T, w.process.URL+"/metrics/nodes/gpus/devices")
		if found := s.query(w.T, `DCGM_FI_DEV_XID_ERRORS{gpu="7"}`, s.now); len(found) != 1 || found[0].F != 48 {
			return fmt.Sprintf("the GPU has no XID error: %v", found)
		}
		return ""
	})
}

// answersKubeletQueries has the queries of clusterloader2's DRA test, and of Kubernetes' guide, find
// something.
func (w *world) answersKubeletQueries(s *samples) {
	w.Helper()
	s.scrape(w.T, w.process.URL)
	w.apply(fmt.Sprintf(gpuPod, "another", `"1"`, "1Gi"))
	_, err := w.cluster.Kubectl(w.Context(), "delete", "pod", "steady")
	require.NoError(w, err)
	for _, query := range []string{
		`dra_operations_duration_seconds_bucket{operation_name="PrepareResources"}`,
		`dra_operations_duration_seconds_bucket{operation_name="UnprepareResources"}`,
		`dra_grpc_operations_duration_seconds_bucket{method_name=~".*NodePrepareResources"}`,
		`dra_grpc_operations_duration_seconds_bucket{method_name=~".*NodeUnprepareResources"}`,
	} {
		w.eventually(func() string {
			s.scrape(w.T, w.process.URL)
			expression := "histogram_quantile(0.99, sum(increase(" + query + "[5m])) by (le))"
			// A series that begins has no increase, as in every Prometheus: the first scrape has it.
			if found := s.query(w.T, query, s.now); len(found) == 0 || len(s.query(w.T, expression, s.now)) == 0 {
				return "nothing is found for " + expression
			}
			return ""
		})
	}
	found := s.query(w.T, `dra_resource_claims_in_use`, s.now)
	names := map[string]bool{}
	for _, sample := range found {
		names[sample.Metric.Get("driver_name")] = true
	}
	require.Equal(w, map[string]bool{"<any>": true, "gpu.nvidia.com": true}, names)
}

const gpuConfiguration = `
apiVersion: v1
kind: ConfigMap
metadata: {name: kwok-dra, namespace: default}
data:
  all: |
    apiVersion: dra.kwok.x-k8s.io/v1alpha1
    kind: ResourcePoolTemplate
    metadata: {name: gpus}
    spec:
      driver: gpu.nvidia.com
      devices:
      - name: gpu
        count: 8
        attributes:
          uuid: "GPU-{{ uuid .Node.metadata.uid .Index }}"
          productName: NVIDIA H100 80GB HBM3
        capacity: {memory: 80Gi}
`

const gpuNode = `
apiVersion: v1
kind: Node
metadata: {name: gpus, annotations: {kwok.x-k8s.io/node: fake}}
`

// gpuPod is a Pod of that name with what its GPU does.
const gpuPod = `
apiVersion: v1
kind: Pod
metadata:
  name: %[1]s
  namespace: default
  annotations: {dra.kwok.x-k8s.io/usage-gpu: %[2]s, dra.kwok.x-k8s.io/usage-memory: %[3]s}
spec:
  resourceClaims: [{name: gpu, resourceClaimTemplateName: gpu}]
  containers:
  - {name: main, image: i, resources: {claims: [{name: gpu}]}}
`
