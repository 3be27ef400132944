// Package adapters proves that the configuration of Karpenter's fake devices is
// read as Karpenter reads it.
package adapters

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kwok-dra/kwok-dra/test/cluster"
	"github.com/kwok-dra/kwok-dra/test/e2e/harness"
	"github.com/kwok-dra/kwok-dra/test/internal/sidecar"
)

const instanceType = "node.kubernetes.io/instance-type"

// longName is as long as the names of Karpenter's KWOK nodes are: 85 characters.
var longName = "kwok-" + strings.Repeat("nodeclaim-silly-name-", 3) + "12-1234567890-432"

// newKarpenterHarness is a cluster whose sidecar has the right to read Karpenter's
// configuration.
func newKarpenterHarness(t *testing.T) *harness.H {
	t.Helper()
	require.Len(t, longName, 85)
	h := harness.New(t, cluster.Options{Config: harness.FastStages(t), Audit: true})
	h.Kubectl("", "apply", "-k", filepath.Join(sidecar.Root(), "kustomize", "karpenter", "rbac"))
	h.Kubectl("", "create", "namespace", "karpenter")
	return h
}

// adapting starts a sidecar as kustomize/karpenter has it.
func adapting(h *harness.H, arguments ...string) *sidecar.Process {
	h.Helper()
	all := append([]string{"--kubeconfig", h.Kubeconfig, "--dra-kwok-configmap", "karpenter/dra-kwok-configmap", "--adapters", "DRAConfig,NodeOverlay"}, arguments...)
	process, err := sidecar.Start(h.Context(), h.Cluster, all...)
	require.NoError(h, err)
	h.Cleanup(func() { require.NoError(h, process.Kill()) })
	return process
}

// definition applies a custom resource definition of testdata, and waits until
// objects of it can be applied.
func definition(h *harness.H, file string) {
	h.Helper()
	h.Kubectl("", "apply", "-f", filepath.Join("testdata", file))
	require.NoError(h, h.Cluster.AwaitDefinitions(h.Context()))
}

// typed creates a node with an instance type.
func typed(h *harness.H, name, instance string) {
	h.Helper()
	node := harness.FakeNode(name, "karpenter")
	node.Labels[instanceType] = instance
	_, err := h.Client.CoreV1().Nodes().Create(h.Context(), node, metav1.CreateOptions{})
	require.NoError(h, err)
}

// apply applies objects in YAML.
func apply(h *harness.H, yaml string) {
	h.Helper()
	h.Kubectl(yaml, "apply", "-f", "-")
}

// pooled waits until the node has, of a driver, one complete pool of that name
// with these devices and no other.
func pooled(h *harness.H, node, driver, pool string, devices ...string) []resourcev1.ResourceSlice {
	h.Helper()
	var made []resourcev1.ResourceSlice
	h.Eventually(harness.Patience, func() string {
		made = h.Pool(node, driver)
		if missing := harness.CompletePool(made, len(devices)); missing != "" {
			return missing
		}
		var names []string
		for i := range made {
			for _, device := range made[i].Spec.Devices {
				names = append(names, device.Name)
			}
		}
		slices.Sort(names)
		if slices.Sort(devices); !slices.Equal(names, devices) || len(made) > 0 && made[0].Spec.Pool.Name != pool {
			return fmt.Sprintf("node %s has in pool %s the devices %v, want in %s %v", node, made[0].Spec.Pool.Name, names, pool, devices)
		}
		return ""
	})
	return made
}

// told waits for an event about an object that has the words.
func told(h *harness.H, namespace, object, reason string, words ...string) {
	h.Helper()
	h.Eventually(harness.Patience, func() string { return harness.Missing(h.Messages(namespace, object, reason), words...) })
}

// draStatus is what a DRAConfig shows.
type draStatus struct {
	Conditions                    []metav1.Condition
	NodeCount, ResourceSliceCount int
}

// shows waits until the status of a DRAConfig has these counts and conditions,
// and the words in the message of the condition that is False, or of Ready.
func shows(h *harness.H, name string, nodes, slices int, ready, validated metav1.ConditionStatus, words ...string) {
	h.Helper()
	h.Eventually(harness.Patience, func() string {
		var object struct{ Status draStatus }
		require.NoError(h, json.Unmarshal([]byte(h.Kubectl("", "get", "draconfig", name, "-o", "json")), &object))
		got, message := map[string]metav1.ConditionStatus{}, ""
		for _, condition := range object.Status.Conditions {
			got[condition.Type] = condition.Status
			if condition.Status == metav1.ConditionFalse || condition.Type == "Ready" {
				message += condition.Message + "\n"
			}
		}
		if got["Ready"] != ready || got["ValidationSucceeded"] != validated || object.Status.NodeCount != nodes || object.Status.ResourceSliceCount != slices {
			return fmt.Sprintf("DRAConfig %s shows %+v, want %d nodes, %d slices, Ready=%s, ValidationSucceeded=%s", name, object.Status, nodes, slices, ready, validated)
		}
		return harness.Missing(message, words...)
	})
}

// class is a DeviceClass, or nil where there is none.
func class(h *harness.H, name string) *resourcev1.DeviceClass {
	h.Helper()
	class, err := h.Client.ResourceV1().DeviceClasses().Get(h.Context(), name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	require.NoError(h, err)
	return class
}

// mappings puts a text into the ConfigMap that kwok-dra adapts.
func mappings(h *harness.H, text string) {
	h.Helper()
	apply(h, configMapOf(text))
}

func configMapOf(text string) string {
	made := corev1.ConfigMap{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"},
		ObjectMeta: metav1.ObjectMeta{Namespace: "karpenter", Name: "dra-kwok-configmap"},
		Data:       map[string]string{"config.yaml": text},
	}
	encoded, err := json.Marshal(made)
	if err != nil {
		panic(err)
	}
	return string(encoded)
}
