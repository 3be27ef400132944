package dractl

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/kwok-dra/kwok-dra/internal/extensions/containerview"
	"github.com/kwok-dra/kwok-dra/test/internal/sidecar"
)

// exampleNode is a node of the profile gpu-example, and a Pod without claims on it.
const exampleNode = `
apiVersion: v1
kind: Node
metadata:
  name: example
  annotations: {kwok.x-k8s.io/node: fake}
  labels: {dra.kwok.x-k8s.io/profile: gpu-example, kubernetes.io/hostname: example}
status: {allocatable: {cpu: "8", memory: 8Gi, pods: "110"}, capacity: {cpu: "8", memory: 8Gi, pods: "110"}}
---
apiVersion: v1
kind: Pod
metadata: {name: plain}
spec: {nodeName: example, containers: [{name: main, image: busybox}]}
`

// testPod: containers of the Pods in the sample of gpu-example have the variables that the driver
// injects, each for the requests that it names.
func testPod(s *shell) {
	profile := sidecar.Root() + "/kustomize/profiles/gpu-example"
	s.must("kubectl create configmap -n kube-system kwok-dra --from-file " + profile + "/template.yaml")
	s.write("example.yaml", exampleNode)
	s.must("kubectl apply -f example.yaml -f " + profile + "/deviceclass.yaml")
	s.must("kubectl apply -f " + profile + "/sample.yaml")
	s.must("kubectl wait --for=jsonpath='{.status.phase}'=Running --timeout=2m pod --all")

	gpus := map[string]string{"time-sliced": "", "partitioned": ""}
	claim := s.claimOf("gpu-example-configured")
	for _, result := range claim.results {
		gpus[result[0]] = result[1]
	}
	views := s.views("gpu-example-configured", "")
	require.Equal(s, []string{"train", "serve"}, []string{views[0].Name, views[1].Name})
	sliced, partitioned := gpus["time-sliced"], gpus["partitioned"]
	require.Equal(s, injected(claim.uid, sliced, "SHARING_STRATEGY=TimeSlicing", "TIMESLICE_INTERVAL=Long"), views[0].Env)
	require.Equal(s, injected(claim.uid, partitioned, "SHARING_STRATEGY=SpacePartitioning", "PARTITION_COUNT=10"), views[1].Env)
	require.Contains(s, s.must("kwok-dractl pod gpu-example-configured"), "GPU_DEVICE_"+strings.TrimPrefix(sliced, "gpu-")+"_TIMESLICE_INTERVAL")

	both := s.views("gpu-example-containers", "")
	require.Equal(s, both[0].Env, both[1].Env)
	require.Equal(s, s.views("gpu-example-shared-0", "")[0].Devices, s.views("gpu-example-shared-1", "")[0].Devices)
	require.Equal(s, "gpu/large", s.views("gpu-example-alternatives", "")[0].Devices[0].Request)
	s.must("kubectl wait --for=jsonpath='{.status.phase}'=Running --timeout=2m -n gpu-example-admin pod --all")
	monitor := s.views("monitor", " -n gpu-example-admin")[0]
	require.Len(s, monitor.Devices, 8)
	require.Contains(s, monitor.Env, "DRA_ADMIN_ACCESS=true")

	s.must("kubectl create -f - <<< '{apiVersion: v1, kind: Pod, metadata: {name: waits}, spec: {schedulingGates: [{name: a/b}], containers: [{name: main, image: busybox}]}}'")
	for line, want := range map[string]string{
		"plain":                 "pod default/plain: uses no ResourceClaim, so no driver injects anything",
		"waits":                 "pod default/waits: is not bound to a node yet: kwok-dractl why says why",
		"gpu-example-configure": `there is no Pod "gpu-example-configure" in namespace default: did you mean gpu-example-configured?`,
		"gpu-example-configured --manage-single-node other": "is on node example, which is not fake",
	} {
		r := s.run("kwok-dractl pod " + line)
		require.Equal(s, 2, r.code, r)
		require.Contains(s, r.errOut, want)
	}
}

// injected are the variables of one device, of which the last are given without their beginning.
func injected(claim, device string, last ...string) []string {
	index := strings.TrimPrefix(device, "gpu-")
	env := []string{
		"KUBERNETES_NODE_NAME=example", "DRA_RESOURCE_DRIVER_NAME=gpu.example.com",
		"GPU_DEVICE_GPU_" + index + "_RESOURCE_CLAIM=" + claim, "DRA_ADMIN_ACCESS=false", "GPU_DEVICE_" + index + "=" + device,
	}
	for _, variable := range last {
		env = append(env, "GPU_DEVICE_"+index+"_"+variable)
	}
	return env
}

// allocation is what is allocated to a claim: requests with their devices.
type allocation struct {
	uid     string
	results [][2]string
}

// claimOf is the only claim of a Pod.
func (s *shell) claimOf(pod string) (a allocation) {
	s.Helper()
	read, err := s.client.CoreV1().Pods(metav1.NamespaceDefault).Get(s.Context(), pod, metav1.GetOptions{})
	require.NoError(s, err)
	i := slices.IndexFunc(read.Status.ResourceClaimStatuses, func(c corev1.PodResourceClaimStatus) bool { return c.ResourceClaimName != nil })
	require.GreaterOrEqual(s, i, 0)
	claim, err := s.client.ResourceV1().ResourceClaims(metav1.NamespaceDefault).Get(s.Context(), *read.Status.ResourceClaimStatuses[i].ResourceClaimName, metav1.GetOptions{})
	require.NoError(s, err)
	a.uid = string(claim.UID)
	for _, result := range claim.Status.Allocation.Devices.Results {
		a.results = append(a.results, [2]string{result.Request, result.Device})
	}
	return a
}

// views are those of a Pod's containers, the same in JSON and YAML.
func (s *shell) views(pod, flags string) []containerview.Container {
	s.Helper()
	var inJSON, inYAML struct{ Containers []containerview.Container }
	require.NoError(s, json.Unmarshal([]byte(s.must("kwok-dractl pod "+pod+flags+" -o json")), &inJSON))
	require.NoError(s, yaml.Unmarshal([]byte(s.must("kwok-dractl pod "+pod+flags+" -o yaml")), &inYAML))
	require.Equal(s, inJSON, inYAML)
	return inJSON.Containers
}
