package podresources

import (
	"context"
	"net"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	podresourcesv1 "k8s.io/kubelet/pkg/apis/podresources/v1"

	"github.com/kwok-dra/kwok-dra/internal/extensions/realdrivers/kubelet/claiminfo"
	"github.com/kwok-dra/kwok-dra/internal/testing/runtest"
)

// podNamed is a Pod on a node.
func podNamed(namespace, name, node string, phase corev1.PodPhase) runtime.Object {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec:       corev1.PodSpec{NodeName: node, Containers: []corev1.Container{{Name: "main"}}},
		Status:     corev1.PodStatus{Phase: phase},
	}
}

// serveNode answers for the node "node" until the test ends or stop is called, and returns the node's folder.
func serveNode(t *testing.T, pods ...runtime.Object) (folder string, stop func()) {
	t.Helper()
	folder, err := os.MkdirTemp("", "r") //nolint:usetesting // its paths are too long for sockets
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, os.RemoveAll(folder)) })
	server := New(fake.NewClientset(pods...), func(string) Prepared {
		return func(_ *corev1.Pod, claim string) *claiminfo.Info { return someClaim(claim) }
	})
	stop = runtest.UntilEnd(runtest.QuietContext(t), t, server.Run, func(ctx context.Context) { server.ServeNode(ctx, "node", folder) })
	return folder, stop
}

// clientOf is a client of the socket in a node's folder.
func clientOf(t *testing.T, folder string) podresourcesv1.PodResourcesListerClient {
	t.Helper()
	connection, err := grpc.NewClient("unix://"+filepath.Join(folder, "pod-resources", "kubelet.sock"), grpc.WithTransportCredentials(insecure.NewCredentials()))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, connection.Close()) })
	return podresourcesv1.NewPodResourcesListerClient(connection)
}

// TestServe has TestListPodResourcesUsesOnlyActivePodsV1, TestGetPodResourcesV1 and TestAllocatableResources of the kubelet, on its socket.
func TestServe(t *testing.T) {
	t.Parallel()
	folder, stop := serveNode(t,
		podNamed("b", "running", "node", corev1.PodRunning), podNamed("a", "starting", "node", corev1.PodPending),
		podNamed("a", "ended", "node", corev1.PodSucceeded), podNamed("a", "elsewhere", "other", corev1.PodRunning))
	client := clientOf(t, folder)

	list, err := client.List(t.Context(), &podresourcesv1.ListPodResourcesRequest{}, grpc.WaitForReady(true))
	require.NoError(t, err)
	require.Len(t, list.GetPodResources(), 2, "Pods that have ended are not active")
	require.Equal(t, "starting", list.GetPodResources()[0].GetName())
	require.Equal(t, "running", list.GetPodResources()[1].GetName())
	require.Equal(t, "main", list.GetPodResources()[1].GetContainers()[0].GetName())

	one, err := client.Get(t.Context(), &podresourcesv1.GetPodResourcesRequest{PodNamespace: "a", PodName: "ended"})
	require.NoError(t, err)
	require.Equal(t, "ended", one.GetPodResources().GetName())
	_, err = client.Get(t.Context(), &podresourcesv1.GetPodResourcesRequest{PodNamespace: "a", PodName: "elsewhere"})
	require.ErrorContains(t, err, "pod elsewhere in namespace a not found")

	allocatable, err := client.GetAllocatableResources(t.Context(), &podresourcesv1.AllocatableResourcesRequest{})
	require.NoError(t, err)
	require.Empty(t, allocatable.GetDevices())

	stop()
	_, err = new(net.Dialer).DialContext(t.Context(), "unix", filepath.Join(folder, "pod-resources", "kubelet.sock"))
	require.Error(t, err, "nobody listens after the node")
}

// TestRateLimit refuses calls as the kubelet does.
func TestRateLimit(t *testing.T) {
	t.Parallel()
	folder, _ := serveNode(t)
	client := clientOf(t, folder)
	for range 10_000 {
		_, err := client.List(t.Context(), &podresourcesv1.ListPodResourcesRequest{}, grpc.WaitForReady(true))
		if err != nil {
			require.Equal(t, codes.ResourceExhausted, status.Code(err))
			require.ErrorContains(t, err, "rejected by rate limit")
			return
		}
	}
	t.Fatal("no call was refused")
}

// TestSilentClients: clients that connect and say nothing keep nobody out.
func TestSilentClients(t *testing.T) {
	t.Parallel()
	folder, _ := serveNode(t, podNamed("a", "pod", "node", corev1.PodRunning))
	client := clientOf(t, folder)
	_, err := client.List(t.Context(), &podresourcesv1.ListPodResourcesRequest{}, grpc.WaitForReady(true))
	require.NoError(t, err)
	for range 2 * maxConnections {
		silent, err := new(net.Dialer).DialContext(t.Context(), "unix", filepath.Join(folder, "pod-resources", "kubelet.sock"))
		require.NoError(t, err)
		t.Cleanup(func() { _ = silent.Close() }) // the server has closed most of them
	}
	list, err := clientOf(t, folder).List(t.Context(), &podresourcesv1.ListPodResourcesRequest{}, grpc.WaitForReady(true))
	require.NoError(t, err)
	require.Len(t, list.GetPodResources(), 1)
}

// TestListen takes the place of a socket that was left, and of nothing else.
func TestListen(t *testing.T) {
	t.Parallel()
	newFolder := func() string {
		folder, err := os.MkdirTemp("", "r") //nolint:usetesting // its paths are too long for sockets
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, os.RemoveAll(folder)) })
		return folder
	}
	folder := newFolder()
	for range 2 { // after a crash the socket is still there
		made, err := listenBelow(folder)
		require.NoError(t, err)
		require.NoError(t, made.Close())
		require.FileExists(t, filepath.Join(folder, "pod-resources", "kubelet.sock"))
	}

	folder, elsewhere := newFolder(), newFolder()
	require.NoError(t, os.Symlink(elsewhere, filepath.Join(folder, "pod-resources")))
	_, err := listenBelow(folder)
	require.ErrorContains(t, err, "it must be a folder")
	entries, err := os.ReadDir(elsewhere)
	require.NoError(t, err)
	require.Empty(t, entries)

	folder = newFolder()
	require.NoError(t, os.MkdirAll(filepath.Join(folder, "pod-resources"), 0o750))
	require.NoError(t, os.WriteFile(filepath.Join(folder, "pod-resources", "kubelet.sock"), nil, 0o600))
	_, err = listenBelow(folder)
	require.ErrorContains(t, err, "kubelet.sock: there is something else: remove it")
}
