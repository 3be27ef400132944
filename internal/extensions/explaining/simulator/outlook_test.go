package simulator

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// pending is a Pod whose claim asks for GPUs, and the claim.
func pending(name string, count int64, selectors ...resourcev1.DeviceSelector) (*corev1.Pod, *resourcev1.ResourceClaim) {
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, UID: types.UID(name)},
		Spec:       corev1.PodSpec{ResourceClaims: []corev1.PodResourceClaim{{Name: "gpu", ResourceClaimName: &name}}},
	}
	claim := &resourcev1.ResourceClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}}
	claim.Spec.Devices.Requests = []resourcev1.DeviceRequest{{Name: "gpus", Exactly: &resourcev1.ExactDeviceRequest{
		DeviceClassName: "gpu", AllocationMode: resourcev1.DeviceAllocationModeExactCount, Count: count, Selectors: selectors,
	}}}
	return pod, claim
}

// TestOutlook counts the devices that each step leaves, and names who has the others.
func TestOutlook(t *testing.T) {
	t.Parallel()
	world := gpus(3, 4)
	world.Slices[0].Spec.Devices[0].Taints = []resourcev1.DeviceTaint{{Key: "xid", Value: "79", Effect: resourcev1.DeviceTaintEffectNoSchedule}}
	world.Nodes[2].Spec.Unschedulable = true
	h100 := selecting(`device.attributes["` + driver + `"].model == "H100"`)
	for _, holder := range []string{"a", "b"} {
		pod, claim := pending(holder, 1, h100)
		world.Claims = append(world.Claims, claim)
		require.NotEmpty(t, NewScheduler(world).Schedule(t.Context(), pod).Node)
		scheduler := NewScheduler(world)
		placed := scheduler.Schedule(t.Context(), pod)
		world.Claims[len(world.Claims)-1] = placed.Claims[0]
		world.Pods = append(world.Pods, &corev1.Pod{Spec: corev1.PodSpec{NodeName: placed.Node}})
	}
	pod, claim := pending("waits", 2, h100)
	world.Claims = append(world.Claims, claim)
	outlook := NewScheduler(world).Outlook(t.Context(), pod)
	require.NoError(t, outlook.Err)
	require.False(t, outlook.Fits())
	require.Len(t, outlook.Supplies, 1)
	require.Equal(t, "claim waits, request gpus wants 2 of class gpu: 8 devices of the class on 2 nodes, 4 match `"+h100.CEL.Expression+"`, "+
		"1 tainted (xid=79:NoSchedule 1), 2 allocated (default/a 1, default/b 1), 1 left; nearest: node node-0001 lacks 1", outlook.Supplies[0].String())
	require.Nil(t, world.Claims[2].Status.Allocation, "nothing is given")

	world.Slices[0].Spec.Devices[0].Taints = nil
	world.Slices[1].Spec.Devices[1].Attributes["model"] = world.Slices[1].Spec.Devices[0].Attributes["model"]
	require.True(t, NewScheduler(world).Outlook(t.Context(), pod).Fits())
}

// TestOutlookOfNothing has no devices of the class, no class and no claim.
func TestOutlookOfNothing(t *testing.T) {
	t.Parallel()
	world := gpus(2, 1)
	pod, claim := pending("waits", 1)
	world.Claims = []*resourcev1.ResourceClaim{claim}
	world.Classes[0].Spec.Selectors = []resourcev1.DeviceSelector{selecting("false")}
	none := NewScheduler(world).Outlook(t.Context(), pod).Supplies
	require.Equal(t, "claim waits, request gpus wants 1 of class gpu: none of 2 devices on the nodes that the Pod may be on is of the class", none[0].String())
	for i := range world.Slices {
		world.Slices[i].Spec.Pool.ResourceSliceCount = 2
	}
	none = NewScheduler(world).Outlook(t.Context(), pod).Supplies
	require.Equal(t, "claim waits, request gpus wants 1 of class gpu: the pools of all 2 devices are incomplete or invalid", none[0].String())
	world.Slices = nil
	none = NewScheduler(world).Outlook(t.Context(), pod).Supplies
	require.Equal(t, "claim waits, request gpus wants 1 of class gpu: no node that the Pod may be on has any device", none[0].String())
	world.Classes = nil
	require.EqualError(t, NewScheduler(world).Outlook(t.Context(), pod).Err, `resourceclaim "waits", request gpus: deviceclass "gpu" not found`)
	world.Claims = nil
	require.ErrorAs(t, NewScheduler(world).Outlook(t.Context(), pod).Err, new(*Missing))
}

// TestInterrupted: a search that the user stops says nothing about combinations of devices.
func TestInterrupted(t *testing.T) {
	t.Parallel()
	_, claim := pending("waits", 2)
	s := NewScheduler(gpus(1, 4))
	ctx, cancel := context.WithCancel(t.Context())
	claims := []*resourcev1.ResourceClaim{claim}
	found, err := s.canAllocate(ctx, s.nodes[0], claims)
	require.NoError(t, err)
	require.True(t, found)
	cancel()
	_, err = s.canAllocate(ctx, s.nodes[0], claims)
	require.ErrorIs(t, err, context.Canceled)
}
