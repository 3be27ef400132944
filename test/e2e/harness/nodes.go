package harness

import (
	"encoding/json"
	"fmt"
	"sync"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// CreateNode creates a fake node with the label kind=<kind>.
func (h *H) CreateNode(name, kind string) *corev1.Node {
	h.Helper()
	node, err := h.Client.CoreV1().Nodes().Create(h.Context(), FakeNode(name, kind), metav1.CreateOptions{})
	require.NoError(h, err)
	return node
}

// FakeNode returns a node that kwok plays, with the label kind=<kind>.
func FakeNode(name, kind string) *corev1.Node {
	return &corev1.Node{ObjectMeta: metav1.ObjectMeta{
		Name:        name,
		Labels:      map[string]string{"kind": kind},
		Annotations: map[string]string{"kwok.x-k8s.io/node": "fake"},
	}}
}

// DeleteNode deletes a node.
func (h *H) DeleteNode(name string) {
	h.Helper()
	require.NoError(h, h.Client.CoreV1().Nodes().Delete(h.Context(), name, metav1.DeleteOptions{}))
}

// Label sets a label of a node, or removes it when the value is nil.
func (h *H) Label(node, key string, value any) {
	h.Helper()
	h.PatchMetadata(node, "labels", key, value)
}

// PatchMetadata sets one key of the labels or annotations of a node, or removes it when the value is nil.
func (h *H) PatchMetadata(node, field, key string, value any) {
	h.Helper()
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{field: map[string]any{key: value}}})
	require.NoError(h, err)
	_, err = h.Client.CoreV1().Nodes().Patch(h.Context(), node, types.MergePatchType, patch, metav1.PatchOptions{})
	require.NoError(h, err)
}

// PluginRegistered sets the condition of a node that says whether the DRA plugin is registered.
func (h *H) PluginRegistered(node, status string) {
	h.Helper()
	patch := fmt.Sprintf(`{"status":{"conditions":[{"type":"dra.kwok.x-k8s.io/PluginRegistered","status":%q}]}}`, status)
	_, err := h.Client.CoreV1().Nodes().Patch(h.Context(), node, types.StrategicMergePatchType, []byte(patch), metav1.PatchOptions{}, "status")
	require.NoError(h, err)
}

// CreateNodes creates that many nodes of a kind, named <kind>-0 and so on.
func (h *H) CreateNodes(kind string, count int) {
	h.Helper()
	var creating sync.WaitGroup
	errs := make([]error, count)
	for worker := range 8 {
		creating.Go(func() {
			for i := worker; i < count; i += 8 {
				node := FakeNode(fmt.Sprintf("%s-%d", kind, i), kind)
				_, errs[i] = h.Client.CoreV1().Nodes().Create(h.Context(), node, metav1.CreateOptions{})
			}
		})
	}
	creating.Wait()
	for _, err := range errs {
		require.NoError(h, err)
	}
}
