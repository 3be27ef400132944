package usage_test

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kwok-dra/kwok-dra/internal/extensions/inventory"
	"github.com/kwok-dra/kwok-dra/internal/kubectldra/internal/worldtest"
	"github.com/kwok-dra/kwok-dra/internal/kubectldra/listing"
	"github.com/kwok-dra/kwok-dra/internal/kubectldra/reading"
	"github.com/kwok-dra/kwok-dra/internal/kubectldra/usage"
	"github.com/kwok-dra/kwok-dra/internal/testing/tabletest"
)

// read returns what pods and claims read of objects.
func read(t *testing.T, objects ...any) usage.Objects {
	t.Helper()
	found, err := listing.Read(t.Context(), reading.NewReaderOf(worldtest.New(t, objects...).Client), worldtest.Namespace, "")
	require.NoError(t, err)
	return found
}

// TestStates has a Pod and a claim in each state, and since when.
func TestStates(t *testing.T) {
	t.Parallel()
	c := usage.NewCluster(read(t, worldtest.PodsAndClaims()))
	type found struct {
		state usage.State
		since time.Duration // since the start
	}
	const unknown = -1
	sinceStart := func(since *time.Time) time.Duration {
		if since == nil {
			return unknown
		}
		return since.Sub(worldtest.Start)
	}
	pods := map[string]found{}
	for _, use := range c.ListUses() {
		pods[use.Pod] = found{use.State, sinceStart(use.Since)}
	}
	require.Equal(t, map[string]found{
		tabletest.Pod: {usage.Prepared, 6 * time.Second},
		"wants":       {usage.Waiting, 3 * time.Second},
		"unmade":      {usage.Waiting, time.Second},
		"serve":       {usage.Failing, 4 * time.Second},
		"sick":        {usage.Unhealthy, unknown},
		"tainted":     {usage.Tainted, 30 * time.Minute},
		"gone":        {usage.Gone, unknown},
		"ended":       {usage.Ended, 50 * time.Minute},
		"ending":      {usage.Ending, 3530 * time.Second},
	}, pods)

	claims := map[string]found{}
	for _, claim := range c.ListClaims() {
		claims[claim.Name] = found{claim.State, sinceStart(claim.Since)}
	}
	require.Equal(t, map[string]found{
		"train-gpus": {usage.Prepared, 6 * time.Second},
		"wants":      {usage.Waiting, 0},
		"nobody":     {usage.Unused, 0},
		"serve":      {usage.Failing, 4 * time.Second},
		"sick":       {usage.Unhealthy, unknown},
		"tainted":    {usage.Tainted, 30 * time.Minute},
		"gone":       {usage.Gone, unknown},
		"idle":       {usage.Idle, 2 * time.Second},
		"left":       {usage.Idle, unknown},
		"ended":      {usage.Ended, 50 * time.Minute},
		"ending":     {usage.Ending, 3530 * time.Second},
	}, claims)
}

// TestUnseen: what could not be read is not taken for missing.
func TestUnseen(t *testing.T) {
	t.Parallel()
	objects := read(t, worldtest.PodsAndClaims())
	objects.Slices, objects.IsWithoutSlices = nil, true
	for _, use := range usage.NewCluster(objects).ListUses() {
		require.NotEqual(t, usage.Gone, use.State, use.Pod)
	}
	objects.Claims, objects.IsWithoutClaims = nil, true
	for _, use := range usage.NewCluster(objects).ListUses() {
		if use.Claim != "" {
			require.Equal(t, usage.Unknown, use.State, use.Pod)
		}
	}

	objects = read(t, worldtest.PodsAndClaims())
	objects.Pods, objects.IsWithoutPods = nil, true
	c := usage.NewCluster(objects)
	uses := c.ListUses()
	require.Len(t, uses, 9, "claims say which Pods have their devices")
	require.Equal(t, usage.Allocated, c.DescribeClaim(worldtest.Claim("left", "b", []string{"gpu-1"}, "left")).State)
}

