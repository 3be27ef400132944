package dractl

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kwok-dra/kwok-dra/internal/dractl/cli"
	"github.com/kwok-dra/kwok-dra/test/internal/sidecar"
)

// TestCommands has the commands share a cluster that do not act on the objects of others.
func TestCommands(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	s.must("kubectl apply --server-side -k " + sidecar.Root() + "/kustomize/crd")
	s.sidecar("--enable-crds")
	for name, test := range map[string]func(*shell){"pod": testPod, "scale": testScale} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(&shell{T: t, cluster: s.cluster, client: s.client, dir: s.dir})
		})
	}
}

// testScale grows and shrinks fleets beside objects of others, and removes them.
func testScale(s *shell) {
	count := func(want int, what string) {
		s.Helper()
		require.Len(s, strings.Fields(s.must("kubectl get "+what+" -o name")), want, what)
	}
	s.must(`echo '{apiVersion: v1, kind: Node, metadata: {name: nvidia-t4-1}}' | kubectl create -f -`)

	r := s.run("kwok-dractl scale nvidia-t4 --nodes 3")
	require.Zero(s, r.code, r)
	require.Contains(s, r.errOut, "left alone: nodes of others with names of this fleet: nvidia-t4-1")
	require.Equal(s, "nvidia-t4: 3 of 3 nodes Ready, 3 of 3 pools complete\n", r.out)
	count(3, "nodes -l dra.kwok.x-k8s.io/scale=nvidia-t4")
	require.Contains(s, s.must("kwok-dractl scale amd-mi300x,rdma-nic --nodes 2"), "2 of 2 nodes Ready, 4 of 4 pools complete")
	s.must("kwok-dractl scale nvidia-l4 --nodes 1")

	s.must("kwok-dractl scale nvidia-t4 --nodes 1")
	count(1, "nodes -l dra.kwok.x-k8s.io/scale=nvidia-t4")
	r = s.run("kwok-dractl scale nvidia-t4 --nodes 0")
	require.Zero(s, r.code, r)
	require.Contains(s, r.errOut, "DeviceClass gpu.nvidia.com stays: used by the nodes of nvidia-l4")
	count(1, "deviceclass gpu.nvidia.com")
	s.must("kwok-dractl delete nvidia-l4")
	count(2, "nodes -l dra.kwok.x-k8s.io/scale")
	s.keepsOthers()
	s.must("kwok-dractl delete --all")
	count(0, "nodes,deviceclasses,resourcepooltemplates -l dra.kwok.x-k8s.io/scale")
	count(1, "node nvidia-t4-1")
}

// keepsOthers: what others have made or changed is refused by its name, and what they use
// stays.
func (s *shell) keepsOthers() {
	s.Helper()
	const template = "{apiVersion: dra.kwok.x-k8s.io/v1alpha1, kind: ResourcePoolTemplate, metadata: {name: npu}, spec: {driver: %s, " +
		"nodeSelector: {nodeSelectorTerms: [{matchExpressions: [{key: npu, operator: Exists}]}]}, devices: [{name: npu}]}}\n"
	const class = "---\n{apiVersion: resource.k8s.io/v1, kind: DeviceClass, metadata: {name: npu}, spec: {extendedResourceName: example.com/npu}}\n"
	refuses := func(line, want string) {
		s.Helper()
		before := s.must("kubectl get resourcepooltemplate npu -o jsonpath='{.metadata.labels} {.spec}'")
		r := s.run(line)
		require.Equal(s, cli.ExitFailed, r.code, r)
		require.Contains(s, r.errOut, want)
		require.Empty(s, s.must("kubectl get nodes -l dra.kwok.x-k8s.io/scale=npu -o name"))
		require.Equal(s, before, s.must("kubectl get resourcepooltemplate npu -o jsonpath='{.metadata.labels} {.spec}'"))
	}
	s.write("npu.yaml", fmt.Sprintf(template, "npu.example.com")+class)
	s.write("others.yaml", fmt.Sprintf(template, "others.example.com"))
	s.must("kubectl create -f others.yaml")
	refuses("kwok-dractl scale ./npu.yaml --nodes 2", "ResourcePoolTemplate npu in the cluster is of others, and differs from that of ./npu.yaml: rename or delete one of them")
	s.must("kubectl delete -f others.yaml")

	s.must("kwok-dractl scale ./npu.yaml --nodes 2 && kwok-dractl scale ./npu.yaml --nodes 2 && kubectl delete nodes -l dra.kwok.x-k8s.io/scale=npu")
	s.must(`kubectl patch resourcepooltemplate npu --type merge -p '{"spec": {"devices": [{"name": "mine"}]}}'`)
	refuses("kwok-dractl scale ./npu.yaml --nodes 2", "ResourcePoolTemplate npu was changed by others, and stays as it is")
	s.must("kwok-dractl generate ./npu.yaml --nodes 0 | kubectl apply --server-side --force-conflicts -f -")
	s.must("kwok-dractl scale ./npu.yaml --nodes 2")

	s.must(`kubectl run asks --image=x --overrides='{"spec": {"nodeSelector": {"none": "such"}, "containers": [{"name": "asks", "image": "x", "resources": {"limits": {"example.com/npu": "1"}}}]}}'`)
	r := s.run("kwok-dractl delete ./npu.yaml")
	require.Zero(s, r.code, r)
	require.Contains(s, r.errOut, "DeviceClass npu stays: used by Pod default/asks")
	s.must("kubectl delete pod asks --grace-period=0 --force")
	require.Contains(s, s.must("kwok-dractl delete ./npu.yaml"), "deleted 0 nodes, DeviceClass npu")
}
