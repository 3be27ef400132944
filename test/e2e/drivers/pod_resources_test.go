package drivers

import (
	"path/filepath"
	"strings"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	podresourcesv1 "k8s.io/kubelet/pkg/apis/podresources/v1"
)

// agentSees: an agent on the node learns from the PodResources socket which devices the containers of a Pod have, those of a
// driver with a template and those of a real one.
func agentSees(s *scene, d *driver) {
	s.Helper()
	connection, err := grpc.NewClient("unix://"+filepath.Join(s.plugins, d.Node, "pod-resources", "kubelet.sock"), grpc.WithTransportCredentials(insecure.NewCredentials()))
	require.NoError(s, err)
	defer func() { require.NoError(s, connection.Close()) }()
	answer, err := podresourcesv1.NewPodResourcesListerClient(connection).List(s.Context(), &podresourcesv1.ListPodResourcesRequest{}, grpc.WaitForReady(true))
	require.NoError(s, err)
	require.Len(s, answer.GetPodResources(), 1)
	pod := answer.GetPodResources()[0]
	require.Equal(s, "both", pod.GetName())
	require.Len(s, pod.GetContainers(), 1)

	var seen []string
	for _, claim := range pod.GetContainers()[0].GetDynamicResources() {
		require.Equal(s, d.Node, claim.GetClaimNamespace())
		require.Len(s, claim.GetClaimResources(), 1)
		device := claim.GetClaimResources()[0]
		require.Equal(s, d.Node, device.GetPoolName())
		require.Equal(s, s.deviceOf(d.Node, claim.GetClaimName()), device.GetDeviceName())
		require.Len(s, device.GetCdiDevices(), 1)
		id := device.GetCdiDevices()[0].GetName()
		seen = append(seen, claim.GetClaimName()+" "+device.GetDriverName()+" "+strings.ReplaceAll(id, string(s.Claim(d.Node, claim.GetClaimName()).UID), "UID"))
	}
	require.Equal(s, []string{"of-template made.example.com example.com/gpu=UID", "of-driver " + d.Name + " " + d.Name + "/file=UID-" + s.deviceOf(d.Node, "of-driver")}, seen)
}
