package dashboards

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	monitoringv1 "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/yaml"

	"github.com/kwok-dra/kwok-dra/test/internal/sidecar"
)

// testConfigMap applies the dashboard alone to a cluster without the operator.
func testConfigMap(t *testing.T, w *world) {
	_, err := w.cluster.Kubectl(t.Context(), "--namespace", "kube-public", "apply", "-k", path())
	require.NoError(t, err)
	var configMap corev1.ConfigMap
	text, err := w.cluster.Kubectl(t.Context(), "--namespace", "kube-public", "get", "configmap", "kwok-dra-dashboard", "-o", "yaml")
	require.NoError(t, err)
	require.NoError(t, yaml.Unmarshal([]byte(text), &configMap))
	require.Equal(t, "1", configMap.Labels["grafana_dashboard"])
	require.Equal(t, map[string]string{"kwok-dra.json": string(read(t, path("kwok-dra.json")))}, configMap.Data)
}

// testOperator has the operator's types take what is for the operator, and the
// PodMonitor select the port of the sidecar.
func testOperator(t *testing.T, w *world) {
	var monitor monitoringv1.PodMonitor
	var rule monitoringv1.PrometheusRule
	for _, document := range build(t, w, path("prometheus-operator")) {
		var meta metav1.TypeMeta
		require.NoError(t, yaml.Unmarshal(document, &meta))
		require.Equal(t, monitoringv1.SchemeGroupVersion.String(), meta.APIVersion)
		switch meta.Kind {
		case monitoringv1.PodMonitorsKind:
			require.NoError(t, yaml.UnmarshalStrict(document, &monitor))
		case monitoringv1.PrometheusRuleKind:
			require.NoError(t, yaml.UnmarshalStrict(document, &rule))
		default:
			t.Fatalf("there is a %s", meta.Kind)
		}
	}
	require.Equal(t, "kube-system", monitor.Namespace)
	require.NotEmpty(t, rule.Spec.Groups)
	require.Len(t, monitor.Spec.PodMetricsEndpoints, 2)
	endpoint, devices := monitor.Spec.PodMetricsEndpoints[0], monitor.Spec.PodMetricsEndpoints[1]
	require.Equal(t, []monitoringv1.RelabelConfig{{TargetLabel: "job", Replacement: new(jobName)}}, endpoint.RelabelConfigs)
	require.Equal(t, endpoint.Port, devices.Port)
	require.Equal(t, "/metrics/devices", devices.Path)
	require.True(t, devices.HonorLabels, "the labels of Pods are those that have the devices")

	pod := sidecarPod(t, w)
	selector, err := metav1.LabelSelectorAsSelector(&monitor.Spec.Selector)
	require.NoError(t, err)
	require.True(t, selector.Matches(labels.Set(pod.Labels)))
	var ports []string
	for _, container := range pod.Spec.Containers {
		for _, port := range container.Ports {
			ports = append(ports, port.Name)
		}
	}
	require.Contains(t, ports, *endpoint.Port)
}

// kwok is what of kwok's Deployment matters here.
const kwok = `
apiVersion: apps/v1
kind: Deployment
metadata: {name: kwok-controller, namespace: kube-system, labels: {app: kwok-controller}}
spec:
  selector: {matchLabels: {app: kwok-controller}}
  template:
    metadata: {labels: {app: kwok-controller}}
    spec: {containers: [{name: kwok-controller, image: kwok}]}
`

// sidecarPod is what the component with the sidecar makes of kwok's Pods.
func sidecarPod(t *testing.T, w *world) corev1.PodTemplateSpec {
	t.Helper()
	directory, err := filepath.EvalSymlinks(t.TempDir())
	require.NoError(t, err)
	component, err := filepath.Rel(directory, filepath.Join(sidecar.Root(), "kustomize", "sidecar"))
	require.NoError(t, err)
	for file, content := range map[string]string{
		"kwok.yaml":          kwok,
		"kustomization.yaml": "resources: [kwok.yaml]\ncomponents: [" + component + "]\n",
	} {
		require.NoError(t, os.WriteFile(filepath.Join(directory, file), []byte(content), 0o600))
	}
	var deployment appsv1.Deployment
	for _, document := range build(t, w, directory) {
		if strings.Contains(string(document), "\nkind: Deployment\n") {
			require.NoError(t, yaml.UnmarshalStrict(document, &deployment))
		}
	}
	return deployment.Spec.Template
}

// build builds a kustomization.
func build(t *testing.T, w *world, directory string) [][]byte {
	t.Helper()
	text, err := w.cluster.Kubectl(t.Context(), "kustomize", directory)
	require.NoError(t, err)
	var documents [][]byte
	for document := range strings.SplitSeq(text, "\n---\n") {
		documents = append(documents, []byte(document))
	}
	return documents
}
