package worldtest

import (
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kwok-dra/kwok-dra/internal/testing/tabletest"
)

// PodsAndClaims have a Pod or a claim in each state, with names that are as long as they get.
func PodsAndClaims() []runtime.Object {
	tainted := Slice("b", "gpu-0", "gpu-1", "gpu-2")
	tainted.Spec.Devices[0].Taints = []resourcev1.DeviceTaint{{Key: "xid", Value: "79", Effect: resourcev1.DeviceTaintEffectNoExecute, TimeAdded: new(At(1800))}}
	ended := Pod("ended", "b", "ended", Prepared)
	ended.Status.Phase = corev1.PodSucceeded
	ended.Status.ContainerStatuses = []corev1.ContainerStatus{{State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{StartedAt: At(10), FinishedAt: At(3000)}}}}
	ending := Pod("ending", "b", "ending", Prepared)
	ending.DeletionTimestamp, ending.DeletionGracePeriodSeconds = new(At(3560)), new(int64(30))
	unhealthy := Pod("sick", tabletest.Node, "sick", Prepared)
	unhealthy.Status.ContainerStatuses = []corev1.ContainerStatus{{AllocatedResourcesStatus: []corev1.ResourceStatus{{
		Name: "claim:c/gpu", Resources: []corev1.ResourceHealth{{ResourceID: corev1.ResourceID(Driver + "/" + tabletest.Node + "/gpu-2"), Health: corev1.ResourceHealthStatusUnhealthy, Message: new("ECC errors")}},
	}}}}
	unmade := Pod("unmade", "", "")
	unmade.Spec.ResourceClaims[0] = corev1.PodResourceClaim{Name: "gpus", ResourceClaimTemplateName: new("gpus")}
	return []runtime.Object{
		Slice(tabletest.Node, "gpu-0", "gpu-1", "gpu-2", "gpu-3"), tainted,
		Claim("train-gpus", tabletest.Node, []string{"gpu-0", "gpu-1"}, tabletest.Pod), Claim("wants", "", nil), Claim("nobody", "", nil),
		Claim("serve", tabletest.Node, []string{"gpu-3"}, "serve"), Claim("sick", tabletest.Node, []string{"gpu-2"}, "sick"),
		Claim("tainted", "b", []string{"gpu-0"}, "tainted"), Claim("gone", "b", []string{"gpu-9"}, "gone"), Claim("idle", "b", []string{"gpu-1"}),
		Claim("ended", "b", []string{"gpu-2"}, "ended"), Claim("ending", "b", []string{"gpu-1"}, "ending"), Claim("left", "b", []string{"gpu-1"}, "left"),
		Pod(tabletest.Pod, tabletest.Node, "train-gpus", Prepared), Pod("wants", "", "wants", Unschedulable), Pod("serve", tabletest.Node, "serve"), unhealthy,
		Pod("tainted", "b", "tainted", Prepared), Pod("gone", "b", "gone", Prepared), ended, ending, unmade,
		&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: Namespace, Name: "bare"}}, Failure("serve"),
	}
}

