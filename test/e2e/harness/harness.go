// Package harness is what the tests of kwok-dra on real clusters share: a
// cluster with the sidecar as its own process, nodes, templates, claims and Pods,
// and ways to wait for what becomes of them.
//
//	h := harness.New(t, cluster.Options{})
//	h.Configure("gpus", harness.Template("gpus", harness.Driver, "gpu", harness.GPUs(8)))
//	h.Sidecar()
//	h.CreateNode("node-0", "gpu")
//	h.Published("node-0", harness.Driver, 8)
//
// Tests that only need nodes and names of their own share a cluster: they are
// subtests, each with h.On(t).
package harness

import (
	"context"
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	"github.com/kwok-dra/kwok-dra/test/cluster"
	"github.com/kwok-dra/kwok-dra/test/internal/admin"
	"github.com/kwok-dra/kwok-dra/test/internal/sidecar"
)

const (
	// Patience is how long something takes that will never happen, however busy the
	// machine. No test tells by it whether anything is fast.
	Patience = 5 * time.Minute
	// FleetPatience is Patience for hundreds of nodes or Pods.
	FleetPatience = 10 * time.Minute
	// longestPause is the longest time between two looks at what is waited for.
	longestPause = 500 * time.Millisecond
)

// H is a cluster and what tests do with it.
type H struct {
	API
	Nodes
	Pods
	Claims
	Slices
	Audit
	Cluster *cluster.Cluster
	// Kubeconfig is that of the ServiceAccount of the sidecar.
	Kubeconfig string
}

// API is a test's way to the API server.
type API struct {
	*testing.T
	// Client is the administrator's, without a limit on requests.
	Client kubernetes.Interface
}

// New starts a cluster, which ends with the test.
func New(t *testing.T, options cluster.Options) *H {
	t.Helper()
	c := cluster.ForTest(t, options)
	client, err := admin.NewClient(c.Kubeconfig())
	require.NoError(t, err)
	kubeconfig, err := sidecar.ServiceAccount(t.Context(), c)
	require.NoError(t, err)
	return newHarness(t, client, c, kubeconfig)
}

func newHarness(t *testing.T, client kubernetes.Interface, c *cluster.Cluster, kubeconfig string) *H {
	api := API{t, client}
	return &H{api, Nodes{api}, Pods{api}, Claims{api}, Slices{api}, Audit{t, c}, c, kubeconfig}
}

// On returns the harness for a subtest.
func (h *H) On(t *testing.T) *H {
	return newHarness(t, h.Client, h.Cluster, h.Kubeconfig)
}

// ConfigMapName is the ConfigMap in the namespace default that the sidecar reads.
const ConfigMapName = "kwok-dra"

// Sidecar starts the sidecar with the ConfigMap that configure writes.
func (h *H) Sidecar(arguments ...string) *sidecar.Process {
	h.Helper()
	all := append([]string{"--kubeconfig", h.Kubeconfig, "--config-map", "default/" + ConfigMapName}, arguments...)
	process, err := sidecar.Start(h.Context(), h.Cluster, all...)
	require.NoError(h, err)
	h.Cleanup(func() { require.NoError(h, process.Kill()) })
	return process
}

// Configure puts documents under a key of the ConfigMap, in place of the ones
// that were there.
func (h *H) Configure(key, documents string) {
	h.Helper()
	configMaps := h.Client.CoreV1().ConfigMaps("default")
	_, err := configMaps.Create(h.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: ConfigMapName}}, metav1.CreateOptions{})
	if !apierrors.IsAlreadyExists(err) {
		require.NoError(h, err)
	}
	patch, err := json.Marshal(map[string]any{"data": map[string]string{key: documents}})
	require.NoError(h, err)
	_, err = configMaps.Patch(h.Context(), ConfigMapName, types.MergePatchType, patch, metav1.PatchOptions{})
	require.NoError(h, err)
}

// Eventually waits until check returns "", which otherwise is what is missing.
// It asks less and less often, so that asking is not what slows the cluster.
func (a API) Eventually(within time.Duration, check func() string) {
	a.Helper()
	deadline := time.Now().Add(within)
	missing := check()
	for pause := 5 * time.Millisecond; missing != ""; pause += pause / 4 {
		if time.Now().After(deadline) {
			a.Fatalf("after %s: %s", within, missing)
		}
		Wait(a.Context(), min(pause, time.Until(deadline), longestPause))
		missing = check()
	}
}

// Wait returns after the delay, or when the context has ended.
func Wait(ctx context.Context, delay time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(delay):
	}
}

// Events counts the events of a reason about an object.
func (a API) Events(object, reason string) int {
	a.Helper()
	list, err := a.Client.CoreV1().Events("").List(a.Context(), metav1.ListOptions{
		FieldSelector: "involvedObject.name=" + object + ",reason=" + reason,
	})
	require.NoError(a, err)
	count := 0
	for _, event := range list.Items {
		count += int(max(event.Count, 1))
	}
	return count
}

// Metric returns the sum of a metric's series that have the labels.
func (h *H) Metric(process *sidecar.Process, name string, labels ...string) float64 {
	h.Helper()
	value, err := process.Metric(h.Context(), name, labels...)
	require.NoError(h, err)
	return value
}
