package inventory

import (
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
)

func TestIsNodeReady(t *testing.T) {
	t.Parallel()
	condition := func(status corev1.ConditionStatus) *corev1.Node {
		return &corev1.Node{Status: corev1.NodeStatus{Conditions: []corev1.NodeCondition{
			{Type: corev1.NodeDiskPressure, Status: corev1.ConditionFalse}, {Type: corev1.NodeReady, Status: status},
		}}}
	}
	tainted := func(key string, effect corev1.TaintEffect) *corev1.Node {
		node := condition(corev1.ConditionTrue)
		node.Spec.Taints = []corev1.Taint{{Key: key, Effect: effect}}
		return node
	}
	for name, test := range map[string]struct {
		node *corev1.Node
		want bool
	}{
		"Ready":                   {condition(corev1.ConditionTrue), true},
		"NotReady":                {condition(corev1.ConditionFalse), false},
		"Unknown":                 {condition(corev1.ConditionUnknown), false},
		"no condition":            {&corev1.Node{}, true},
		"unreachable, NoSchedule": {tainted(corev1.TaintNodeUnreachable, corev1.TaintEffectNoSchedule), false},
		"unreachable, NoExecute":  {tainted(corev1.TaintNodeUnreachable, corev1.TaintEffectNoExecute), false},
		"not ready, NoExecute":    {tainted(corev1.TaintNodeNotReady, corev1.TaintEffectNoExecute), false},
		"cordoned":                {tainted(corev1.TaintNodeUnschedulable, corev1.TaintEffectNoSchedule), true},
		"preferred elsewhere":     {tainted(corev1.TaintNodeUnreachable, corev1.TaintEffectPreferNoSchedule), true},
	} {
		require.Equal(t, test.want, IsNodeReady(test.node), name)
	}
}

// TestNodeNotReady has no device free or available on a node that is not ready, and leaves other
// nodes of the same kind alone.
func TestNodeNotReady(t *testing.T) {
	t.Parallel()
	source := fixed([]string{"dead", "idle", "n"}, []Slice{slice("dead", "gpu-0 gpu-1"), slice("n", "gpu-0 gpu-1")},
		allocation("dead", "gpu-1", Claim{Name: "c", Prepared: true}))
	source.IsNodeReady = func(name string) bool { return name == "n" }
	items := source.Take().Items
	require.Equal(t, []bool{true, true, false}, []bool{items[0].NotReady, items[1].NotReady, items[2].NotReady})
	dead := items[0].Pools[0]
	require.Equal(t, Device{Name: "gpu-0", State: Blocked, BlockedBy: "node dead, which is not Ready"}, dead.Devices[0])
	require.False(t, dead.Devices[0].Available())
	require.Equal(t, Prepared, dead.Devices[1].State)
	require.Equal(t, Usage{Used: 1, Total: 2}, dead.Usage)
	require.True(t, items[2].Pools[0].Devices[0].Available())
	require.Equal(t, Counts{Free: 2, Blocked: 1, Prepared: 1}, source.Take().Drivers[0].States)

	source.IsNodeReady = func(string) bool { return true }
	require.False(t, items[0].Equal(source.Take().Items[0]))
	require.False(t, items[1].Equal(source.Take().Items[1]), "also of a node without devices")
}

// TestNodeNotReadyShares has no more shares of a device, and names the node as the reason, where a
// counter would be another.
func TestNodeNotReadyShares(t *testing.T) {
	t.Parallel()
	slices := published(nil, sharing("gpu", nil))
	for i := range slices {
		slices[i].Node = "dead"
	}
	source := fixed(nil, slices, share("gpu", "1", "100"))
	require.Equal(t, "capacity m", source.Take().Items[0].Pools[0].Devices[0].BlockedBy)
	source.IsNodeReady = func(string) bool { return false }
	device := source.Take().Items[0].Pools[0].Devices[0]
	require.Equal(t, Allocated, device.State)
	require.Equal(t, "node dead, which is not Ready", device.BlockedBy)
	require.False(t, device.Available())
}
