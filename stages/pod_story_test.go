package stages_test

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"github.com/kwok-dra/kwok-dra/stages/node/general"
	podchaos "github.com/kwok-dra/kwok-dra/stages/pod/chaos"
	podgeneral "github.com/kwok-dra/kwok-dra/stages/pod/general"
)

const (
	prepare          = "pod-prepare"
	ready            = "pod-ready"
	complete         = "pod-complete"
	unprepare        = "pod-unprepare"
	terminate        = "pod-terminate"
	deletion         = "pod-delete"
	prepareFail      = "pod-prepare-fail"
	prepareFailReset = "pod-prepare-fail-reset"
	unprepareFail    = "pod-unprepare-fail"
	imagePullFail    = "pod-image-pull-fail"
)

// newFastPod is a Pod under the fast Stages, with chaos.
func newFastPod(t *testing.T, pod *corev1.Pod) *podPlayer {
	t.Helper()
	return newPodPlayer(t, pod, configuration(t, podchaos.KwokDRAConfiguration), podFastStages, kwokPodFast, podChaosStages)
}

// newGeneralPod is a Pod under the general Stages, with chaos.
func newGeneralPod(t *testing.T, pod *corev1.Pod) *podPlayer {
	t.Helper()
	set := configuration(t, general.KwokDRAConfiguration, podgeneral.KwokDRAConfiguration)
	return newPodPlayer(t, pod, set, podGeneralStages, podChaosStages)
}

// newRunningPod is one with claims that runs.
func newRunningPod(t *testing.T, pod *corev1.Pod) *podPlayer {
	t.Helper()
	p := newGeneralPod(t, pod)
	p.untilPhase(corev1.PodRunning)
	p.run(latency)
	require.True(t, showsHealth(p.object))
	p.seen = p.seen[len(p.seen)-1:]
	return p
}

func (p *podPlayer) requireSeen(states ...podState) {
	p.t.Helper()
	require.Equal(p.t, states, p.seen)
}

func (p *podPlayer) requirePlayed(stages ...string) {
	p.t.Helper()
	var played []string
	for _, play := range p.played {
		played = append(played, play.stage)
	}
	require.Equal(p.t, stages, played)
}

func TestFastPod(t *testing.T) {
	t.Parallel()
	for name, claim := range map[string]func(*corev1.Pod){"claim": withClaim, "extended resource": withExtendedResource} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newFastPod(t, newPod(claim))
			require.Equal(t, latency, p.untilPhase(corev1.PodRunning), "as soon as its claims are prepared")
			p.run(time.Hour)
			p.requirePlayed(ready)
			p.requireSeen(podState{"Pending", "", ""}, podState{"Pending", "True", ""}, podState{"Running", "True", "True"})
			require.NotNil(t, p.container().State.Running)
			require.Equal(t, podIP, p.object.Status.PodIP)

			p.delete()
			require.Zero(t, p.untilGone(), "no waiting")
		})
	}
	t.Run("no claim", func(t *testing.T) {
		t.Parallel()
		p := newFastPod(t, newPod())
		require.Zero(t, p.untilPhase(corev1.PodRunning))
		p.requirePlayed(ready)
	})
	t.Run("no sidecar", func(t *testing.T) {
		t.Parallel()
		p := newPodPlayer(t, newPod(withClaim), nil, podFastStages, kwokPodFast, podChaosStages)
		p.run(time.Hour)
		p.requirePlayed()
	})
	t.Run("job", func(t *testing.T) {
		t.Parallel()
		p := newFastPod(t, newPod(withClaim, ofJob))
		p.untilPhase(corev1.PodSucceeded)
		p.run(time.Hour)
		p.requirePlayed(ready, complete)
	})
}

// The order is that of the recorded kubelet.
func TestGeneralPod(t *testing.T) {
	t.Parallel()
	for name, claim := range map[string]func(*corev1.Pod){"claim": withClaim, "extended resource": withExtendedResource} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newGeneralPod(t, newPod(claim))
			require.Equal(t, latency, p.untilStatus(corev1.PodReadyToStartContainers, corev1.ConditionFalse))
			require.Equal(t, "ContainerCreating", p.container().State.Waiting.Reason)
			require.Empty(t, p.object.Status.PodIP)
			started := p.object.Status.StartTime
			waiting := p.object.Status.ContainerStatuses

			requireBetween(t, 200*time.Millisecond, 400*time.Millisecond, p.untilStatus(prepareResources, corev1.ConditionTrue))
			require.Equal(t, waiting, p.object.Status.ContainerStatuses, "pod-prepare writes nothing else")
			require.Equal(t, latency, p.untilStatus(corev1.PodReadyToStartContainers, corev1.ConditionTrue))
			requireBetween(t, time.Second, 5*time.Second, p.untilPhase(corev1.PodRunning))
			require.Equal(t, started, p.object.Status.StartTime)
			require.Equal(t, podIP, p.object.Status.PodIP)
			require.Equal(t, []corev1.PodIP{{IP: podIP}}, p.object.Status.PodIPs)
			require.Equal(t, nodeIP, p.object.Status.HostIP)
			require.Empty(t, p.condition(corev1.PodReady).Reason)
			require.Empty(t, p.condition(corev1.ContainersReady).Message)

			p.run(24 * time.Hour)
			p.requirePlayed(prepare, ready)
			p.requireSeen(podState{"Pending", "", ""}, podState{"Pending", "False", "False"}, podState{"Pending", "True", "False"},
				podState{"Running", "True", "True"})
			require.Empty(t, p.events)
		})
	}
}

