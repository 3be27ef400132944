package stages_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"github.com/kwok-dra/kwok-dra/internal/devices"
	"github.com/kwok-dra/kwok-dra/internal/observe/lifecycle"
	"github.com/kwok-dra/kwok-dra/stages/node/general"
)

const (
	register   = "node-dra-plugin-register"
	unregister = "node-dra-plugin-unregister"
	wipe       = "node-dra-plugin-wipe"
	crash      = "node-dra-plugin-crash"
	restart    = "node-kubelet-restart"
	reset      = "node-kubelet-restart-reset"
	notReady   = "node-not-ready"
	withLease  = "node-heartbeat-with-lease"

	declareFeatures = "node-declare-features"

	kubeletRestarted = "dra.kwok.x-k8s.io/KubeletRestarted"
	featuresDeclared = "dra.kwok.x-k8s.io/FeaturesDeclared"
)

// newStory is a Node with kwok's Stages, general and chaos, whose plugin has
// registered.
func newStory(t *testing.T, kwok []string) *nodePlayer {
	t.Helper()
	p := newNodePlayer(t, kwok, generalStages, chaosStages)
	p.until(corev1.ConditionTrue, 5*time.Second)
	return p
}

// requireHeartbeats asserts that kwok's heartbeat, which is due after 600 to
// 610 s, was never late.
func requireHeartbeats(t *testing.T, p *nodePlayer) {
	t.Helper()
	require.Positive(t, p.count(withLease))
	require.Less(t, p.longest, 611*time.Second)
}

// requireTook compares to the millisecond, which is what the messages tell.
func requireTook(t *testing.T, want, got time.Duration) {
	t.Helper()
	require.InDelta(t, want, got, float64(time.Millisecond))
}

func TestRegister(t *testing.T) {
	t.Parallel()
	p := newNodePlayer(t, kwokFast, generalStages, chaosStages)
	took := p.until(corev1.ConditionTrue, 5*time.Second)
	require.GreaterOrEqual(t, took, time.Second)
	require.Less(t, took, 5*time.Second)
	p.requirePlugin(corev1.ConditionTrue, "PluginRegistered")
	require.Len(t, p.object.Status.Conditions, 6, "kwok's five and ours")

	p.run(24 * time.Hour)
	require.Equal(t, 1, p.count(register), "plays once")
	requireHeartbeats(t, p)
	require.Len(t, p.played, 2+p.count(withLease), "and nothing else is played")
}

// TestDeclareFeatures: a node declares its features once and its plugin registers beside that, even if
// the API server or kwok does not know the field.
func TestDeclareFeatures(t *testing.T) {
	t.Parallel()
	for name, isKnown := range map[string]bool{"known": true, "dropped": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newNodePlayer(t, kwokFast, generalStages, chaosStages, featureStages)
			var declared []string
			p.changed = func() {
				p.noteHeartbeat()
				if len(p.object.Status.DeclaredFeatures) > 0 {
					declared = p.object.Status.DeclaredFeatures
				}
				if !isKnown {
					p.object.Status.DeclaredFeatures = nil
				}
			}
			p.until(corev1.ConditionTrue, 5*time.Second)
			p.run(24 * time.Hour)
			require.Equal(t, []string{"DRANodeAllocatableResources", "DRAOptionalNodeOperations"}, declared)
			require.Equal(t, corev1.ConditionTrue, p.condition(featuresDeclared).Status)
			require.Equal(t, []int{1, 1}, []int{p.count(register), p.count(declareFeatures)})
			requireHeartbeats(t, p)
		})
	}
}

func TestCrash(t *testing.T) {
	t.Parallel()
	p := newStory(t, kwokFast)
	p.label(crash, true)
	require.Zero(t, p.until(corev1.ConditionUnknown, 0), "at once")
	p.requirePlugin(corev1.ConditionUnknown, "PluginCrashed")
	requireTook(t, 30*time.Second, p.until(corev1.ConditionFalse, time.Minute))
	p.requirePlugin(corev1.ConditionFalse, "PluginCrashed")

	p.run(24 * time.Hour)
	p.requirePlugin(corev1.ConditionFalse, "PluginCrashed")
	requireHeartbeats(t, p)

	p.label(crash, false)
	requireTook(t, 1100*time.Millisecond, p.until(corev1.ConditionTrue, time.Minute))
	p.requirePlugin(corev1.ConditionTrue, "PluginRegistered")
	p.run(time.Hour)
	require.Equal(t, []int{2, 1, 1}, []int{p.count(register), p.count(crash), p.count(wipe)})
}

