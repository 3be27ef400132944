package app_test

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/kwok-dra/kwok-dra/internal/app"
	"github.com/kwok-dra/kwok-dra/internal/extensions"
	"github.com/kwok-dra/kwok-dra/internal/testing/runtest"
)

// TestSidecarWithExtensions runs all of it on a fake cluster, and the end leaves nothing behind.
func TestSidecarWithExtensions(t *testing.T) {
	t.Parallel()
	config := filepath.Join(t.TempDir(), "config.yaml")
	require.NoError(t, os.WriteFile(config, []byte("apiVersion: dra.kwok.x-k8s.io/v1alpha1\nkind: ResourcePoolTemplate\nmetadata: {name: a}\nspec: {driver: a, devices: [{name: gpu}]}\n"), 0o600))
	synctest.Test(t, func(t *testing.T) {
		client := fake.NewClientset(&corev1.Node{
			ObjectMeta: metav1.ObjectMeta{Name: "n", UID: "u", Annotations: map[string]string{"kwok.x-k8s.io/node": "fake"}},
			Status:     corev1.NodeStatus{Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}},
		}, &corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{Namespace: "karpenter", Name: "dra-kwok-configmap"},
			Data:       map[string]string{"config.yaml": "driver: b\nmappings: [{name: t4, nodeSelector: {matchLabels: {a: b}}, resourceSlice: {devices: [{name: t4}]}}]"},
		})
		o := app.NewOptions(extensions.All()...)
		require.NoError(t, o.Flags().Parse([]string{
			"--config", config, "--dra-kwok-configmap", "karpenter/dra-kwok-configmap", "--explain-pods-after=1m",
			"--server-address=", "--leader-elect-resource-namespace=kube-system",
		}))
		require.NoError(t, o.Complete())
		ctx, cancel := context.WithCancel(runtest.QuietContext(t))
		ended := make(chan error)
		go func() { ended <- app.RunOn(ctx, o, client, dynamicfake.NewSimpleDynamicClient(runtime.NewScheme())) }()
		time.Sleep(2 * time.Minute)
		synctest.Wait()
		slices, err := client.ResourceV1().ResourceSlices().List(t.Context(), metav1.ListOptions{})
		require.NoError(t, err)
		require.Len(t, slices.Items, 1)
		classes, err := client.ResourceV1().DeviceClasses().List(t.Context(), metav1.ListOptions{})
		require.NoError(t, err)
		require.Len(t, classes.Items, 1, "which Karpenter's ConfigMap needs")
		cancel()
		require.NoError(t, <-ended)
	})
}
