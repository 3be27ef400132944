package dashboards

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	"github.com/stretchr/testify/require"
)

// TestAutoscaler has the controller manager's HorizontalPodAutoscaler scale a Deployment by what its
// GPUs do, up and down.
func TestAutoscaler(t *testing.T) {
	t.Parallel()
	w := gpuWorld(t)
	server := httptest.NewTLSServer(&customMetrics{w})
	t.Cleanup(server.Close)
	address, err := url.Parse(server.URL)
	require.NoError(t, err)
	w.apply(fmt.Sprintf(metricsAPI, address.Port()))
	w.apply(serving)
	w.replicas(3, "90 % are more than 60 %")
	_, err = w.cluster.Kubectl(t.Context(), "annotate", "pods", "-l", "app=serving", "--overwrite", "dra.kwok.x-k8s.io/usage-gpu=20")
	require.NoError(t, err)
	w.replicas(1, "20 % are less than 60 %")
}

// replicas waits until the Deployment has that many Pods that run.
func (w *world) replicas(want int, why string) {
	w.Helper()
	w.eventually(func() string {
		pods, err := w.cluster.Kubectl(w.Context(), "get", "pods", "-l", "app=serving", "--field-selector", "status.phase=Running", "-o", "name")
		require.NoError(w, err)
		if got := len(strings.Fields(pods)); got != want {
			state, err := w.cluster.Kubectl(w.Context(), "get", "hpa", "serving", "-o", "jsonpath={.status}")
			require.NoError(w, err)
			return fmt.Sprintf("%d Pods run, and not %d: %s: %s", got, want, why, state)
		}
		return ""
	})
}

const customMetricsVersion = "custom.metrics.k8s.io/v1beta2"

// customMetrics serves the API of metrics of Pods from what kwok-dra serves, as an adapter does from
// what a Prometheus has scraped.
type customMetrics struct{ *world }

// ServeHTTP implements http.Handler.
func (m *customMetrics) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	// /apis/GROUP/VERSION/namespaces/NAMESPACE/pods/*/METRIC
	path, ok := strings.CutPrefix(r.URL.Path, "/apis/"+customMetricsVersion)
	parts := strings.Split(path, "/")
	var answer any
	var err error
	switch {
	case ok && path == "":
		answer = map[string]any{"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": customMetricsVersion, "resources": []any{
			map[string]any{"name": "pods/DCGM_FI_DEV_GPU_UTIL", "singularName": "", "namespaced": true, "kind": "MetricValueList", "verbs": []string{"get"}},
		}}
	case ok && len(parts) == 6 && parts[3] == "pods" && parts[4] == "*":
		answer, err = m.values(r, parts[2], parts[5])
	default:
		http.NotFound(w, r)
		return
	}
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(answer)
}

// values are those of a metric of the Pods that the request selects.
func (m *customMetrics) values(r *http.Request, namespace, metric string) (any, error) {
	names, err := m.cluster.Kubectl(r.Context(), "-n", namespace, "get", "pods", "-l", r.URL.Query().Get("labelSelector"), "-o", "jsonpath={.items[*].metadata.name}")
	if err != nil {
		return nil, err
	}
	request, err := http.NewRequestWithContext(r.Context(), http.MethodGet, m.process.URL+"/metrics/devices", nil)
	if err != nil {
		return nil, err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return nil, err
	}
	defer func() { _ = response.Body.Close() }()
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(response.Body)
	if err != nil {
		return nil, err
	}
	items := []any{}
	for _, sample := range families[metric].GetMetric() {
		of := map[string]string{}
		for _, label := range sample.GetLabel() {
			of[label.GetName()] = label.GetValue()
		}
		if of["namespace"] == namespace && slices.Contains(strings.Fields(names), of["pod"]) {
			items = append(items, map[string]any{
				"describedObject": map[string]string{"kind": "Pod", "apiVersion": "v1", "namespace": namespace, "name": of["pod"]},
				"metric":          map[string]string{"name": metric},
				"timestamp":       time.Now().UTC().Format(time.RFC3339),
				"value":           fmt.Sprint(sample.GetGauge().GetValue()),
			})
		}
	}
	return map[string]any{"kind": "MetricValueList", "apiVersion": customMetricsVersion, "metadata": map[string]any{}, "items": items}, nil
}

// metricsAPI has the API server ask a port of this machine for the metrics.
const metricsAPI = `
apiVersion: v1
kind: Service
metadata: {name: custom-metrics, namespace: default}
spec: {type: ExternalName, externalName: localhost, ports: [{port: %[1]s}]}
---
apiVersion: apiregistration.k8s.io/v1
kind: APIService
metadata: {name: v1beta2.custom.metrics.k8s.io}
spec:
  group: custom.metrics.k8s.io
  version: v1beta2
  groupPriorityMinimum: 100
  versionPriority: 100
  insecureSkipTLSVerify: true
  service: {name: custom-metrics, namespace: default, port: %[1]s}
`

const serving = `
apiVersion: apps/v1
kind: Deployment
metadata: {name: serving, namespace: default}
spec:
  replicas: 1
  selector: {matchLabels: {app: serving}}
  template:
    metadata: {labels: {app: serving}, annotations: {dra.kwok.x-k8s.io/usage-gpu: "90"}}
    spec:
      resourceClaims: [{name: gpu, resourceClaimTemplateName: gpu}]
      containers:
      - {name: main, image: i, resources: {claims: [{name: gpu}]}}
---
apiVersion: autoscaling/v2
kind: HorizontalPodAutoscaler
metadata: {name: serving, namespace: default}
spec:
  scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: serving}
  minReplicas: 1
  maxReplicas: 3
  behavior: {scaleDown: {stabilizationWindowSeconds: 0}}
  metrics:
  - type: Pods
    pods: {metric: {name: DCGM_FI_DEV_GPU_UTIL}, target: {type: AverageValue, averageValue: "60"}}
`
