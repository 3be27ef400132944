package stages_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// nodePlayer plays Stages on a Node and watches its heartbeat.
type nodePlayer struct {
	*player[*corev1.Node]

	// lastHeartbeat is when Ready's lastHeartbeatTime was last renewed, longest
	// the longest time between two renewals.
	lastHeartbeat time.Time
	longest       time.Duration
}

func newNodePlayer(t *testing.T, stages ...[]string) *nodePlayer {
	t.Helper()
	fresh := func() *corev1.Node { return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "node-0"}} }
	p := &nodePlayer{player: newPlayer(t, fresh, stages...), lastHeartbeat: begin}
	p.changed = p.noteHeartbeat
	p.pick()
	return p
}

func (p *nodePlayer) run(d time.Duration) {
	p.t.Helper()
	p.player.run(d)
	p.longest = max(p.longest, p.now.Sub(p.lastHeartbeat))
}

func (p *nodePlayer) noteHeartbeat() {
	renewed := p.condition(corev1.NodeReady).LastHeartbeatTime
	if renewed.Time.Equal(p.now.Truncate(time.Second)) {
		p.longest = max(p.longest, p.now.Sub(p.lastHeartbeat))
		p.lastHeartbeat = p.now
	}
}

func (p *nodePlayer) condition(kind corev1.NodeConditionType) corev1.NodeCondition {
	for _, condition := range p.object.Status.Conditions {
		if condition.Type == kind {
			return condition
		}
	}
	return corev1.NodeCondition{}
}

// requirePlugin asserts the state of the condition PluginRegistered.
func (p *nodePlayer) requirePlugin(status corev1.ConditionStatus, reason string) {
	p.t.Helper()
	condition := p.condition(pluginRegistered)
	require.Equal(p.t, status, condition.Status, condition)
	require.Equal(p.t, reason, condition.Reason, condition)
}

// until lets time pass until the plugin has the status, and tells how long that
// took.
func (p *nodePlayer) until(status corev1.ConditionStatus, limit time.Duration) time.Duration {
	p.t.Helper()
	took := p.player.until(func() bool { return p.condition(pluginRegistered).Status == status }, limit)
	require.Equal(p.t, p.now.Truncate(time.Second), p.condition(pluginRegistered).LastTransitionTime.UTC(), "changed now")
	return took
}
