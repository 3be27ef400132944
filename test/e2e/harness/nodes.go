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

// Nodes are the nodes of the cluster.
type Nodes struct{ API }

// CreateNode creates a fake node with the label kind=<kind>.
func (n Nodes) CreateNode(name, kind string) *corev1.Node {
	n.Helper()
	node, err := n.Client.CoreV1().Nodes().Create(n.Context(), FakeNode(name, kind), metav1.CreateOptions{})
	require.NoError(n, err)
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
func (n Nodes) DeleteNode(name string) {
	n.Helper()
	require.NoError(n, n.Client.CoreV1().Nodes().Delete(n.Context(), name, metav1.DeleteOptions{}))
}

// Label sets a label of a node, or removes it when the value is nil.
func (n Nodes) Label(node, key string, value any) {
	n.Helper()
	n.PatchMetadata(node, "labels", key, value)
}

// PatchMetadata sets one key of the labels or annotations of a node, or removes it when the value is nil.
func (n Nodes) PatchMetadata(node, field, key string, value any) {
	n.Helper()
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{field: map[string]any{key: value}}})
	require.NoError(n, err)
	_, err = n.Client.CoreV1().Nodes().Patch(n.Context(), node, types.MergePatchType, patch, metav1.PatchOptions{})
	require.NoError(n, err)
}

// PluginRegistered sets the condition of a node that says whether the DRA plugin is registered.
func (n Nodes) PluginRegistered(node, status string) {
	n.Helper()
	patch := fmt.Sprintf(`{"status":{"conditions":[{"type":"dra.kwok.x-k8s.io/PluginRegistered","status":%q}]}}`, status)
	_, err := n.Client.CoreV1().Nodes().Patch(n.Context(), node, types.StrategicMergePatchType, []byte(patch), metav1.PatchOptions{}, "status")
	require.NoError(n, err)
}

// CreateNodes creates that many nodes of a kind, named <kind>-0 and so on.
func (n Nodes) CreateNodes(kind string, count int) {
	n.Helper()
	var creating sync.WaitGroup
	errs := make([]error, count)
	for worker := range 8 {
		creating.Go(func() {
			for i := worker; i < count; i += 8 {
				node := FakeNode(fmt.Sprintf("%s-%d", kind, i), kind)
				_, errs[i] = n.Client.CoreV1().Nodes().Create(n.Context(), node, metav1.CreateOptions{})
			}
		})
	}
	creating.Wait()
	for _, err := range errs {
		require.NoError(n, err)
	}
}
