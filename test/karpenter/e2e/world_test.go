// Package e2e proves on real clusters that Karpenter makes nodes for Pods which
// claim devices, with kwok-dra and templates alone.
package e2e

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/kwok-dra/kwok-dra/test/cluster"
	"github.com/kwok-dra/kwok-dra/test/internal/admin"
	"github.com/kwok-dra/kwok-dra/test/internal/karpenter"
	"github.com/kwok-dra/kwok-dra/test/internal/sidecar"
	"github.com/kwok-dra/kwok-dra/test/karpenter/timeline"
)

// patience bounds what takes Karpenter its own time: it looks every 10 seconds
// for nodes that it can do without, and then thinks for 15. The rest is for a
// machine that is busy.
const patience = 6 * time.Minute

// longestPause is the longest time between two looks at what is waited for.
const longestPause = 500 * time.Millisecond

// profiles are those of the catalogue that the tests use.
var profiles = []string{"nvidia-h100", "nvidia-h100-mig", "nvidia-t4", "xilinx-u250", "amd-mi300x", "rdma-nic"}

// world is a cluster with the sidecar and Karpenter, which have the same
// templates.
type world struct {
	*testing.T
	cluster  *cluster.Cluster
	config   *rest.Config
	client   kubernetes.Interface
	timeline *timeline.Timeline
}

func newWorld(t *testing.T, options cluster.Options) *world {
	t.Helper()
	options.Config = stages(t)
	w := &world{T: t, cluster: cluster.ForTest(t, options)}
	var err error
	w.config, err = admin.Config(w.cluster.Kubeconfig())
	require.NoError(t, err)
	w.client, err = kubernetes.NewForConfig(w.config)
	require.NoError(t, err)

	kubeconfig, err := sidecar.ServiceAccount(t.Context(), w.cluster)
	require.NoError(t, err)
	_, err = w.cluster.Kubectl(t.Context(), "apply", "-k", filepath.Join(sidecar.Root(), "kustomize", "karpenter", "rbac"))
	require.NoError(t, err)
	arguments := []string{"--kubeconfig", kubeconfig, "--adapters", "NodeOverlay"}
	for _, path := range templates() {
		arguments = append(arguments, "--config", path)
	}
	_, err = sidecar.Start(t.Context(), w.cluster, arguments...)
	require.NoError(t, err)
	err = karpenter.Start(t.Context(), w.cluster, karpenter.Options{InstanceTypes: instanceTypes(), Templates: templates()})
	require.NoError(t, err)

	w.timeline, err = timeline.Watch(t.Context(), w.config, nil)
	require.NoError(t, err)
	w.applyDeviceClasses()
	w.apply("default", nodeClass)
	return w
}

// on returns the world for a subtest.
func (w *world) on(t *testing.T) *world {
	on := *w
	on.T = t
	return &on
}

// stages are kwok's fast Stages, but for pod-ready the project's own.
func stages(t *testing.T) []string {
	t.Helper()
	kwok, err := sidecar.ModuleDir(t.Context(), "sigs.k8s.io/kwok")
	require.NoError(t, err)
	stages := filepath.Join(kwok, "kustomize", "stage")
	return []string{
		filepath.Join(stages, "node", "fast", "node-initialize.yaml"),
		filepath.Join(stages, "pod", "fast", "pod-complete.yaml"),
		filepath.Join(stages, "pod", "fast", "pod-delete.yaml"),
		filepath.Join(sidecar.Root(), "stages", "pod", "fast", "pod-ready.yaml"),
	}
}

func templates() []string {
	var paths []string
	for _, profile := range profiles {
		paths = append(paths, filepath.Join(sidecar.Root(), "kustomize", "profiles", profile, "template.yaml"))
	}
	return paths
}

func instanceTypes() string {
	return filepath.Join(sidecar.Root(), "kustomize", "karpenter", "instance-types", "instance_types.json")
}

func (w *world) applyDeviceClasses() {
	w.Helper()
	files, err := filepath.Glob(filepath.Join(sidecar.Root(), "kustomize", "profiles", "*", "deviceclass.yaml"))
	require.NoError(w, err)
	files = append(files, filepath.Join(sidecar.Root(), "kustomize", "deviceclasses", "nvidia", "classes", "deviceclass.yaml"))
	_, err = w.cluster.Kubectl(w.Context(), "apply", "-f", strings.Join(files, ","))
	require.NoError(w, err)
}

