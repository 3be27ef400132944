package adapters

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kwok-dra/kwok-dra/test/e2e/harness"
)

const (
	adaptedDriver   = "karpenter.sh.dra-kwok-driver"
	adaptedResource = "karpenter.sh/dra-kwok-driver"
)

// mapped is the ConfigMap as Karpenter's design documents have it, of which the
// API server would take neither the driver's name nor that of an attribute.
func mapped(count int) string {
	return fmt.Sprintf(`
driver: karpenter.sh/dra-kwok-driver
mappings:
- name: gpu-t4-mapping
  nodeSelector:
    matchLabels: {node.kubernetes.io/instance-type: c-4x-amd64-linux}
  resourceSlice:
    devices:
    - name: nvidia-t4-0
      count: %d
      attributes: {type: nvidia-tesla-t4, memory: 16Gi, compute-capability: "7.5"}
`, count)
}

// TestAdaptedConfigMap has the life of a dra-kwok-configmap, from before there is
// one until after it has gone.
func TestAdaptedConfigMap(t *testing.T) {
	t.Parallel()
	h := newKarpenterHarness(t)
	typed(h, "short", "c-4x-amd64-linux")
	typed(h, longName, "c-4x-amd64-linux")
	typed(h, "other", "m-8x-amd64-linux")
	h.Configure("beside", harness.Template("beside", "beside.example.com", "karpenter", harness.GPUs(1)))
	process := adapting(h, "--config-map", "default/"+harness.ConfigMapName)
	h.Published("other", "beside.example.com", 1)

	mappings(h, mapped(2))
	const labels = "kwok.x-k8s.io/node"
	require.Equal(t, "short", pooled(h, "short", adaptedDriver, "short-device-pool", "nvidia-t4-0-0", "nvidia-t4-0-1")[0].Labels[labels])
	long := pooled(h, longName, adaptedDriver, longName+"-device-pool", "nvidia-t4-0-0", "nvidia-t4-0-1")[0]
	require.NotContains(t, long.Labels, labels, "it fits no label")
	require.Equal(t, "dra-kwok-driver", long.Labels["kwok.x-k8s.io/managed-by"])
	require.Equal(t, "7.5", *long.Spec.Devices[0].Attributes["compute_capability"].StringValue)
	require.Empty(t, h.Pool("other", adaptedDriver))
	told(h, "karpenter", "dra-kwok-configmap", "Normalized", `"karpenter.sh/dra-kwok-driver" is published as "karpenter.sh.dra-kwok-driver"`, `"compute_capability"`)

	t.Run("ExtendedResource", func(t *testing.T) { testAdaptedResource(h.On(t)) })
	t.Run("DeviceClass", func(t *testing.T) { testAdaptedClass(h.On(t)) })
	t.Run("Live", func(t *testing.T) { testAdaptedLive(h.On(t)) })
	t.Run("Labels", func(t *testing.T) { testRepairsLabels(h.On(t)) })

	require.NoError(t, process.Stop())
	written := func() int { return len(h.Writes("resourceslices")) + len(h.Writes("deviceclasses")) }
	before := written()
	adapting(h, "--config-map", "default/"+harness.ConfigMapName)
	h.Label("short", "seen", "yes")
	mappings(h, mapped(1))
	pooled(h, "short", adaptedDriver, "short-device-pool", "nvidia-t4-0-0")
	pooled(h, longName, adaptedDriver, longName+"-device-pool", "nvidia-t4-0-0")
	want := 2 // slices
	if harness.AlphaDevices() {
		want++ // the class, to see whether the API server still drops its extended resource
	}
	require.Equal(t, want, written()-before, "a restart writes nothing but what changes")
	require.Equal(t, 2, h.Events("dra-kwok-configmap", "Normalized"), "once for each of two contents, also over restarts")

	h.Kubectl("", "-n", "karpenter", "delete", "configmap", "dra-kwok-configmap")
	h.Eventually(harness.Patience, func() string {
		if n := len(h.Pool("short", adaptedDriver)) + len(h.Pool(longName, adaptedDriver)); n > 0 || class(h, adaptedDriver) != nil {
			return fmt.Sprintf("%d slices are left of the ConfigMap, and the class %v", n, class(h, adaptedDriver))
		}
		return ""
	})
	h.Published("other", "beside.example.com", 1)
}

