package stages_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// requireReady asserts what both conditions of readiness say, and when they
// changed.
func (p *podPlayer) requireReady(status corev1.ConditionStatus, reason string, since time.Time) {
	p.t.Helper()
	for _, kind := range []corev1.PodConditionType{corev1.PodReady, corev1.ContainersReady} {
		condition := p.condition(kind)
		require.Equal(p.t, status, condition.Status, kind)
		require.Equal(p.t, reason, condition.Reason, kind)
		require.Equal(p.t, since.Truncate(time.Second), condition.LastTransitionTime.UTC(), kind)
	}
}

// A container that does not handle SIGTERM ends by it, one that is not given the
// time by SIGKILL; an annotation says how others end.
func TestExitCodeOfDeletedPod(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		annotation string
		grace      int64
		exitCode   int32
		phase      corev1.PodPhase
		container  string
		ready      string
	}{
		"ends by SIGTERM":               {"", 30, 143, corev1.PodFailed, "Error", "PodFailed"},
		"ends by SIGKILL":               {"", 0, 137, corev1.PodFailed, "Error", "PodFailed"},
		"handles SIGTERM":               {"0", 30, 0, corev1.PodSucceeded, "Completed", "PodCompleted"},
		"handles SIGTERM with an error": {"2", 30, 2, corev1.PodFailed, "Error", "PodFailed"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newRunningPod(t, newPod(withClaim, ofJob, func(pod *corev1.Pod) {
				if test.annotation != "" {
					metav1.SetMetaDataAnnotation(&pod.ObjectMeta, exitCode, test.annotation)
				}
			}))
			p.delete()
			p.change(func(pod *corev1.Pod) { pod.DeletionGracePeriodSeconds = &test.grace })
			p.untilPhase(test.phase)
			p.requireReady(corev1.ConditionFalse, test.ready, p.now)
			ended := p.container().State.Terminated
			require.Equal(t, test.exitCode, ended.ExitCode)
			require.Equal(t, test.container, ended.Reason)
		})
	}
}

// exitCode is the annotation that says how the containers of a Pod end.
const exitCode = "pod-terminate.stage.kwok.x-k8s.io/exit-code"

// handlesSIGTERM has containers end well when their Pod is deleted.
func handlesSIGTERM(pod *corev1.Pod) {
	metav1.SetMetaDataAnnotation(&pod.ObjectMeta, exitCode, "0")
}

func TestDeletedPod(t *testing.T) {
	t.Parallel()
	p := newRunningPod(t, newPod(withClaim, handlesSIGTERM))
	running := p.container()
	p.run(time.Hour)
	p.delete()
	took := p.untilPhase(corev1.PodSucceeded)
	requireBetween(t, 50*time.Millisecond+latency, 150*time.Millisecond+latency, took)
	p.requireReady(corev1.ConditionFalse, "PodCompleted", p.now)
	require.Equal(t, corev1.PodCondition{Type: corev1.PodInitialized, Status: corev1.ConditionTrue, Reason: "PodCompleted"},
		withoutTimes(p.condition(corev1.PodInitialized)))
	ended := p.container()
	require.Equal(t, running.AllocatedResourcesStatus, ended.AllocatedResourcesStatus)
	require.Equal(t, "Completed", ended.State.Terminated.Reason)
	require.Zero(t, ended.State.Terminated.ExitCode)
	require.Equal(t, running.State.Running.StartedAt, ended.State.Terminated.StartedAt)
	require.Equal(t, []bool{false, false}, []bool{ended.Ready, *ended.Started})
	require.Equal(t, podIP, p.object.Status.PodIP)

	requireBetween(t, 500*time.Millisecond, 700*time.Millisecond, p.untilGone())
	p.requirePlayed(prepare, ready, unprepare, terminate, deletion)
	p.requireSeen(podState{"Running", "True", "True"}, podState{"Running", "False", "True"}, podState{"Succeeded", "False", "False"})
}

func withoutTimes(condition corev1.PodCondition) corev1.PodCondition {
	condition.LastTransitionTime.Reset()
	return condition
}

func TestCompletedPod(t *testing.T) {
	t.Parallel()
	p := newRunningPod(t, newPod(withClaim, ofJob))
	took := p.untilStatus(corev1.PodReady, corev1.ConditionFalse)
	requireBetween(t, time.Second, 5*time.Second+latency, took)
	require.Equal(t, corev1.PodRunning, p.object.Status.Phase)
	done := p.now
	p.requireReady(corev1.ConditionFalse, "PodCompleted", done)
	ended := p.container()
	require.NotNil(t, ended.State.Terminated)
	require.NotEmpty(t, ended.AllocatedResourcesStatus)

	requireBetween(t, time.Second+latency, 1200*time.Millisecond+latency, p.untilPhase(corev1.PodSucceeded))
	require.Equal(t, ended, p.container(), "nothing that has been said already changes")
	p.requireReady(corev1.ConditionFalse, "PodCompleted", done)
	p.run(time.Hour)
	p.requireSeen(podState{"Running", "True", "True"}, podState{"Running", "True", "False"}, podState{"Running", "False", "False"},
		podState{"Succeeded", "False", "False"})
	require.False(t, p.gone, "the Job deletes it")
	p.delete()
	requireBetween(t, 500*time.Millisecond, 700*time.Millisecond, p.untilGone())
	p.requirePlayed(prepare, ready, complete, unprepare, terminate, deletion)
}