func TestCrashHealsBeforeTheKubeletWipes(t *testing.T) {
	t.Parallel()
	p := newStory(t, kwokFast)
	p.label(crash, true)
	p.run(20 * time.Second)
	p.label(crash, false)
	requireTook(t, 1100*time.Millisecond, p.until(corev1.ConditionTrue, time.Minute))
	p.run(time.Hour)
	require.Zero(t, p.count(wipe))
}

func TestUnregister(t *testing.T) {
	t.Parallel()
	p := newStory(t, kwokFast)
	p.label(unregister, true)
	require.Zero(t, p.until(corev1.ConditionUnknown, 0))
	p.requirePlugin(corev1.ConditionUnknown, "PluginUnregistered")
	requireTook(t, 30*time.Second, p.until(corev1.ConditionFalse, time.Minute))
	p.requirePlugin(corev1.ConditionFalse, "PluginUnregistered")
	p.run(time.Hour)
	p.label(unregister, false)
	took := p.until(corev1.ConditionTrue, 5*time.Second)
	require.GreaterOrEqual(t, took, time.Second)
}

// kwok starts a delay anew when the Node changes, and when kwok itself starts.
// The times that end the messages run on.
func TestTimesRunOnWhileTheNodeChanges(t *testing.T) {
	t.Parallel()
	t.Run("wipe", func(t *testing.T) {
		t.Parallel()
		p := newStory(t, kwokFast)
		p.label(crash, true)
		for range 9 {
			p.run(3 * time.Second)
			p.annotate("example.com/time", p.now.String())
			p.requirePlugin(corev1.ConditionUnknown, "PluginCrashed")
		}
		requireTook(t, 3*time.Second, p.until(corev1.ConditionFalse, time.Minute))
	})
	t.Run("restart", func(t *testing.T) {
		t.Parallel()
		p := newStory(t, kwokFast)
		p.label(restart, true)
		p.run(time.Second)
		p.label(restart, false)
		requireTook(t, 600*time.Millisecond, p.until(corev1.ConditionTrue, time.Minute))
	})
}

func TestKubeletRestart(t *testing.T) {
	t.Parallel()
	p := newStory(t, kwokFast)
	for range 3 {
		p.label(restart, true)
		require.Zero(t, p.until(corev1.ConditionFalse, 0), "at once")
		p.requirePlugin(corev1.ConditionFalse, "KubeletRestarted")
		requireTook(t, 1600*time.Millisecond, p.until(corev1.ConditionTrue, time.Minute))
		require.Equal(t, corev1.ConditionTrue, p.condition(kubeletRestarted).Status)

		p.run(time.Hour)
		p.requirePlugin(corev1.ConditionTrue, "PluginRegistered")
		p.label(restart, false)
		p.run(time.Hour)
		require.Equal(t, corev1.ConditionFalse, p.condition(kubeletRestarted).Status)
	}
	require.Equal(t, []int{4, 3, 3}, []int{p.count(register), p.count(restart), p.count(reset)}, "once per label")
	requireHeartbeats(t, p)
}

func TestKubeletRestartWhileCrashed(t *testing.T) {
	t.Parallel()
	p := newStory(t, kwokFast)
	p.label(crash, true)
	p.run(10 * time.Second)
	p.label(restart, true)
	p.until(corev1.ConditionFalse, 20*time.Second) // at once, but for one time in 10,000
	p.run(time.Hour)
	p.requirePlugin(corev1.ConditionFalse, "PluginCrashed")
	p.label(crash, false)
	requireTook(t, 1100*time.Millisecond, p.until(corev1.ConditionTrue, time.Minute))
	require.Equal(t, 1, p.count(restart))
}

func TestCrashFromTheStart(t *testing.T) {
	t.Parallel()
	p := newNodePlayer(t, kwokFast, generalStages, chaosStages)
	p.label(crash, true)
	p.run(24 * time.Hour)
	require.Empty(t, p.condition(pluginRegistered), "never registered")
	requireHeartbeats(t, p)
}

