package publish

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kwok-dra/kwok-dra/test/cluster"
	"github.com/kwok-dra/kwok-dra/test/e2e/harness"
)

// TestDriverPodFaults has the general and chaos Stages break the plugins of a release.
func TestDriverPodFaults(t *testing.T) {
	t.Parallel()
	failed := harness.KwokFile(t, "kustomize/stage/pod/chaos/pod-container-running-failed.yaml")
	h := harness.New(t, cluster.Options{Audit: true, Config: append(harness.GeneralStages(t), failed)})
	h.Sidecar()
	h.ConfigureGeneral(2 * time.Second)
	h.Configure("chart", chart)
	h.CreateNodes("gpu", 3)
	driver := release{h, "driver", "driver.example.com"}
	seen := record(driver)
	driver.install("gpu")
	seen.wait("v1", 3)

	broken := driver.badImage(seen)
	driver.patch(`{"metadata": {"labels": {"pod-image-pull-fail.stage.kwok.x-k8s.io": null}}, "spec": {"containers": [{"name": "plugin", "image": "example.com/plugin:v1"}]}}`)
	seen.wait("v1", 3)

	crashed := driver.on(broken)
	h.PatchPod(driver.name, crashed.Name, `{"metadata": {"labels": {"pod-container-running-failed.stage.kwok.x-k8s.io": "true"}}}`)
	h.Eventually(harness.Patience, func() string {
		if pod := driver.on(broken); pod == nil || pod.UID == crashed.UID || readySince(pod) == nil {
			return "the Pod that has failed is not replaced"
		}
		return ""
	})
	seen.wait("v1", 3)
	seen.check()

	driver.crash("gpu-0")
	driver.restartKubelet("gpu-1")
}

// badImage updates the DaemonSet to an image that cannot be pulled, and returns the node on
// which the update is stuck.
func (r release) badImage(seen *history) string {
	r.h.Helper()
	r.patch(`{"metadata": {"labels": {"pod-image-pull-fail.stage.kwok.x-k8s.io": "true"}}, "spec": {"containers": [{"name": "plugin", "image": "example.com/plugin:v9"}]}}`)
	seen.wait("v1", 2)
	set, err := r.h.Client.AppsV1().DaemonSets(r.name).Get(r.h.Context(), "plugin", metav1.GetOptions{})
	require.NoError(r.h, err)
	require.EqualValues(r.h, 1, set.Status.NumberUnavailable, "the update is stuck")
	require.EqualValues(r.h, 1, set.Status.UpdatedNumberScheduled)
	for _, pod := range r.pods() {
		if versionOf(&pod) == "v9" {
			require.Equal(r.h, corev1.PodPending, pod.Status.Phase)
			require.Equal(r.h, "ImagePullBackOff", pod.Status.ContainerStatuses[0].State.Waiting.Reason)
			require.Empty(r.h, r.h.SlicesOf(pod.Spec.NodeName))
			return pod.Spec.NodeName
		}
	}
	r.h.Fatal("no Pod has the bad image")
	return ""
}

// crash has the plugin of a node crash by the condition PluginRegistered, and come back.
func (r release) crash(node string) {
	r.h.Helper()
	const stage = "node-dra-plugin-crash.stage.kwok.x-k8s.io"
	pod := r.on(node)
	r.h.PatchMetadata(node, "annotations", stage+"/delay", "500ms")
	r.h.Label(node, stage, "true")
	r.h.Retired(node)
	r.h.Label(node, stage, nil)
	r.h.Published(node, r.driver, 8)
	require.Equal(r.h, pod.ResourceVersion, r.on(node).ResourceVersion, "the Pod runs all along")
}

// restartKubelet has a kubelet delete the slices of its node, and the plugin publish them again.
func (r release) restartKubelet(node string) {
	r.h.Helper()
	before := r.h.SlicesOf(node)
	r.h.Label(node, "node-kubelet-restart.stage.kwok.x-k8s.io", "true")
	r.h.Eventually(harness.Patience, func() string {
		after := r.h.SlicesOf(node)
		if len(after) == 1 && after[0].UID != before[0].UID {
			return ""
		}
		return fmt.Sprintf("node %s has %d slices, and wants a new one", node, len(after))
	})
	require.Equal(r.h, versionsOf(before[0].Spec.Devices), pool{"": &r.h.SlicesOf(node)[0]}.versions())
}

// on is the driver Pod on a node, or nil.
func (r release) on(node string) *corev1.Pod {
	r.h.Helper()
	for _, pod := range r.pods() {
		if pod.Spec.NodeName == node && pod.DeletionTimestamp == nil {
			return &pod
		}
	}
	return nil
}
