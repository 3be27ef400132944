package observe

import (
	"context"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/tools/cache"

	"github.com/kwok-dra/kwok-dra/internal/observe/lifecycle"
)

// playedNode is a Node as kwok plays it, heartbeats and managedFields included.
func playedNode() *corev1.Node {
	node := fakeNode("ip-10-0-0-1.eu-west-1.compute.internal")
	node.Labels = map[string]string{
		"kubernetes.io/arch": "amd64", "kubernetes.io/os": "linux", "kubernetes.io/hostname": node.Name, "type": "kwok",
		"node.kubernetes.io/instance-type": "p5.48xlarge", "topology.kubernetes.io/zone": "eu-west-1a",
	}
	for _, kind := range []corev1.NodeConditionType{"Ready", "MemoryPressure", "DiskPressure", "PIDPressure", "NetworkUnavailable"} {
		node.Status.Conditions = append(node.Status.Conditions, corev1.NodeCondition{
			Type: kind, Status: "True", Reason: "KubeletReady", Message: "kubelet is posting ready status",
			LastHeartbeatTime: metav1.Unix(1e9, 0), LastTransitionTime: metav1.Unix(1e9, 0),
		})
	}
	fields := metav1.NewFieldsV1(strings.Repeat("f", 1000))
	node.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: "kwok", FieldsV1: fields}, {Manager: "kubectl", FieldsV1: fields}}
	return node
}

// BenchmarkObserveNode is what an event of a node takes from the bytes on the wire
// until it is known to be no change.
func BenchmarkObserveNode(b *testing.B) {
	managed := &lifecycle.ManagedNodes{}
	require.NoError(b, managed.Complete())
	nodes := New(fake.NewClientset(playedNode()), managed).Nodes
	var running sync.WaitGroup
	ctx, cancel := context.WithCancel(b.Context())
	running.Go(func() { nodes.Run(ctx) })
	b.Cleanup(func() {
		cancel()
		running.Wait()
	})
	cache.WaitFor(ctx, "", nodes.Synced()...)
	wire, err := playedNode().Marshal()
	require.NoError(b, err)
	receive := func() *Node {
		var node corev1.Node
		require.NoError(b, node.Unmarshal(wire))
		return nodes.observeNode(&node)
	}
	before := nodes.Informer.Get(playedNode().Name)
	b.ReportAllocs()
	for b.Loop() {
		if receive().Encoded != before.Encoded {
			b.Fatal("the same node is taken for a change")
		}
	}
}

// BenchmarkGetNode is what a look at a node costs.
func BenchmarkGetNode(b *testing.B) {
	managed := &lifecycle.ManagedNodes{}
	require.NoError(b, managed.Complete())
	observed := New(fake.NewClientset(), managed).Nodes.observeNode(playedNode())
	b.ReportAllocs()
	for b.Loop() {
		observed.Decode()
	}
}
