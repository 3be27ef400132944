package stages_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
)

const (
	unreachable = "node-unreachable"
	nodeCrash   = "node-crash"
	boot        = "node-boot"
)

// requireDown asserts that the node is as the node lifecycle controller makes one that it
// does not hear of, and that nothing has changed it since.
func requireDown(t *testing.T, p *nodePlayer, reason string) {
	t.Helper()
	for _, kind := range []corev1.NodeConditionType{corev1.NodeReady, corev1.NodeMemoryPressure, corev1.NodeDiskPressure, corev1.NodePIDPressure} {
		condition := p.condition(kind)
		require.Equal(t, corev1.ConditionUnknown, condition.Status, condition)
		require.Equal(t, "NodeStatusUnknown", condition.Reason)
	}
	p.requirePlugin(corev1.ConditionUnknown, reason)
}

// TestNodeCrash: a node that is dead stays so, and keeps its slices. When it boots its kubelet
// wipes them, and its plugin registers as on a new node.
func TestNodeCrash(t *testing.T) {
	t.Parallel()
	p := newStory(t, kwokFast)
	p.label(nodeCrash, true)
	p.run(time.Second)
	requireDown(t, p, "NodeCrashed")
	since := p.condition(corev1.NodeReady).LastTransitionTime
	p.run(time.Hour)
	requireDown(t, p, "NodeCrashed")
	require.Equal(t, since, p.condition(corev1.NodeReady).LastTransitionTime)

	p.label(nodeCrash, false)
	require.Zero(t, p.until(corev1.ConditionFalse, 0), "at once")
	p.requirePlugin(corev1.ConditionFalse, "NodeBooted")
	took := p.until(corev1.ConditionTrue, 5*time.Second)
	require.GreaterOrEqual(t, took, time.Second)
	require.Equal(t, corev1.ConditionTrue, p.condition(corev1.NodeReady).Status)
	require.Equal(t, 1, p.count(boot))
}

// TestNodeUnreachable: a node that is heard again is as it was. No slice is touched.
func TestNodeUnreachable(t *testing.T) {
	t.Parallel()
	p := newStory(t, kwokFast)
	p.label(unreachable, true)
	p.run(time.Hour)
	requireDown(t, p, "NodeUnreachable")

	p.label(unreachable, false)
	p.until(corev1.ConditionTrue, time.Second)
	require.Equal(t, corev1.ConditionTrue, p.condition(corev1.NodeReady).Status)
	require.Zero(t, p.count(boot))
}

// TestNodeCrashWithoutPlugin: without the Stages of a plugin a node dies and comes back too.
func TestNodeCrashWithoutPlugin(t *testing.T) {
	t.Parallel()
	p := newNodePlayer(t, kwokFast, chaosStages)
	p.run(time.Second)
	p.label(nodeCrash, true)
	p.run(time.Hour)
	require.Equal(t, corev1.ConditionUnknown, p.condition(corev1.NodeReady).Status)
	p.label(nodeCrash, false)
	p.run(time.Second)
	require.Equal(t, corev1.ConditionTrue, p.condition(corev1.NodeReady).Status)
	require.Len(t, p.object.Status.Conditions, 5, "kwok's")
}
