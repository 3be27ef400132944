package why

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kwok-dra/kwok-dra/internal/dractl/output"
	"github.com/kwok-dra/kwok-dra/internal/extensions/explaining/simulator"
)

// gpu is the class and the driver of the examples.
const gpu = "gpu.nvidia.com"

// gpuWorld has nodes with eight GPUs, of which the Pods a, b, and so on, hold some.
func gpuWorld(held ...int) *simulator.World {
	world := &simulator.World{Classes: []*resourcev1.DeviceClass{{
		ObjectMeta: metav1.ObjectMeta{Name: gpu}, Spec: resourcev1.DeviceClassSpec{Selectors: []resourcev1.DeviceSelector{
			{CEL: &resourcev1.CELDeviceSelector{Expression: `device.driver == "` + gpu + `"`}},
		}},
	}}}
	for n, held := range held {
		name := fmt.Sprintf("h100-%d", n)
		world.Nodes = append(world.Nodes, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}})
		slice := &resourcev1.ResourceSlice{Spec: resourcev1.ResourceSliceSpec{Driver: gpu, NodeName: &name, Pool: resourcev1.ResourcePool{Name: name, Generation: 1, ResourceSliceCount: 1}}}
		holder := string(rune('a' + n))
		taken := gpuClaim("of-"+holder, int64(held))
		taken.Status.ReservedFor = []resourcev1.ResourceClaimConsumerReference{{Resource: "pods", Name: holder}}
		taken.Status.Allocation = &resourcev1.AllocationResult{}
		for i := range 8 {
			device := resourcev1.Device{Name: fmt.Sprintf("gpu-%d", i)}
			slice.Spec.Devices = append(slice.Spec.Devices, device)
			if i < held {
				taken.Status.Allocation.Devices.Results = append(taken.Status.Allocation.Devices.Results,
					resourcev1.DeviceRequestAllocationResult{Request: "gpus", Driver: gpu, Pool: name, Device: device.Name})
			}
		}
		world.Slices, world.Claims = append(world.Slices, slice), append(world.Claims, taken)
	}
	return world
}

func gpuClaim(name string, count int64) *resourcev1.ResourceClaim {
	made := &resourcev1.ResourceClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}}
	made.Spec.Devices.Requests = []resourcev1.DeviceRequest{{Name: "gpus", Exactly: &resourcev1.ExactDeviceRequest{
		DeviceClassName: gpu, AllocationMode: resourcev1.DeviceAllocationModeExactCount, Count: count,
	}}}
	return made
}

func gpuPod(name, claim string, since metav1.Time) *corev1.Pod {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}}
	pod.Spec.ResourceClaims = []corev1.PodResourceClaim{{Name: "gpus", ResourceClaimName: &claim}}
	pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable, LastTransitionTime: since}}
	return pod
}

// requireShown has docs/troubleshooting.md show what a command prints on a terminal of 80 columns.
func requireShown(t *testing.T, command, printed string) {
	t.Helper()
	t.Setenv("COLUMNS", "80")
	var out strings.Builder
	require.NoError(t, output.Text(&out, printed))
	page, err := os.ReadFile("../../../../docs/troubleshooting.md")
	require.NoError(t, err)
	_, shown, _ := strings.Cut(string(page), "$ "+command+"\n")
	shown, _, _ = strings.Cut(shown, "```")
	require.Equal(t, shown, out.String())
}

// TestExampleOfDocs shows a Pod that wants four of a few free GPUs.
func TestExampleOfDocs(t *testing.T) {
	world := gpuWorld(8, 8, 3)
	for i := 6; i < 8; i++ {
		world.Slices[2].Spec.Devices[i].Taints = []resourcev1.DeviceTaint{{Key: gpu + "/unhealthy", Effect: resourcev1.DeviceTaintEffectNoSchedule}}
	}
	const name = "training-0-gpus-x7k2p"
	world.Claims = append(world.Claims, gpuClaim(name, 4))
	pod := gpuPod("training-0", name, at(0))
	pod.Status.Conditions[0].Message = "0/3 nodes are available: 3 cannot allocate all claims. still not schedulable, preemption: 0/3 nodes are available: 3 Preemption is not helpful for scheduling."
	known := NewCluster(world.Claims, nil)
	known.Scheduler = simulator.NewScheduler(world)
	var text strings.Builder
	require.NoError(t, known.Answer(t.Context(), pod).Print(&text, at(300).Time))
	requireShown(t, "kwok-dractl why training-0", text.String())
}

// TestManyExampleOfDocs shows Pods of a Job and of a ReplicaSet, which wait for one GPU each.
func TestManyExampleOfDocs(t *testing.T) {
	world := gpuWorld(8)
	var pods []*corev1.Pod
	for i := range 290 {
		kind, owner, name := "Job", "train", fmt.Sprintf("train-%d", i)
		if i >= 200 {
			kind, owner, name = "ReplicaSet", "serve-6c5d", fmt.Sprintf("serve-6c5d-%d", i)
		}
		if i == 200 {
			name = "serve-6c5d-2xkzp"
		}
		world.Claims = append(world.Claims, gpuClaim(name+"-gpus", 1))
		pod := gpuPod(name, name+"-gpus", at(0))
		pod.OwnerReferences = []metav1.OwnerReference{{Kind: kind, Name: owner, Controller: new(true)}}
		pods = append(pods, pod)
	}
	known := NewCluster(world.Claims, nil)
	known.Scheduler = simulator.NewScheduler(world)
	var text strings.Builder
	require.NoError(t, PrintGroups(&text, Groups(known.Waiting(t.Context(), pods)), at(12*60).Time, "kwok-dractl why"))
	requireShown(t, "kwok-dractl why", text.String())
}
