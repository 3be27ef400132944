package simulator

import (
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// TestExtendedResources has Pods that ask for devices as for a resource.
func TestExtendedResources(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct{ pod, want string }{
		"a limit": {
			`containers: [{name: c, resources: {limits: {cpu: "1", example.com/gpu: "2"}}}]`,
			"a: node-0000 container-0-request-1=gpu-0 container-0-request-1=gpu-1",
		},
		"by the name of the class": {
			`containers: [{name: c, resources: {requests: {deviceclass.resource.kubernetes.io/gpu: "1"}}}]`,
			"a: node-0000 container-0-request-0=gpu-0",
		},
		"two containers": {
			`containers: [{name: c, resources: {requests: {example.com/gpu: "1"}}}, {name: d, resources: {requests: {example.com/gpu: "2"}}}]`,
			"a: node-0000 container-0-request-0=gpu-0 container-1-request-0=gpu-1 container-1-request-0=gpu-2",
		},
		"an init container has those of later containers": {
			`initContainers: [{name: i, resources: {requests: {example.com/gpu: "3"}}}], containers: [{name: c, resources: {requests: {example.com/gpu: "2"}}}]`,
			"a: node-0000 container-0-request-0=gpu-0 container-1-request-0=gpu-1 container-1-request-0=gpu-2",
		},
		"a sidecar keeps its own": {
			`initContainers: [{name: i, restartPolicy: Always, resources: {requests: {example.com/gpu: "1"}}}], containers: [{name: c, resources: {requests: {example.com/gpu: "2"}}}]`,
			"a: node-0000 container-0-request-0=gpu-0 container-1-request-0=gpu-1 container-1-request-0=gpu-2",
		},
		"too many": {
			`containers: [{name: c, resources: {limits: {example.com/gpu: "4"}}}]`,
			"a:; no node has as many devices: node node-0000 has the most, 3, of 3 devices of class gpu on 1 node; request container-0-request-0 wants 4 on one node",
		},
		"of no class": {`containers: [{name: c, resources: {limits: {example.com/nic: "4"}}}]`, "a: node-0000"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			world := gpus(1, 3)
			world.Classes[0].Spec.ExtendedResourceName = new("example.com/gpu")
			require.Equal(t, test.want, outcome(t, world, parse(t, world, plainPod("a", test.pod))))
		})
	}
}

// TestDevicePlugin has a node that has the resource without a DRA driver.
func TestDevicePlugin(t *testing.T) {
	t.Parallel()
	world := gpus(1, 3)
	world.Classes[0].Spec.ExtendedResourceName = new("example.com/gpu")
	world.Nodes[0].Status.Allocatable = corev1.ResourceList{"example.com/gpu": resource.MustParse("8")}
	pods := parse(t, world, plainPod("a", `containers: [{name: c, resources: {limits: {example.com/gpu: "1"}}}]`))
	require.Equal(t, "a:; no node may have the Pod, whatever its devices: node node-0000: example.com/gpu is from a device plugin there, which is not considered", outcome(t, world, pods))
}
