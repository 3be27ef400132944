package stages_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
	"sigs.k8s.io/kwok/pkg/utils/gotpl"
	"sigs.k8s.io/kwok/pkg/utils/lifecycle"
)

// player plays Stages on one Node by the rules of kwok's node controller, the
// same in 0.6, 0.7 and 0.8, in a time of its own: every change of the Node picks
// a Stage anew and its delay starts anew, the Stage picked before is cancelled
// (unless none is picked), and a Stage whose patch changes nothing leaves the
// Node idle until somebody else changes it.
type player struct {
	t        *testing.T
	stages   lifecycle.Lifecycle
	renderer gotpl.Renderer
	node     *corev1.Node
	now      time.Time
	pending  *job
	played   []play

	// lastHeartbeat is when Ready's lastHeartbeatTime was last renewed, longest
	// the longest time between two renewals.
	lastHeartbeat time.Time
	longest       time.Duration
}

type job struct {
	stage *lifecycle.Stage
	due   time.Time
}

type play struct {
	stage string
	at    time.Time
}

func newPlayer(t *testing.T, stages ...[]string) *player {
	t.Helper()
	p := &player{t: t, stages: newLifecycle(t, stages...), now: time.Date(2026, 1, 2, 15, 4, 5, 250e6, time.UTC)}
	p.renderer = newRenderer(func() time.Time { return p.now })
	p.node = &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "node-0", CreationTimestamp: metav1.NewTime(p.now)}}
	p.lastHeartbeat = p.now
	p.pick()
	return p
}

// pick does what kwok does with an event of the Node.
func (p *player) pick() {
	event := &lifecycle.Event{Labels: p.node.Labels, Annotations: p.node.Annotations, Data: p.node}
	stage, err := p.stages.Match(p.t.Context(), event)
	require.NoError(p.t, err)
	if stage == nil {
		return
	}
	delay, _, err := stage.Delay(p.t.Context(), event, p.now)
	require.NoError(p.t, err)
	p.pending = &job{stage: stage, due: p.now.Add(max(delay, 0))}
}

// run lets time pass.
func (p *player) run(d time.Duration) {
	p.t.Helper()
	end := p.now.Add(d)
	for plays := 0; p.pending != nil && !p.pending.due.After(end); plays++ {
		require.Less(p.t, plays, 10_000, "Stages play in a loop: %v", p.played[max(0, len(p.played)-5):])
		p.now = p.pending.due
		p.play()
	}
	p.now = end
	p.longest = max(p.longest, p.now.Sub(p.lastHeartbeat))
}

func (p *player) play() {
	stage := p.pending.stage
	p.pending = nil
	_, err := stage.DoSteps(0, nil, p.node, p.renderer, nil, nil, func(patch *lifecycle.Patch) error {
		p.patch(patch.Data)
		return nil
	}, nil)
	require.NoError(p.t, err)
	p.played = append(p.played, play{stage: stage.Name(), at: p.now})
}

func (p *player) patch(patch []byte) {
	before, err := json.Marshal(p.node)
	require.NoError(p.t, err)
	after, err := strategicpatch.StrategicMergePatch(before, patch, corev1.Node{})
	require.NoError(p.t, err)
	patched := &corev1.Node{}
	require.NoError(p.t, json.Unmarshal(after, patched))
	stored, err := json.Marshal(patched) // as the API server, which keeps no fractions of a second
	require.NoError(p.t, err)
	if string(stored) == string(before) {
		return
	}
	p.node = &corev1.Node{}
	require.NoError(p.t, json.Unmarshal(stored, p.node))
	p.noteHeartbeat()
	p.pick()
}

func (p *player) noteHeartbeat() {
	renewed := p.condition(corev1.NodeReady).LastHeartbeatTime
	if renewed.Time.Equal(p.now.Truncate(time.Second)) {
		p.longest = max(p.longest, p.now.Sub(p.lastHeartbeat))
		p.lastHeartbeat = p.now
	}
}

// label sets a label to "true", or removes it, as a user does.
func (p *player) label(stage string, on bool) {
	labels := map[string]string{}
	for key, value := range p.node.Labels {
		labels[key] = value
	}
	delete(labels, stage+".stage.kwok.x-k8s.io")
	if on {
		labels[stage+".stage.kwok.x-k8s.io"] = "true"
	}
	p.node = p.node.DeepCopy()
	p.node.Labels = labels
	p.pick()
}

// annotate changes the Node in a way of its own.
func (p *player) annotate(key, value string) {
	p.node = p.node.DeepCopy()
	metav1.SetMetaDataAnnotation(&p.node.ObjectMeta, key, value)
	p.pick()
}

func (p *player) condition(kind corev1.NodeConditionType) corev1.NodeCondition {
	for _, condition := range p.node.Status.Conditions {
		if condition.Type == kind {
			return condition
		}
	}
	return corev1.NodeCondition{}
}

// requirePlugin asserts the state of the condition PluginRegistered.
func (p *player) requirePlugin(status corev1.ConditionStatus, reason string) {
	p.t.Helper()
	condition := p.condition(pluginRegistered)
	require.Equal(p.t, status, condition.Status, condition)
	require.Equal(p.t, reason, condition.Reason, condition)
}

// until lets time pass until the condition has the status, and tells how long
// that took.
func (p *player) until(status corev1.ConditionStatus, limit time.Duration) time.Duration {
	p.t.Helper()
	start := p.now
	for p.condition(pluginRegistered).Status != status {
		require.NotNil(p.t, p.pending, "nothing is left to play")
		wait := p.pending.due.Sub(p.now)
		require.LessOrEqual(p.t, p.now.Add(wait).Sub(start), limit)
		p.run(wait)
	}
	require.Equal(p.t, p.now.Truncate(time.Second), p.condition(pluginRegistered).LastTransitionTime.UTC(), "changed now")
	return p.now.Sub(start)
}

// count tells how often a Stage has been played.
func (p *player) count(stage string) int {
	n := 0
	for _, play := range p.played {
		if play.stage == stage {
			n++
		}
	}
	return n
}