func TestInitContainers(t *testing.T) {
	t.Parallel()
	p := newGeneralPod(t, newPod(withClaim, withInitContainer))
	init := func() corev1.ContainerState { return p.object.Status.InitContainerStatuses[0].State }
	p.untilStatus(corev1.PodReadyToStartContainers, corev1.ConditionFalse)
	require.Equal(t, "PodInitializing", init().Waiting.Reason)
	p.untilStatus(corev1.PodReadyToStartContainers, corev1.ConditionTrue)
	require.NotNil(t, init().Waiting, "not before the claims are prepared")
	p.until(func() bool { return init().Running != nil }, time.Minute)
	p.untilStatus(corev1.PodInitialized, corev1.ConditionTrue)
	require.NotNil(t, init().Terminated)
	p.untilPhase(corev1.PodRunning)
	p.run(time.Hour)
	p.requirePlayed(prepare, "pod-init-container-running", "pod-init-container-completed", ready)
}

// As with a kubelet, containers show what they mount from the first status on, and their
// resources once they run, also when they have ended.
func TestContainersShowResources(t *testing.T) {
	t.Parallel()
	mounts := []corev1.VolumeMountStatus{{Name: "v", MountPath: "/v"}}
	for name, claim := range map[string]func(*corev1.Pod){"claim": withClaim, "extended resource": withExtendedResource} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newGeneralPod(t, newPod(claim, withInitContainer, withResources, ofJob))
			p.changed = func() {
				p.note()
				for _, status := range slices.Concat(p.object.Status.InitContainerStatuses, p.object.Status.ContainerStatuses) {
					require.Equal(t, mounts, status.VolumeMounts)
					if status.State.Waiting != nil {
						require.Nil(t, status.Resources)
						require.Nil(t, status.AllocatedResources)
						continue
					}
					require.Equal(t, &p.object.Spec.Containers[0].Resources, status.Resources)
					require.Equal(t, p.object.Spec.Containers[0].Resources.Requests, status.AllocatedResources)
				}
			}
			p.untilStatus(corev1.PodInitialized, corev1.ConditionTrue)
			require.Empty(t, p.condition(corev1.PodInitialized).Message)
			require.Equal(t, "PodInitializing", p.container().State.Waiting.Reason)
			p.untilPhase(corev1.PodSucceeded)
			p.requirePlayed(prepare, "pod-init-container-running", "pod-init-container-completed", ready, complete, unprepare, terminate)
		})
	}
}

// Nobody prepares the claims: the Pod waits, its init containers too.
func TestGeneralPodWithoutSidecar(t *testing.T) {
	t.Parallel()
	p := newPodPlayer(t, newPod(withClaim, withInitContainer), nil, podGeneralStages, podChaosStages)
	p.run(time.Hour)
	p.requirePlayed()
	p.change((&sidecar{p: p}).wait)
	p.run(time.Hour)
	p.requirePlayed(prepare)
	p.delete()
	requireBetween(t, 500*time.Millisecond, 700*time.Millisecond, p.untilGone())
	p.requirePlayed(prepare, terminate, deletion)
}

func TestPodAnnotations(t *testing.T) {
	t.Parallel()
	p := newGeneralPod(t, newPod(withClaim))
	for _, stage := range []string{prepare, unprepare, terminate, deletion} {
		p.annotate(stage+".stage.kwok.x-k8s.io/delay", "20s")
	}
	p.untilStatus(corev1.PodReadyToStartContainers, corev1.ConditionFalse)
	require.Equal(t, 20*time.Second, p.untilStatus(prepareResources, corev1.ConditionTrue))
	p.untilPhase(corev1.PodRunning)
	p.run(latency)
	p.delete()
	require.Equal(t, 20*time.Second, p.untilStatus(unprepareResources, corev1.ConditionTrue))
	require.Equal(t, 20*time.Second+latency, p.untilPhase(corev1.PodFailed))
	require.Equal(t, 20*time.Second, p.untilGone())
}