// A Node that kwok's own chaos holds NotReady keeps its plugin and its slices,
// and what happens to the plugin waits until the Node is Ready again.
func TestNotReady(t *testing.T) {
	t.Parallel()
	p := newStory(t, append(kwokStages(t, "node/chaos", notReady), kwokFast...))
	p.label(notReady, true)
	p.run(time.Minute)
	require.Equal(t, corev1.ConditionFalse, p.condition(corev1.NodeReady).Status)
	p.requirePlugin(corev1.ConditionTrue, "PluginRegistered")

	p.label(crash, true)
	p.run(time.Minute)
	p.requirePlugin(corev1.ConditionTrue, "PluginRegistered")
	require.Greater(t, p.count(notReady), 100, "kwok's Stage is not held up")

	p.label(notReady, false)
	p.run(0)
	require.Equal(t, corev1.ConditionTrue, p.condition(corev1.NodeReady).Status)
	p.requirePlugin(corev1.ConditionUnknown, "PluginCrashed")
	requireTook(t, 30*time.Second, p.until(corev1.ConditionFalse, time.Minute))
}

// Without leases the heartbeat is all that tells of a Node's life, and the
// controller-manager waits no longer than 40 s (50 s since 1.32) for it.
func TestHeartbeatsWithoutLeases(t *testing.T) {
	t.Parallel()
	p := newStory(t, kwokHeartbeat)
	for _, stage := range []string{crash, unregister, restart} {
		p.run(5 * time.Minute)
		p.label(stage, true)
		p.run(5 * time.Minute)
		p.label(stage, false)
	}
	p.run(5 * time.Minute)
	require.Equal(t, []int{4, 1, 1, 1, 1, 2}, []int{
		p.count(register), p.count(crash), p.count(unregister),
		p.count(restart), p.count(reset), p.count(wipe),
	})
	require.LessOrEqual(t, p.longest, 30*time.Second)
}

func TestAnnotations(t *testing.T) {
	t.Parallel()
	p := newNodePlayer(t, kwokFast, generalStages, chaosStages)
	p.annotate(register+".stage.kwok.x-k8s.io/delay", "90s")
	requireTook(t, 90*time.Second, p.until(corev1.ConditionTrue, time.Hour))
	for _, stage := range []string{crash, unregister} {
		p.annotate(stage+".stage.kwok.x-k8s.io/delay", "5m")
		p.label(stage, true)
		requireTook(t, 5*time.Minute, p.until(corev1.ConditionFalse, time.Hour))
		p.label(stage, false)
		requireTook(t, 90*time.Second, p.until(corev1.ConditionTrue, time.Hour))
	}
}

// Without general the plugin never registers, and chaos has nothing to break.
func TestChaosWithoutGeneral(t *testing.T) {
	t.Parallel()
	p := newNodePlayer(t, kwokFast, chaosStages)
	p.label(crash, true)
	p.run(time.Hour)
	p.label(restart, true)
	p.run(time.Hour)
	require.Empty(t, p.condition(pluginRegistered))
	require.Zero(t, p.count(crash))
	requireHeartbeats(t, p)
}

// The contract with kwok-dra: True publishes, Unknown leaves things as they
// are, False retires.
func TestConfigurationFollowsTheStages(t *testing.T) {
	t.Parallel()
	set, template := configuration(t, general.KwokDRAConfiguration), &devices.Template{}
	requireState := func(p *nodePlayer, publish, retire bool) {
		t.Helper()
		node := lifecycle.NewObject(p.object)
		got, err := set.PublishWhen(template).Matches(t.Context(), node)
		require.NoError(t, err)
		require.Equal(t, publish, got)
		got, err = set.RetireWhen(template).Matches(t.Context(), node)
		require.NoError(t, err)
		require.Equal(t, retire, got)
	}

	p := newNodePlayer(t, kwokFast, generalStages, chaosStages)
	requireState(p, false, false)
	p.run(0)
	requireState(p, false, false)
	p.until(corev1.ConditionTrue, time.Minute)
	requireState(p, true, false)
	p.label(crash, true)
	p.until(corev1.ConditionUnknown, time.Minute)
	requireState(p, false, false)
	p.until(corev1.ConditionFalse, time.Minute)
	requireState(p, false, true)
	p.label(crash, false)
	p.until(corev1.ConditionTrue, time.Minute)
	requireState(p, true, false)
}
