package publish

import (
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/kwok-dra/kwok-dra/test/cluster"
	"github.com/kwok-dra/kwok-dra/test/e2e/harness"
)

// chart serves all releases of a chart, which name their drivers.
const chart = `
apiVersion: dra.kwok.x-k8s.io/v1alpha1
kind: ResourcePoolTemplate
metadata: {name: chart}
spec:
  driver: '{{ .DriverPod.env.DRIVER_NAME }}'
  driverPod: {selector: {matchLabels: {app: plugin}}}
  devices: [{name: gpu, count: 8, attributes: {version: {string: '{{ .DriverPod.tag }}'}}}]
`

// TestDriverPods has the controller-manager make the Pods of two releases of a chart.
func TestDriverPods(t *testing.T) {
	t.Parallel()
	h := harness.New(t, cluster.Options{Audit: true, Config: harness.FastStages(t)})
	process := h.Sidecar()
	h.Configure("chart", chart)
	h.CreateNode("a", "gpu")
	h.CreateNode("b", "gpu")
	h.CreateNode("c", "other")
	first, second := release{h, "first", "first.example.com"}, release{h, "second", "second.example.com"}
	seen, other := record(first), record(second)
	first.install("gpu")
	first.published("v1", "a", "b")
	second.install("other")
	second.published("v1", "c")
	require.Empty(t, h.Pool("c", first.driver), "its node selector leaves this node out")

	first.upgrade("v2")
	seen.wait("v2", 2)
	first.published("v2", "a", "b")

	require.NoError(t, process.Kill())
	before := h.AllSlices()
	h.Sidecar()
	second.upgrade("v2")
	second.published("v2", "c")
	for _, slice := range before {
		if slice.Spec.Driver == first.driver {
			require.Contains(t, h.AllSlices(), slice, "a restart writes nothing")
		}
	}

	h.Label("b", "kind", "other")
	seen.wait("v2", 1)
	first.published("v2", "a")
	second.published("v2", "b", "c")

	first.uninstall()
	seen.wait("v2", 0)
	other.wait("v2", 2)
	seen.check()
	other.check()
}

// TestAsManySlicesAsDriverPods does what clusterloader2 does with the chart of its driver, and
// looks at all moments, not only at those at which it counts.
func TestAsManySlicesAsDriverPods(t *testing.T) {
	t.Parallel()
	const nodes = 10
	stages := append(harness.StageFiles(t, "pod/general"), harness.KwokFile(t, "kustomize/stage/node/fast/node-initialize.yaml"))
	h := harness.New(t, cluster.Options{Audit: true, Config: stages})
	h.Sidecar()
	h.Configure("chart", chart)
	h.CreateNodes("gpu", nodes)
	driver := release{h, "driver", "driver.example.com"}
	seen := record(driver)
	driver.install("gpu")
	seen.wait("v1", nodes)
	require.Len(t, h.AllSlices(), driver.running())

	driver.uninstall()
	h.Eventually(harness.Patience, func() string {
		_, err := h.Client.CoreV1().Namespaces().Get(t.Context(), driver.name, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return ""
		}
		return "the namespace is still there"
	})
	seen.wait("v1", 0)
	require.Empty(t, h.AllSlices())
	seen.check()
}

// release is one of a chart, in a namespace of its own.
type release struct {
	h            *harness.H
	name, driver string
}

// install makes the DaemonSet of the driver for a kind of nodes.
func (r release) install(kind string) {
	r.h.Helper()
	_, err := r.h.Client.CoreV1().Namespaces().Create(r.h.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: r.name}}, metav1.CreateOptions{})
	require.NoError(r.h, err)
	labels := map[string]string{"app": "plugin"}
	_, err = r.h.Client.AppsV1().DaemonSets(r.name).Create(r.h.Context(), &appsv1.DaemonSet{
		ObjectMeta: metav1.ObjectMeta{Name: "plugin"},
		Spec: appsv1.DaemonSetSpec{
			Selector:       &metav1.LabelSelector{MatchLabels: labels},
			UpdateStrategy: appsv1.DaemonSetUpdateStrategy{RollingUpdate: &appsv1.RollingUpdateDaemonSet{MaxUnavailable: new(intstr.FromString("10%"))}},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec: corev1.PodSpec{
					NodeSelector: map[string]string{"kind": kind},
					Containers:   []corev1.Container{{Name: "plugin", Image: "example.com/plugin:v1", Env: []corev1.EnvVar{{Name: "DRIVER_NAME", Value: r.driver}}}},
				},
			},
		},
	}, metav1.CreateOptions{})
	require.NoError(r.h, err)
}

// upgrade gives the DaemonSet another image.
func (r release) upgrade(tag string) {
	r.h.Helper()
	r.patch(fmt.Sprintf(`{"spec": {"containers": [{"name": "plugin", "image": "example.com/plugin:%s"}]}}`, tag))
}

// patch patches the template of the Pods.
func (r release) patch(template string) {
	r.h.Helper()
	patch := fmt.Sprintf(`{"spec": {"template": %s}}`, template)
	_, err := r.h.Client.AppsV1().DaemonSets(r.name).Patch(r.h.Context(), "plugin", types.StrategicMergePatchType, []byte(patch), metav1.PatchOptions{})
	require.NoError(r.h, err)
}

// uninstall deletes the namespace.
func (r release) uninstall() {
	r.h.Helper()
	require.NoError(r.h, r.h.Client.CoreV1().Namespaces().Delete(r.h.Context(), r.name, metav1.DeleteOptions{}))
}

// pods are the driver Pods.
func (r release) pods() []corev1.Pod {
	r.h.Helper()
	list, err := r.h.Client.CoreV1().Pods(r.name).List(r.h.Context(), metav1.ListOptions{})
	require.NoError(r.h, err)
	return list.Items
}

// running counts the driver Pods that run.
func (r release) running() int {
	r.h.Helper()
	return len(slices.DeleteFunc(r.pods(), func(pod corev1.Pod) bool { return pod.Status.Phase != corev1.PodRunning }))
}

// published waits until the driver has one slice of that version on each node that has a
// Pod of it, and on no other.
func (r release) published(tag string, nodes ...string) {
	r.h.Helper()
	r.h.Eventually(harness.Patience, func() string {
		if all := r.h.SlicesBy(r.driver); len(all) != len(nodes) {
			return fmt.Sprintf("%d slices of %s", len(all), r.driver)
		}
		for _, node := range nodes {
			pool := r.h.Pool(node, r.driver)
			if len(pool) != 1 || *pool[0].Spec.Devices[0].Attributes["version"].StringValue != tag {
				return fmt.Sprintf("no slice of %s %s on node %s", r.driver, tag, node)
			}
		}
		return ""
	})
}
