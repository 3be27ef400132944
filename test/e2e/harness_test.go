// Package e2e proves on real clusters what kwok-dra promises: a real API
// server, scheduler, controller manager and kwok, and the sidecar as its own
// process.
package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/kwok-dra/kwok-dra/test/cluster"
	"github.com/kwok-dra/kwok-dra/test/sidecar"
)

const (
	// soon bounds what users wait for: a repair, a new node's slices.
	soon = 2 * time.Second
	// patience bounds what has no promised time.
	patience = time.Minute
	// fleetPatience bounds what is done for hundreds of nodes or Pods.
	fleetPatience = 10 * time.Minute
	// longestPause is the longest time between two looks at what is waited for.
	longestPause = 500 * time.Millisecond
)

// harness is a cluster and what tests do with it.
type harness struct {
	*testing.T
	cluster *cluster.Cluster
	client  kubernetes.Interface
	// kubeconfig is that of the ServiceAccount of the sidecar.
	kubeconfig string
}

func newHarness(t *testing.T, options cluster.Options) *harness {
	t.Helper()
	c := cluster.ForTest(t, options)
	config, err := clientcmd.BuildConfigFromFlags("", c.Kubeconfig())
	require.NoError(t, err)
	config.QPS = -1
	client, err := kubernetes.NewForConfig(config)
	require.NoError(t, err)
	kubeconfig, err := sidecar.ServiceAccount(t.Context(), c)
	require.NoError(t, err)
	return &harness{T: t, cluster: c, client: client, kubeconfig: kubeconfig}
}

// on returns the harness for a subtest.
func (h *harness) on(t *testing.T) *harness {
	on := *h
	on.T = t
	return &on
}

const configMapName = "kwok-dra"

// sidecar starts the sidecar with the ConfigMap that configure writes.
func (h *harness) sidecar(arguments ...string) *sidecar.Process {
	h.Helper()
	all := append([]string{"--kubeconfig", h.kubeconfig, "--config-map", "default/" + configMapName}, arguments...)
	process, err := sidecar.Start(h.Context(), h.cluster, all...)
	require.NoError(h, err)
	h.Cleanup(func() { require.NoError(h, process.Kill()) })
	return process
}

// configure puts documents under a key of the ConfigMap, in place of the ones
// that were there.
func (h *harness) configure(key, documents string) {
	h.Helper()
	configMaps := h.client.CoreV1().ConfigMaps("default")
	_, err := configMaps.Create(h.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: configMapName}}, metav1.CreateOptions{})
	if !apierrors.IsAlreadyExists(err) {
		require.NoError(h, err)
	}
	patch, err := json.Marshal(map[string]any{"data": map[string]string{key: documents}})
	require.NoError(h, err)
	_, err = configMaps.Patch(h.Context(), configMapName, types.MergePatchType, patch, metav1.PatchOptions{})
	require.NoError(h, err)
}

// template is a ResourcePoolTemplate for nodes with the label kind=<kind>.
func template(name, driver, kind, devices string) string {
	return fmt.Sprintf(`
apiVersion: dra.kwok.x-k8s.io/v1alpha1
kind: ResourcePoolTemplate
metadata: {name: %s}
spec:
  driver: %s
  nodeSelector: {nodeSelectorTerms: [{matchExpressions: [{key: kind, operator: In, values: [%s]}]}]}
  devices: %s
---
`, name, driver, kind, devices)
}

func (h *harness) createNode(name, kind string) *corev1.Node {
	h.Helper()
	node, err := h.client.CoreV1().Nodes().Create(h.Context(), fakeNode(name, kind), metav1.CreateOptions{})
	require.NoError(h, err)
	return node
}

func fakeNode(name, kind string) *corev1.Node {
	return &corev1.Node{ObjectMeta: metav1.ObjectMeta{
		Name:        name,
		Labels:      map[string]string{"kind": kind},
		Annotations: map[string]string{"kwok.x-k8s.io/node": "fake"},
	}}
}

func (h *harness) deleteNode(name string) {
	h.Helper()
	require.NoError(h, h.client.CoreV1().Nodes().Delete(h.Context(), name, metav1.DeleteOptions{}))
}

func (h *harness) label(node, key string, value any) {
	h.Helper()
	h.patchMetadata(node, "labels", key, value)
}

func (h *harness) patchMetadata(node, field, key string, value any) {
	h.Helper()
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{field: map[string]any{key: value}}})
	require.NoError(h, err)
	_, err = h.client.CoreV1().Nodes().Patch(h.Context(), node, types.MergePatchType, patch, metav1.PatchOptions{})
	require.NoError(h, err)
}

