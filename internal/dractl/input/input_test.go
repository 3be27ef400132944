package input

import (
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"
)

// TestFromCluster tells bound Pods from those that wait, and passes over those that have
// ended or are being deleted.
func TestFromCluster(t *testing.T) {
	t.Parallel()
	named := func(name, node string, phase corev1.PodPhase) *corev1.Pod {
		return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}, Spec: corev1.PodSpec{NodeName: node}, Status: corev1.PodStatus{Phase: phase}}
	}
	leaving := named("leaving", "", corev1.PodPending)
	leaving.DeletionTimestamp, leaving.Finalizers = &metav1.Time{}, []string{"wait"}
	in, err := ReadCluster(t.Context(), fake.NewClientset(
		&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "node-0000"}},
		named("bound", "node-0000", corev1.PodRunning), named("ended", "node-0000", corev1.PodSucceeded), named("waits", "", corev1.PodPending), leaving,
	))
	require.NoError(t, err)
	require.Len(t, in.Nodes, 1)
	require.Len(t, in.Pods, 1)
	require.Equal(t, "bound", in.Pods[0].Name)
	require.Len(t, in.Waiting, 1)
	require.Equal(t, "waits", in.Waiting[0].Name)
}