// testAdaptedResource runs the Pod of the design document, with the limits that it
// lacks.
func testAdaptedResource(h *harness.H) {
	if harness.AlphaDevices() {
		told(h, "karpenter", "dra-kwok-configmap", "FieldsDropped", "extendedResourceName", "DRAExtendedResource")
		h.Skip("before Kubernetes 1.36 the feature gate DRAExtendedResource is off")
	}
	h.Eventually(harness.Patience, func() string {
		if class := class(h, adaptedDriver); class == nil || class.Spec.ExtendedResourceName == nil || *class.Spec.ExtendedResourceName != adaptedResource {
			return fmt.Sprintf("the DeviceClass is %v", class)
		}
		return ""
	})
	h.Kubectl("", "create", "namespace", "adapted")
	pod := harness.NewPod("pod", "karpenter")
	pod.Spec.NodeSelector = map[string]string{instanceType: "c-4x-amd64-linux"}
	one := corev1.ResourceList{adaptedResource: resource.MustParse("1")}
	pod.Spec.Containers[0].Resources = corev1.ResourceRequirements{Requests: one, Limits: one}
	h.Eventually(harness.Patience, func() string {
		_, err := h.Client.CoreV1().Pods("adapted").Create(h.Context(), pod, metav1.CreateOptions{})
		if err != nil {
			return err.Error() // until there is the ServiceAccount
		}
		return ""
	})
	running := h.Running("adapted", "pod")
	require.True(h, harness.IsReady(running))
	claim := h.Entries("adapted", running.Status.ExtendedResourceClaimStatus.ResourceClaimName, 1)
	require.Equal(h, adaptedDriver, claim.Status.Devices[0].Driver)
	h.DeletePod("adapted", "pod", 0)
	h.Gone("adapted", "pod")
}

// testAdaptedClass: the DeviceClass comes back and is repaired, and someone
// else's is left alone.
func testAdaptedClass(h *harness.H) {
	classes := h.Client.ResourceV1().DeviceClasses()
	isBack := func() string {
		if class := class(h, adaptedDriver); class == nil || class.Labels["dra.kwok.x-k8s.io/managed-by"] != "kwok-dra" ||
			!strings.Contains(class.Spec.Selectors[0].CEL.Expression, adaptedDriver) {
			return fmt.Sprintf("the DeviceClass is %v", class)
		}
		return ""
	}
	h.Eventually(harness.Patience, isBack)
	require.NoError(h, classes.Delete(h.Context(), adaptedDriver, metav1.DeleteOptions{}))
	h.Eventually(harness.Patience, isBack)
	edited := class(h, adaptedDriver)
	edited.Spec.Selectors[0].CEL.Expression = `device.driver == "edited"`
	_, err := classes.Update(h.Context(), edited, metav1.UpdateOptions{})
	require.NoError(h, err)
	h.Eventually(harness.Patience, isBack)

	mappings(h, strings.Replace(mapped(2), "/dra-kwok-driver", "/mine", 1))
	h.Eventually(harness.Patience, func() string {
		if class(h, adaptedDriver) != nil || class(h, "karpenter.sh.mine") == nil {
			return "the DeviceClass does not follow the ConfigMap"
		}
		return ""
	})
	mine := &resourcev1.DeviceClass{ObjectMeta: metav1.ObjectMeta{Name: adaptedDriver}, Spec: resourcev1.DeviceClassSpec{
		Selectors: []resourcev1.DeviceSelector{{CEL: &resourcev1.CELDeviceSelector{Expression: "false"}}},
	}}
	_, err = classes.Create(h.Context(), mine, metav1.CreateOptions{})
	require.NoError(h, err)
	mappings(h, mapped(2))
	told(h, "karpenter", "dra-kwok-configmap", "DeviceClassNotManaged", "DeviceClass "+adaptedDriver+" was not created by kwok-dra")
	require.Equal(h, "false", class(h, adaptedDriver).Spec.Selectors[0].CEL.Expression)
	require.NoError(h, classes.Delete(h.Context(), adaptedDriver, metav1.DeleteOptions{}))
	h.Eventually(harness.Patience, isBack)
}

// testAdaptedLive: the ConfigMap is watched, and one that is refused leaves the
// last good one in force.
func testAdaptedLive(h *harness.H) {
	mappings(h, mapped(3))
	pooled(h, "short", adaptedDriver, "short-device-pool", "nvidia-t4-0-0", "nvidia-t4-0-1", "nvidia-t4-0-2")
	mappings(h, mapped(-1))
	told(h, "karpenter", "dra-kwok-configmap", "InvalidConfiguration", "mappings[0].resourceSlice.devices[0].count")
	pooled(h, "short", adaptedDriver, "short-device-pool", "nvidia-t4-0-0", "nvidia-t4-0-1", "nvidia-t4-0-2")
	mappings(h, mapped(2))
	pooled(h, "short", adaptedDriver, "short-device-pool", "nvidia-t4-0-0", "nvidia-t4-0-1")
}

// testRepairsLabels: a label that is edited or taken away comes back, and one
// that someone has added stays.
func testRepairsLabels(h *harness.H) {
	slice := h.Pool("short", adaptedDriver)[0]
	h.PatchSlice(slice.Name, "application/merge-patch+json", `{"metadata": {"labels": {"kwok.x-k8s.io/node": "edited", "kwok.x-k8s.io/managed-by": null, "mine": "yes"}}}`)
	h.Eventually(harness.Patience, func() string {
		labels := h.Pool("short", adaptedDriver)[0].Labels
		if labels["kwok.x-k8s.io/node"] != "short" || labels["kwok.x-k8s.io/managed-by"] != "dra-kwok-driver" || labels["mine"] != "yes" {
			return fmt.Sprintf("the labels are %v", labels)
		}
		return ""
	})
}