// A kubelet starts the containers of such a Pod again, kwok does not.
func TestCompletedPodThatRestarts(t *testing.T) {
	t.Parallel()
	p := newRunningPod(t, newPod(withClaim, ofJob, func(pod *corev1.Pod) { pod.Spec.RestartPolicy = corev1.RestartPolicyAlways }))
	p.untilPhase(corev1.PodSucceeded)
	p.untilStatus(corev1.PodReadyToStartContainers, corev1.ConditionFalse)
	p.run(time.Hour)
	p.requirePlayed(prepare, ready, complete, unprepare)
}

// kwok's own chaos has a container fail and sets the phase at once.
func TestFailedPod(t *testing.T) {
	t.Parallel()
	const fail = "pod-container-running-failed"
	p := newGeneralPod(t, newPod(withClaim))
	p.stages = newLifecycle(t, podGeneralStages, podChaosStages, kwokStages(t, "pod/chaos", fail))
	p.untilPhase(corev1.PodRunning)
	p.run(latency)
	p.label(fail, true)
	require.Equal(t, time.Second, p.untilPhase(corev1.PodFailed))
	p.untilStatus(corev1.PodReadyToStartContainers, corev1.ConditionFalse)
	p.run(time.Hour)
	p.delete()
	p.untilGone()
	p.requirePlayed(prepare, ready, fail, unprepare, deletion)
}

// A kubelet calls such a Pod Failed, since its containers cannot be located.
func TestDeletedBeforeItStarts(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		until  func(*podPlayer)
		played []string
	}{
		"bound":    {func(*podPlayer) {}, []string{terminate, deletion}},
		"waiting":  {func(p *podPlayer) { p.untilStatus(corev1.PodReadyToStartContainers, "False") }, []string{terminate, deletion}},
		"prepare":  {func(p *podPlayer) { p.untilStatus(prepareResources, "True") }, []string{prepare, terminate, deletion}},
		"prepared": {func(p *podPlayer) { p.untilStatus(corev1.PodReadyToStartContainers, "True") }, []string{prepare, unprepare, terminate, deletion}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newGeneralPod(t, newPod(withClaim))
			test.until(p)
			before := p.condition(corev1.PodReady)
			p.delete()
			p.untilPhase(corev1.PodFailed)
			require.Equal(t, before, p.condition(corev1.PodReady))
			if name != "bound" {
				require.EqualValues(t, 137, p.container().State.Terminated.ExitCode)
				require.Equal(t, "ContainerStatusUnknown", p.container().State.Terminated.Reason)
			}
			requireBetween(t, 500*time.Millisecond, 700*time.Millisecond, p.untilGone())
			p.requirePlayed(test.played...)
		})
	}
}

// The sidecar was still at it when the Pod was deleted, and prepares it after its
// last status.
func TestPreparedTooLate(t *testing.T) {
	t.Parallel()
	p := newGeneralPod(t, newPod(withClaim))
	p.untilStatus(prepareResources, corev1.ConditionTrue)
	p.delete()
	p.untilPhase(corev1.PodFailed)
	p.change(p.sidecar.start(corev1.ConditionTrue))
	p.untilGone()
	p.requirePlayed(prepare, terminate, unprepare, deletion)
}

// What stays behind when the sidecar has gone can only be deleted by force.
func TestDeletedWithoutSidecar(t *testing.T) {
	t.Parallel()
	p := newRunningPod(t, newPod(withClaim))
	p.sidecar = nil
	p.delete()
	p.run(24 * time.Hour)
	require.False(t, p.gone)
	p.requirePlayed(prepare, ready, unprepare)
}

func TestFinalizers(t *testing.T) {
	t.Parallel()
	p := newRunningPod(t, newPod(withClaim, func(pod *corev1.Pod) { pod.Finalizers = []string{"example.com/keep"} }))
	p.delete()
	p.untilPhase(corev1.PodFailed)
	p.run(time.Hour)
	require.False(t, p.gone)
	p.change(func(pod *corev1.Pod) { pod.Finalizers = nil })
	requireBetween(t, 500*time.Millisecond, 700*time.Millisecond, p.untilGone())
}
