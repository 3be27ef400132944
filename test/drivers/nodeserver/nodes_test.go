package nodeserver

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"
)

func TestAnnounce(t *testing.T) {
	t.Parallel()
	newNode := func(name string, annotations map[string]string) *corev1.Node {
		node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Annotations: annotations}}
		node.Status.DaemonEndpoints.KubeletEndpoint.Port = 10250
		return node
	}
	client := fake.NewClientset(newNode("fake", map[string]string{"kwok.x-k8s.io/node": "fake"}), newNode("real", nil))
	hasPort := func(name string, port int32) func() bool {
		return func() bool {
			node, err := client.CoreV1().Nodes().Get(t.Context(), name, metav1.GetOptions{})
			return err == nil && node.Status.DaemonEndpoints.KubeletEndpoint.Port == port
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var running sync.WaitGroup
	running.Go(func() { _ = Announce(ctx, client, 9999, 10247) })
	require.Eventually(t, hasPort("fake", 9999), 10*time.Second, 10*time.Millisecond)
	cancel()
	running.Wait()
	require.True(t, hasPort("fake", 10247)(), "kwok answers again")
	require.True(t, hasPort("real", 10250)())
}
