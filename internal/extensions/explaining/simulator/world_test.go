package simulator

import (
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kwok-dra/kwok-dra/internal/dractl/documents"
)

const driver = "gpu.example.com"

// gpus is a world of nodes with like devices, every second of them an A100.
func gpus(nodes, devices int) *World {
	world := &World{Classes: []*resourcev1.DeviceClass{{
		ObjectMeta: metav1.ObjectMeta{Name: "gpu"},
		Spec:       resourcev1.DeviceClassSpec{Selectors: []resourcev1.DeviceSelector{selecting(`device.driver == "` + driver + `"`)}},
	}}}
	for n := range nodes {
		name := fmt.Sprintf("node-%04d", n)
		world.Nodes = append(world.Nodes, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"name": name}}})
		slice := &resourcev1.ResourceSlice{
			ObjectMeta: metav1.ObjectMeta{Name: name + "-slice"},
			Spec:       resourcev1.ResourceSliceSpec{Driver: driver, NodeName: &name, Pool: resourcev1.ResourcePool{Name: name, Generation: 1, ResourceSliceCount: 1}},
		}
		for i := range devices {
			model := []string{"H100", "A100"}[i%2]
			slice.Spec.Devices = append(slice.Spec.Devices, resourcev1.Device{
				Name: fmt.Sprintf("gpu-%d", i),
				Attributes: map[resourcev1.QualifiedName]resourcev1.DeviceAttribute{
					"model": {StringValue: &model}, "index": {IntValue: new(int64(i))}, "root": {IntValue: new(int64(i / 4))},
				},
			})
		}
		world.Slices = append(world.Slices, slice)
	}
	return world
}

func selecting(expression string) resourcev1.DeviceSelector {
	return resourcev1.DeviceSelector{CEL: &resourcev1.CELDeviceSelector{Expression: expression}}
}

// parse reads the objects of a text into a world, and returns the Pods to be
// scheduled.
func parse(t testing.TB, world *World, text string) []*corev1.Pod {
	t.Helper()
	objects, err := documents.Objects(documents.Split("test.yaml", []byte(text)))
	require.NoError(t, err)
	var pods []*corev1.Pod
	for _, object := range objects {
		if object.GetNamespace() == "" {
			object.SetNamespace("default")
		}
		switch kind := object.GetKind(); kind {
		case "Pod":
			pods = appendAs(t, pods, object)
		case "Node":
			world.Nodes = appendAs(t, world.Nodes, object)
		case "ResourceSlice":
			world.Slices = appendAs(t, world.Slices, object)
		case "DeviceClass":
			world.Classes = appendAs(t, world.Classes, object)
		case "DeviceTaintRule":
			world.TaintRules = appendAs(t, world.TaintRules, object)
		case "ResourceClaim":
			world.Claims = appendAs(t, world.Claims, object)
		case "ResourceClaimTemplate":
			world.ClaimTemplates = appendAs(t, world.ClaimTemplates, object)
		default:
			t.Fatalf("no test has a %s", kind)
		}
	}
	world.Pods = append(world.Pods, slices.DeleteFunc(slices.Clone(pods), func(pod *corev1.Pod) bool { return pod.Spec.NodeName == "" })...)
	return slices.DeleteFunc(pods, func(pod *corev1.Pod) bool { return pod.Spec.NodeName != "" })
}

// appendAs appends an object as a typed one.
func appendAs[T any](t testing.TB, all []*T, object documents.Object) []*T {
	t.Helper()
	into := new(T)
	require.NoError(t, object.Into(into))
	return append(all, into)
}

// pod is a Pod with a claim of its own, by requests in YAML.
func pod(name, requests string) string {
	return fmt.Sprintf(`
apiVersion: resource.k8s.io/v1
kind: ResourceClaimTemplate
metadata: {name: %[1]s}
spec: {spec: {devices: %[2]s}}
---
apiVersion: v1
kind: Pod
metadata: {name: %[1]s}
spec:
  containers: [{name: c, image: i}]
  resourceClaims: [{name: gpu, resourceClaimTemplateName: %[1]s}]
---
`, name, requests)
}

const one = `{requests: [{name: gpu, exactly: {deviceClassName: gpu}}]}`