// slicesOf lists the slices of a node, by name.
func (h *harness) slicesOf(node string) []resourcev1.ResourceSlice {
	h.Helper()
	list, err := h.client.ResourceV1().ResourceSlices().List(h.Context(), metav1.ListOptions{FieldSelector: "spec.nodeName=" + node})
	require.NoError(h, err)
	return list.Items
}

func (h *harness) patchSlice(name string, kind types.PatchType, patch string) {
	h.Helper()
	_, err := h.client.ResourceV1().ResourceSlices().Patch(h.Context(), name, kind, []byte(patch), metav1.PatchOptions{})
	require.NoError(h, err)
}

// eventually waits until check returns "", which otherwise is what is missing.
// It asks less and less often, so that asking is not what slows the cluster.
func (h *harness) eventually(within time.Duration, check func() string) {
	h.Helper()
	deadline := time.Now().Add(within)
	missing := check()
	for pause := 5 * time.Millisecond; missing != ""; pause += pause / 4 {
		if time.Now().After(deadline) {
			h.Fatalf("after %s: %s", within, missing)
		}
		wait(h.Context(), min(pause, time.Until(deadline), longestPause))
		missing = check()
	}
}

func wait(ctx context.Context, delay time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(delay):
	}
}

// complete says what is missing for the node to have, of each driver, one
// complete pool with that many devices.
func (h *harness) complete(node string, devices map[string]int) string {
	h.Helper()
	return completeNode(node, h.slicesOf(node), devices)
}

func completeNode(node string, all []resourcev1.ResourceSlice, devices map[string]int) string {
	byDriver := map[string][]resourcev1.ResourceSlice{}
	for _, slice := range all {
		byDriver[slice.Spec.Driver] = append(byDriver[slice.Spec.Driver], slice)
	}
	if len(byDriver) != len(devices) {
		return fmt.Sprintf("node %s has slices of %d drivers, want %d", node, len(byDriver), len(devices))
	}
	for driver, want := range devices {
		if missing := completePool(byDriver[driver], want); missing != "" {
			return fmt.Sprintf("node %s, driver %s: %s", node, driver, missing)
		}
	}
	return ""
}

func completePool(pool []resourcev1.ResourceSlice, devices int) string {
	names := map[string]bool{}
	for _, slice := range pool {
		for _, device := range slice.Spec.Devices {
			names[device.Name] = true
		}
		if slice.Spec.Pool != pool[0].Spec.Pool {
			return fmt.Sprintf("slices disagree on the pool: %+v, %+v", slice.Spec.Pool, pool[0].Spec.Pool)
		}
		if int(slice.Spec.Pool.ResourceSliceCount) != len(pool) {
			return fmt.Sprintf("resourceSliceCount is %d with %d slices", slice.Spec.Pool.ResourceSliceCount, len(pool))
		}
	}
	if len(names) != devices {
		return fmt.Sprintf("%d devices, want %d", len(names), devices)
	}
	return ""
}

// published waits for a complete pool of one driver on the node.
func (h *harness) published(node, driver string, devices int) []resourcev1.ResourceSlice {
	h.Helper()
	var all []resourcev1.ResourceSlice
	h.eventually(patience, func() string {
		all = h.slicesOf(node)
		return completeNode(node, all, map[string]int{driver: devices})
	})
	return all
}

func (h *harness) retired(node string) {
	h.Helper()
	h.eventually(patience, func() string {
		if n := len(h.slicesOf(node)); n > 0 {
			return fmt.Sprintf("node %s has %d slices, want none", node, n)
		}
		return ""
	})
}

// events counts the events of a reason about an object.
func (h *harness) events(object, reason string) int {
	h.Helper()
	list, err := h.client.CoreV1().Events("").List(h.Context(), metav1.ListOptions{
		FieldSelector: "involvedObject.name=" + object + ",reason=" + reason,
	})
	require.NoError(h, err)
	count := 0
	for _, event := range list.Items {
		count += int(max(event.Count, 1))
	}
	return count
}

func (h *harness) metric(process *sidecar.Process, name string, labels ...string) float64 {
	h.Helper()
	value, err := process.Metric(h.Context(), name, labels...)
	require.NoError(h, err)
	return value
}

func generation(pool []resourcev1.ResourceSlice) int64 {
	generations := make([]int64, len(pool))
	for i := range pool {
		generations[i] = pool[i].Spec.Pool.Generation
	}
	return slices.Max(generations)
}