// Devices are one in each state:
//   - node a has four GPUs: one runs, one fails, one is tainted, and one is free;
//   - node b, of another node pool, is not Ready, and has a GPU with two partitions of which one is in use;
//   - node c has lost a GPU that a claim still has, and half of its slices;
//   - all nodes share a pool of a fabric, of which a claim has a share;
//   - a Pod waits for devices.
func Devices() []runtime.Object {
	a, c := Slice("a", "gpu-0", "gpu-1", "gpu-2", "gpu-3"), Slice("c", "gpu-0")
	a.Spec.Devices[2].Taints = []resourcev1.DeviceTaint{{Key: "ecc", Value: "double-bit", Effect: resourcev1.DeviceTaintEffectNoExecute, TimeAdded: new(At(0))}}
	c.Spec.Pool.ResourceSliceCount = 2
	counters, parts := dividedSlices("b")
	fabric := Slice("", "port")
	fabric.Name, fabric.Spec = "fabric", resourcev1.ResourceSliceSpec{Driver: Fabric, AllNodes: new(true), Pool: resourcev1.ResourcePool{Name: "rail-1", ResourceSliceCount: 1}, Devices: fabric.Spec.Devices}
	fabric.Spec.Devices[0].AllowMultipleAllocations = new(true)
	fabric.Spec.Devices[0].Capacity = map[resourcev1.QualifiedName]resourcev1.DeviceCapacity{"bandwidth": {Value: resource.MustParse("400G")}}
	share := Claim("share", "rail-1", []string{"port"}, "runs")
	share.Status.Allocation.Devices.Results[0].Driver, share.Status.Allocation.Devices.Results[0].ShareID = Fabric, new(types.UID("1"))
	share.Status.Allocation.Devices.Results[0].ConsumedCapacity = map[resourcev1.QualifiedName]resource.Quantity{"bandwidth": resource.MustParse("100G")}
	runs := Pod("runs", "a", "runs", Prepared)
	runs.Spec.ResourceClaims = append(runs.Spec.ResourceClaims, corev1.PodResourceClaim{Name: "share", ResourceClaimName: new("share")})
	return []runtime.Object{
		a, c, counters, parts, fabric, inPool(Node("a", true), "h100"), inPool(Node("b", false), "mig"), inPool(Node("c", true), "h100"),
		onNode(Claim("runs", "a", []string{"gpu-0"}, "runs")), onNode(Claim("fails", "a", []string{"gpu-1"}, "fails")),
		onNode(Claim("part", "b", []string{"gpu-0-half-0"}, "part")), onNode(Claim("lost", "d", []string{"gpu-9"}, "holds")), share,
		runs, Pod("fails", "a", "fails"), Pod("part", "b", "part", Prepared), Pod("holds", "d", "lost", Prepared), Pod("waits", "", "none"),
		&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: Namespace, Name: "without-claims"}}, Failure("fails"),
	}
}

// dividedSlices are those of a node with a GPU that is published whole and in halves.
func dividedSlices(node string) (counters, devices *resourcev1.ResourceSlice) {
	memory := func(amount string) map[string]resourcev1.Counter {
		return map[string]resourcev1.Counter{"memory": {Value: resource.MustParse(amount)}}
	}
	counters, devices = Slice(node), Slice(node, "gpu-0", "gpu-0-half-0", "gpu-0-half-1")
	counters.Name = node + "-counters"
	counters.Spec.Pool.ResourceSliceCount, devices.Spec.Pool.ResourceSliceCount = 2, 2
	counters.Spec.SharedCounters = []resourcev1.CounterSet{{Name: "gpu-0", Counters: memory("80Gi")}}
	for i, amount := range []string{"80Gi", "40Gi", "40Gi"} {
		devices.Spec.Devices[i].ConsumesCounters = []resourcev1.DeviceCounterConsumption{{CounterSet: "gpu-0", Counters: memory(amount)}}
	}
	return counters, devices
}

func inPool(node *corev1.Node, pool string) *corev1.Node {
	node.Labels = map[string]string{"karpenter.sh/nodepool": pool, "zone": "z-" + node.Name}
	return node
}

// onNode restricts a claim to the node of its pool, as the scheduler does.
func onNode(claim *resourcev1.ResourceClaim) *resourcev1.ResourceClaim {
	claim.Status.Allocation.NodeSelector = &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchFields: []corev1.NodeSelectorRequirement{{
		Key: metav1.ObjectNameField, Operator: corev1.NodeSelectorOpIn, Values: []string{claim.Status.Allocation.Devices.Results[0].Pool},
	}}}}}
	return claim
}

// TwoGPUs are a node with two GPUs, and their class.
func TwoGPUs() []runtime.Object {
	return []runtime.Object{Node("gpu-0", true), Slice("gpu-0", "gpu-0", "gpu-1"), Class("gpu", OfDriver)}
}

// Holder is a Pod of low priority in a phase, which has one of the GPUs.
func Holder(phase corev1.PodPhase) []runtime.Object {
	pod := Pod("holder", "gpu-0", "held")
	pod.Spec.Priority, pod.Spec.Containers, pod.Status.Phase = new(int32(-5)), []corev1.Container{{Name: "main", Image: "i"}}, phase
	return []runtime.Object{pod, onNode(Claim("held", "gpu-0", []string{"gpu-0"}, "holder"))}
}
