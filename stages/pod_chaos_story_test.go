package stages_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const injected = failedPrepare + ": injected by pod-prepare-fail"

func TestPrepareFails(t *testing.T) {
	t.Parallel()
	p := newGeneralPod(t, newPod(withClaim, withLabel(prepareFail)))
	p.run(24 * time.Hour)
	require.Equal(t, corev1.PodPending, p.object.Status.Phase)
	require.Equal(t, "False", p.status(corev1.PodReadyToStartContainers))
	p.requirePlayed(prepareFail)
	require.InDelta(t, 24*60, len(p.events), 2, "once in a minute")
	require.Equal(t, []string{injected}, slices.Compact(p.events))

	p.label(prepareFail, false)
	requireBetween(t, 200*time.Millisecond, 400*time.Millisecond, p.untilStatus(prepareResources, corev1.ConditionTrue))
	p.untilPhase(corev1.PodRunning)
	p.run(time.Hour)
	p.requirePlayed(prepareFail, prepare, ready)

	p.label(prepareFail, true)
	p.run(time.Hour)
	p.requirePlayed(prepareFail, prepare, ready)
}

// The label comes when kwok-dra has been told to prepare, but has not yet.
func TestPrepareFailsLate(t *testing.T) {
	t.Parallel()
	p := newGeneralPod(t, newPod(withClaim))
	p.untilStatus(prepareResources, corev1.ConditionTrue)
	p.label(prepareFail, true)
	p.run(time.Hour)
	require.Equal(t, "False", p.status(prepareResources))
	p.requirePlayed(prepare, prepareFail)
}

func TestPrepareFailsWithFast(t *testing.T) {
	t.Parallel()
	p := newFastPod(t, newPod(withClaim, withLabel(prepareFail), func(pod *corev1.Pod) {
		metav1.SetMetaDataAnnotation(&pod.ObjectMeta, prepareFail+".stage.kwok.x-k8s.io/message", "no such device")
	}))
	p.run(10 * time.Minute)
	require.Equal(t, corev1.PodPending, p.object.Status.Phase)
	p.requirePlayed(prepareFail)
	require.InDelta(t, 10, len(p.events), 2)
	require.Equal(t, failedPrepare+": no such device", p.events[0])
	waiting := p.object.Status.StartTime
	require.NotNil(t, waiting, "it has the waiting status")

	p.label(prepareFail, false)
	require.Equal(t, latency, p.untilPhase(corev1.PodRunning))
	require.Equal(t, waiting, p.object.Status.StartTime)
	require.Empty(t, p.condition(corev1.PodReady).Reason)
	p.run(time.Hour)
	p.requirePlayed(prepareFail, prepareFailReset, ready)
	require.False(t, slices.ContainsFunc(p.events, func(event string) bool { return !strings.HasPrefix(event, failedPrepare) }))
}

// A failure that another Stage has written is not for pod-prepare-fail-reset.
func TestPrepareFailsForAnotherReason(t *testing.T) {
	t.Parallel()
	p := newFastPod(t, newPod(withClaim, func(pod *corev1.Pod) {
		pod.Status.Conditions = append(pod.Status.Conditions, corev1.PodCondition{Type: prepareResources, Status: corev1.ConditionFalse, Reason: "Mine"})
	}))
	p.run(time.Hour)
	p.requirePlayed()
}

func TestUnprepareFails(t *testing.T) {
	t.Parallel()
	p := newRunningPod(t, newPod(withClaim, withLabel(unprepareFail)))
	p.run(time.Hour)
	p.requirePlayed(prepare, ready)
	p.delete()
	require.Zero(t, p.untilStatus(unprepareResources, corev1.ConditionFalse), "at once")
	require.Equal(t, "PodUnprepareFail", p.condition(unprepareResources).Reason)

	p.run(24 * time.Hour)
	require.False(t, p.gone)
	p.requireSeen(podState{"Running", "True", "True"})
	p.requirePlayed(prepare, ready, unprepareFail)

	p.label(unprepareFail, false)
	require.Equal(t, 10*time.Second, p.untilStatus(unprepareResources, corev1.ConditionTrue))
	require.Equal(t, latency, p.untilPhase(corev1.PodFailed))
	p.untilGone()
	p.requirePlayed(prepare, ready, unprepareFail, unprepare, terminate, deletion)
}

func TestUnprepareFailsForCompletedPod(t *testing.T) {
	t.Parallel()
	p := newRunningPod(t, newPod(withClaim, ofJob, withLabel(unprepareFail)))
	p.run(time.Hour)
	require.Equal(t, corev1.PodRunning, p.object.Status.Phase)
	p.label(unprepareFail, false)
	require.Equal(t, 10*time.Second+latency, p.untilPhase(corev1.PodSucceeded))
	p.requirePlayed(prepare, ready, complete, unprepareFail, unprepare, terminate)
}

// kwok's fast Stages delete a Pod whatever the state of its claims.
func TestUnprepareFailsNotWithFast(t *testing.T) {
	t.Parallel()
	p := newFastPod(t, newPod(withClaim, withLabel(unprepareFail)))
	p.untilPhase(corev1.PodRunning)
	p.delete()
	require.Zero(t, p.untilGone())
}

// The containers wait for their images as long as the label is set, and the claims are
// prepared before.
func TestImagePullFails(t *testing.T) {
	t.Parallel()
	for name, make := range map[string]func(*testing.T, *corev1.Pod) *podPlayer{"fast": newFastPod, "general": newGeneralPod} {
		for of, claim := range map[string]func(*corev1.Pod){"claim": withClaim, "no claim": func(*corev1.Pod) {}} {
			t.Run(name+"/"+of, func(t *testing.T) {
				t.Parallel()
				p := make(t, newPod(claim, withLabel(imagePullFail)))
				p.run(24 * time.Hour)
				require.Equal(t, corev1.PodPending, p.object.Status.Phase)
				require.Equal(t, "ImagePullBackOff", p.container().State.Waiting.Reason)
				require.Equal(t, "False", p.status(corev1.PodReady))
				require.NotEmpty(t, p.object.Status.PodIP)
				require.Equal(t, imagePullFail, p.played[len(p.played)-1].stage)

				p.label(imagePullFail, false)
				p.untilPhase(corev1.PodRunning)
				require.Empty(t, p.condition(corev1.PodReady).Reason)
				p.run(time.Hour)
				require.Equal(t, ready, p.played[len(p.played)-1].stage)
			})
		}
	}
}

func TestImagePullFailsNotOnceRunning(t *testing.T) {
	t.Parallel()
	p := newRunningPod(t, newPod(withClaim))
	p.label(imagePullFail, true)
	p.run(time.Hour)
	p.requirePlayed(prepare, ready)
	p.delete()
	p.untilGone()
}