// TestSilentDriver: a device is gone because its driver publishes nothing on the node, and a Pod that cannot start for it
// has the kubelet's words.
func TestSilentDriver(t *testing.T) {
	t.Parallel()
	const silence = "driver " + worldtest.Driver + " publishes no devices on node a: is its plugin running there?"
	runs, waits := worldtest.Pod("train", "a", "train", worldtest.Prepared), worldtest.Pod("serve", "a", "serve")
	event := worldtest.Failure("serve")
	objects := []any{
		worldtest.Slice("b", "gpu-0"), runs, waits, event,
		worldtest.Claim("train", "a", []string{"gpu-0"}, "train"), worldtest.Claim("serve", "a", []string{"gpu-1"}, "serve"),
	}
	find := func(objects ...any) (pods, claims map[string]string) {
		c := usage.NewCluster(read(t, objects...))
		pods, claims = map[string]string{}, map[string]string{}
		for _, use := range c.ListUses() {
			pods[use.Pod] = string(use.State) + ": " + use.Reason
		}
		for _, claim := range c.ListClaims() {
			claims[claim.Name] = string(claim.State) + ": " + claim.Reason
		}
		return pods, claims
	}
	pods, claims := find(objects...)
	require.Equal(t, map[string]string{"train": "gone: " + silence, "serve": "failing: " + event.Message + ": " + silence}, pods)
	require.Equal(t, pods, claims)

	pods, claims = find(append(objects, worldtest.Slice("a", "gpu-7"))...)
	require.Equal(t, map[string]string{"train": "gone: no ResourceSlice publishes the device any more", "serve": "failing: " + event.Message}, pods)
	require.Equal(t, pods, claims)
}

// TestConditions: the word of a driver counts, and a taint of a rule as one of the driver.
func TestConditions(t *testing.T) {
	t.Parallel()
	claim := worldtest.Claim("train", "a", []string{"gpu-0"}, "train")
	ready := metav1.Condition{Type: "Ready", Status: metav1.ConditionFalse, Reason: "NoLink", Message: "the link is down", LastTransitionTime: worldtest.At(5)}
	claim.Status.Devices = []resourcev1.AllocatedDeviceStatus{{Driver: worldtest.Driver, Pool: "a", Device: "gpu-0", Conditions: []metav1.Condition{ready}}}
	objects := read(t, worldtest.Slice("a", "gpu-0"), claim, worldtest.Pod("train", "a", "train", worldtest.Prepared))
	claim = objects.Claims[0]
	use := usage.NewCluster(objects).ListUses()[0]
	require.Equal(t, usage.Failing, use.State)
	require.Equal(t, "the link is down", use.Reason)

	claim.Status.Devices[0].Conditions[0].Status = metav1.ConditionTrue
	objects.Pods[0].Status.Conditions = nil
	require.Equal(t, usage.Prepared, usage.NewCluster(objects).ListUses()[0].State)

	claim.Status.Devices = nil
	claim.Status.Allocation.AllocationTimestamp = nil
	scheduled := corev1.PodCondition{Type: corev1.PodScheduled, Status: corev1.ConditionTrue, LastTransitionTime: worldtest.At(3)}
	objects.Pods[0].Status.Conditions = []corev1.PodCondition{scheduled}
	use = usage.NewCluster(objects).ListUses()[0]
	require.Equal(t, usage.Allocated, use.State)
	require.Equal(t, worldtest.Start.Add(3*time.Second), *use.Since, "the Pod got its node right after the allocation")

	objects.Rules = []inventory.TaintRule{{Name: "repair", Selector: &resourcev1.DeviceTaintSelector{Pool: new("a")}, Taint: inventory.Taint{Key: "repair", Effect: resourcev1.DeviceTaintEffectNoSchedule, Rule: "repair"}}}
	use = usage.NewCluster(objects).ListUses()[0]
	require.Equal(t, usage.Tainted, use.State)
	require.Equal(t, "repair:NoSchedule by DeviceTaintRule repair", use.Reason)
}

// TestDevices has what a device is, and what a claim takes of it.
func TestDevices(t *testing.T) {
	t.Parallel()
	objects := read(t, worldtest.PodsAndClaims())
	train := objects.Claims[slices.IndexFunc(objects.Claims, func(c *resourcev1.ResourceClaim) bool { return c.Name == "train-gpus" })]
	result := &train.Status.Allocation.Devices.Results[0]
	result.ConsumedCapacity = map[resourcev1.QualifiedName]resource.Quantity{worldtest.Driver + "/memory": resource.MustParse("8Gi")}
	device := usage.NewCluster(objects).DescribeClaim(train).Devices[0]
	require.Equal(t, "memory=8Gi", device.DescribeConsumed())
	require.Equal(t, tabletest.Product, device.Product)
	require.Equal(t, "GPU-"+tabletest.Node+"-gpu-0", device.UUID)
	memory, found := device.Attribute("memory")
	require.True(t, found)
	require.Equal(t, "80Gi", memory)
	_, found = device.Attribute("colour")
	require.False(t, found)
}
