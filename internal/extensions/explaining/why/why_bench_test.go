package why

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kwok-dra/kwok-dra/internal/extensions/explaining/simulator"
)

// largeWorld is a cluster of 5,000 nodes with eight GPUs each, of which 20,000 claims have the half.
func largeWorld() *simulator.World {
	const nodes, perNode, claims = 5000, 8, 20000
	world := gpuWorld()
	world.IsLive = true
	for n := range nodes {
		name := fmt.Sprintf("node-%04d", n)
		world.Nodes = append(world.Nodes, &corev1.Node{
			ObjectMeta: metav1.ObjectMeta{Name: name},
			Status:     corev1.NodeStatus{Allocatable: corev1.ResourceList{"cpu": resource.MustParse("96"), "pods": resource.MustParse("110")}},
		})
		slice := &resourcev1.ResourceSlice{
			ObjectMeta: metav1.ObjectMeta{Name: name},
			Spec:       resourcev1.ResourceSliceSpec{Driver: gpu, NodeName: &name, Pool: resourcev1.ResourcePool{Name: name, Generation: 1, ResourceSliceCount: 1}},
		}
		for i := range perNode {
			slice.Spec.Devices = append(slice.Spec.Devices, resourcev1.Device{
				Name:       fmt.Sprintf("gpu-%d", i),
				Attributes: map[resourcev1.QualifiedName]resourcev1.DeviceAttribute{"index": {IntValue: new(int64(i))}, "numa": {IntValue: new(int64(i / 4))}},
			})
		}
		world.Slices = append(world.Slices, slice)
	}
	for i := range claims {
		claim := gpuClaim(fmt.Sprintf("claim-%d", i), 1)
		claim.Status.Allocation = &resourcev1.AllocationResult{Devices: resourcev1.DeviceAllocationResult{Results: []resourcev1.DeviceRequestAllocationResult{
			{Request: "gpus", Driver: gpu, Pool: fmt.Sprintf("node-%04d", i%nodes), Device: fmt.Sprintf("gpu-%d", i/nodes)},
		}}}
		claim.Status.ReservedFor = []resourcev1.ResourceClaimConsumerReference{{Resource: "pods", Name: fmt.Sprintf("pod-%d", i), UID: types.UID(fmt.Sprint(i))}}
		world.Claims = append(world.Claims, claim)
	}
	return world
}

// BenchmarkWhy says why one Pod waits in a large cluster, from objects that are read to the answer.
func BenchmarkWhy(b *testing.B) {
	for name, claim := range map[string]*resourcev1.ResourceClaim{"too many": gpuClaim("c", 9), "taken": gpuClaim("c", 5), "fits": gpuClaim("c", 4)} {
		b.Run(name, func(b *testing.B) {
			world := largeWorld()
			world.Claims = append(world.Claims, claim)
			pod := gpuPod("p", "c", at(0))
			b.ReportAllocs()
			for b.Loop() {
				if reason := NewWorldCluster(world, nil).Answer(b.Context(), pod).Reason; reason == "" {
					b.Fatal("no reason")
				}
			}
		})
	}
}