// apply applies manifests in a namespace.
func (w *world) apply(namespace, documents string) {
	w.Helper()
	_, err := w.cluster.KubectlInput(w.Context(), strings.NewReader(documents), "-n", namespace, "apply", "-f", "-")
	require.NoError(w, err)
}

// scene makes a namespace of its own for a test, and its NodePools.
func (w *world) scene(namespace string, pools ...nodePool) {
	w.Helper()
	_, err := w.client.CoreV1().Namespaces().Create(w.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}, metav1.CreateOptions{})
	require.NoError(w, err)
	for _, pool := range pools {
		w.apply(namespace, pool.manifest(namespace))
	}
}

// await waits for a step of an object.
func (w *world) await(step timeline.Step, name string) timeline.Mark {
	w.Helper()
	ctx, cancel := context.WithTimeout(w.Context(), patience)
	defer cancel()
	mark, err := w.timeline.Await(ctx, step, name)
	require.NoError(w, err)
	return mark
}

// eventually waits until check returns "", which otherwise is what is missing.
func (w *world) eventually(check func() string) {
	w.Helper()
	deadline := time.Now().Add(patience)
	missing := check()
	for pause := 5 * time.Millisecond; missing != ""; pause += pause / 4 {
		if time.Now().After(deadline) {
			w.Fatalf("after %s: %s", patience, missing)
		}
		wait(w.Context(), min(pause, longestPause))
		missing = check()
	}
}

func wait(ctx context.Context, length time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(length):
	}
}

func (w *world) pods(namespace string) []corev1.Pod {
	w.Helper()
	list, err := w.client.CoreV1().Pods(namespace).List(w.Context(), metav1.ListOptions{})
	require.NoError(w, err)
	return list.Items
}

// running waits until that many Pods of a namespace run, and no others are there.
func (w *world) running(namespace string, count int) []corev1.Pod {
	w.Helper()
	var pods []corev1.Pod
	w.eventually(func() string {
		pods = w.pods(namespace)
		for _, pod := range pods {
			if pod.Status.Phase != corev1.PodRunning || pod.DeletionTimestamp != nil {
				return "Pod " + pod.Name + " does not run"
			}
		}
		if len(pods) != count {
			return fmt.Sprintf("there are %d Pods, not %d", len(pods), count)
		}
		return ""
	})
	return pods
}

// nodes are the nodes of a test.
func (w *world) nodes(namespace string) []corev1.Node {
	w.Helper()
	list, err := w.client.CoreV1().Nodes().List(w.Context(), metav1.ListOptions{LabelSelector: "scene=" + namespace})
	require.NoError(w, err)
	return list.Items
}

// nodesWith are those that any of the Pods is on.
func (w *world) nodesWith(pods []corev1.Pod, namespace string) []corev1.Node {
	w.Helper()
	return slices.DeleteFunc(w.nodes(namespace), func(node corev1.Node) bool {
		return !slices.ContainsFunc(pods, func(pod corev1.Pod) bool { return pod.Spec.NodeName == node.Name })
	})
}

// results are what the claims of a Pod got, by driver.
func (w *world) results(pod *corev1.Pod) map[string][]resourcev1.DeviceRequestAllocationResult {
	w.Helper()
	results := map[string][]resourcev1.DeviceRequestAllocationResult{}
	for _, status := range pod.Status.ResourceClaimStatuses {
		claim, err := w.client.ResourceV1().ResourceClaims(pod.Namespace).Get(w.Context(), *status.ResourceClaimName, metav1.GetOptions{})
		require.NoError(w, err)
		require.NotNil(w, claim.Status.Allocation)
		for _, result := range claim.Status.Allocation.Devices.Results {
			results[result.Driver] = append(results[result.Driver], result)
		}
	}
	return results
}

func (w *world) slicesOf(node string) []resourcev1.ResourceSlice {
	w.Helper()
	list, err := w.client.ResourceV1().ResourceSlices().List(w.Context(), metav1.ListOptions{FieldSelector: "spec.nodeName=" + node})
	require.NoError(w, err)
	return list.Items
}

// needs skips the test on releases before 1.<minor>, with the reason.
func (w *world) needs(minor int, reason string) {
	w.Helper()
	have := 0
	_, err := fmt.Sscanf(w.cluster.Versions().Kubernetes, "v1.%d.", &have)
	require.NoError(w, err)
	if have < minor {
		w.Skipf("Kubernetes 1.%d: %s", have, reason)
	}
}
