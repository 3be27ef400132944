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

	"github.com/kwok-dra/kwok-dra/pkg/dractl/output"
	"github.com/kwok-dra/kwok-dra/pkg/simulator"
)

// TestExampleOfDocs: what docs/troubleshooting.md shows of a Pod that wants four of a few free GPUs is
// what is printed.
func TestExampleOfDocs(t *testing.T) {
	t.Setenv("COLUMNS", "80")
	const gpu = "gpu.nvidia.com"
	claim := func(name string, count int64) *resourcev1.ResourceClaim {
		made := &resourcev1.ResourceClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}}
		made.Spec.Devices.Requests = []resourcev1.DeviceRequest{{Name: "gpus", Exactly: &resourcev1.ExactDeviceRequest{
			DeviceClassName: gpu, AllocationMode: resourcev1.DeviceAllocationModeExactCount, Count: count,
		}}}
		return made
	}
	world := &simulator.World{Classes: []*resourcev1.DeviceClass{{
		ObjectMeta: metav1.ObjectMeta{Name: gpu}, Spec: resourcev1.DeviceClassSpec{Selectors: []resourcev1.DeviceSelector{
			{CEL: &resourcev1.CELDeviceSelector{Expression: `device.driver == "` + gpu + `"`}},
		}},
	}}}
	for n, held := range []int{8, 8, 3} {
		name := fmt.Sprintf("h100-%d", n)
		world.Nodes = append(world.Nodes, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}})
		slice := &resourcev1.ResourceSlice{Spec: resourcev1.ResourceSliceSpec{Driver: gpu, NodeName: &name, Pool: resourcev1.ResourcePool{Name: name, Generation: 1, ResourceSliceCount: 1}}}
		holder := string(rune('a' + n))
		taken := claim("of-"+holder, int64(held))
		taken.Status.ReservedFor = []resourcev1.ResourceClaimConsumerReference{{Resource: "pods", Name: holder}}
		taken.Status.Allocation = &resourcev1.AllocationResult{}
		for i := range 8 {
			device := resourcev1.Device{Name: fmt.Sprintf("gpu-%d", i)}
			if n == 2 && i > 5 {
				device.Taints = []resourcev1.DeviceTaint{{Key: gpu + "/unhealthy", Effect: resourcev1.DeviceTaintEffectNoSchedule}}
			}
			slice.Spec.Devices = append(slice.Spec.Devices, device)
			if i < held {
				taken.Status.Allocation.Devices.Results = append(taken.Status.Allocation.Devices.Results,
					resourcev1.DeviceRequestAllocationResult{Request: "gpus", Driver: gpu, Pool: name, Device: device.Name})
			}
		}
		world.Slices, world.Claims = append(world.Slices, slice), append(world.Claims, taken)
	}
	const name = "training-0-gpus-x7k2p"
	world.Claims = append(world.Claims, claim(name, 4))
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "training-0"}}
	pod.Spec.ResourceClaims = []corev1.PodResourceClaim{{Name: "gpus", ResourceClaimName: new(name)}}
	pod.Status.Conditions = []corev1.PodCondition{{
		Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable, LastTransitionTime: at(0),
		Message: "0/3 nodes are available: 3 cannot allocate all claims. still not schedulable, preemption: 0/3 nodes are available: 3 Preemption is not helpful for scheduling.",
	}}
	known := NewCluster(world.Claims, nil)
	known.Scheduler = simulator.NewScheduler(world)
	var text, out strings.Builder
	require.NoError(t, known.Answer(t.Context(), pod).Print(&text, at(300).Time))
	require.NoError(t, output.Text(&out, text.String()))
	page, err := os.ReadFile("../../docs/troubleshooting.md")
	require.NoError(t, err)
	_, shown, _ := strings.Cut(string(page), "$ kwok-dractl why training-0\n")
	shown, _, _ = strings.Cut(shown, "```")
	require.Equal(t, shown, out.String())
}
