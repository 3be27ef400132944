package drivers

import (
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"github.com/kwok-dra/kwok-dra/test/cluster"
	"github.com/kwok-dra/kwok-dra/test/e2e/harness"
)

// restarted is a spec with a restart: it begins, and returns what it does while kwok-dra is down and when it is
// back.
type restarted func(s *scene) (down, back func(s *scene))

// TestKubeletRestarts: the specs of DRA that Kubernetes has for a kubelet that restarts hold when kwok-dra is
// killed and comes back, and when the API server has no health in the status of Pods. All share one restart.
func TestKubeletRestarts(t *testing.T) {
	t.Parallel()
	s := newGeneralScene(t, cluster.Options{FeatureGates: map[string]bool{"ResourceHealthStatus": false, "ResourceHealthStatusMessage": false}})
	specs := map[string]restarted{
		"MustProcessPodCreatedWhenKubeletIsNotRunning":                   mustProcessPodCreatedWhileDown,
		"MustRetryNodePrepareResourcesAfterKubeletRestart":               mustRetryPrepare,
		"MustRetryNodeUnprepareResourcesAfterKubeletRestart":             mustRetryUnprepare,
		"MustCallNodeUnprepareResourcesForDeletedPodAfterKubeletRestart": mustUnprepareForDeletedPodAfterRestart,
		"ResourceSliceMustBeRemovedOnKubeletStartup":                     slicesWithoutDriverMustBeRemoved,
		"HealthShouldNotBeAddedToPodWhenFeatureGateIsDisabled":           shouldNotAddHealth,
		"PodsThatRunMustBeLeftAlone":                                     mustLeaveRunningPodsAlone,
	}
	// These have a call under way, which ends by itself after 45 seconds, so they begin last.
	callSpecs := map[string]restarted{
		"MustNotCallNodePrepareResourcesForDeletedPodAfterKubeletRestart":                   mustNotPrepareForDeletedPod,
		"MustRunPodIfNodePrepareResourcesIsInProgressForOnePluginWhenKubeletRestarts":       mustRunPodIfPrepareIsInProgress,
		"MustCallNodeUnprepareResourcesAgainIfItsInProgressForOnePluginWhenKubeletRestarts": mustUnprepareAgain,
	}
	var downs []func(*scene)
	backs := map[string]func(*scene){}
	for _, specs := range []map[string]restarted{specs, callSpecs} {
		for name, spec := range specs {
			down, back := spec(s)
			downs, backs[name] = append(downs, down), back
		}
	}
	require.NoError(t, s.kwokDRA.Kill())
	for _, down := range downs {
		down(s)
	}
	s.startKwokDRA()
	together(s, backs)
}

func mustProcessPodCreatedWhileDown(s *scene) (down, back func(*scene)) {
	d := s.newDriver("created")
	return func(s *scene) {
			s.createPod("pod", d.Node)
			s.PodEventually(d.Node, "pod", func(pod *corev1.Pod) bool { return pod.Spec.NodeName != "" })
		}, func(s *scene) {
			s.Running(d.Node, "pod")
			d.eventually(notify, 2)
			require.Equal(s, []string{getInfo, notify, getInfo, notify, prepare + " pod"}, d.since(0))
		}
}

func mustRetryPrepare(s *scene) (down, back func(*scene)) {
	d := s.newDriver("retry")
	d.fails(prepare)
	s.createPod("pod", d.Node)
	d.eventually(prepare+failed, 1)
	return func(*scene) { d.answers(nil) }, func(s *scene) {
		s.Running(d.Node, "pod")
		require.Equal(s, 1, d.count(prepare+succeeded))
	}
}

func mustRetryUnprepare(s *scene) (down, back func(*scene)) {
	d := s.newDriver("retry-un")
	d.fails(unprepare)
	s.createCompletingPod("pod", d.Node)
	d.eventually(unprepare+failed, 1)
	return func(*scene) { d.answers(nil) }, func(s *scene) {
		s.succeeds("pod", d.Node)
		require.Equal(s, 1, d.count(unprepare+succeeded))
	}
}

func mustUnprepareForDeletedPodAfterRestart(s *scene) (down, back func(*scene)) {
	d := s.newDriver("deleted")
	d.fails(unprepare)
	s.runs("pod", d.Node)
	s.DeletePod(d.Node, "pod", 0)
	d.eventually(unprepare+failed, 1)
	before := 0
	return func(*scene) { before = d.count(unprepare + failed) }, func(s *scene) {
		d.s = s
		d.eventually(unprepare+failed, before+1)
		d.answers(nil)
		d.eventually(unprepare+succeeded, 1)
	}
}

// mustNotPrepareForDeletedPod has the driver be asked to unprepare: it may have done something before kwok-dra
// was killed.
func mustNotPrepareForDeletedPod(s *scene) (down, back func(*scene)) {
	d := s.newDriver("not-again")
	release := d.blocks(prepare)
	s.createPod("pod", d.Node)
	d.eventually(prepare, 1)
	return func(s *scene) {
			s.DeletePod(d.Node, "pod", 0)
			s.Gone(d.Node, "pod")
			release()
		}, func(s *scene) {
			d.s = s
			d.eventually(unprepare+succeeded, 1)
			require.Equal(s, 1, d.count(prepare))
		}
}

func mustRunPodIfPrepareIsInProgress(s *scene) (down, back func(*scene)) {
	one := s.newDriver("progress")
	two, class := s.second("progress")
	release := one.blocks(prepare)
	s.createPod("pod", one.Node, one.Node, class)
	one.eventually(prepare, 1)
	return func(*scene) { one.eventually(prepare+failed, 1); release() }, func(s *scene) {
		s.Running(one.Node, "pod")
		require.Equal(s, 1, one.count(prepare+failed), "killed")
		require.Equal(s, 1, one.count(prepare+succeeded))
		require.GreaterOrEqual(s, two.count(prepare+succeeded), 1)
	}
}

func mustUnprepareAgain(s *scene) (down, back func(*scene)) {
	one := s.newDriver("again")
	two, class := s.second("again")
	release := two.blocks(unprepare)
	s.runs("pod", one.Node, one.Node, class)
	s.DeletePod(one.Node, "pod", 1)
	two.eventually(unprepare, 1)
	return func(*scene) { two.eventually(unprepare+failed, 1); release() }, func(s *scene) {
		s.Gone(one.Node, "pod")
		require.Equal(s, 2, two.count(unprepare), "again")
		require.Equal(s, 1, two.count(unprepare+succeeded))
	}
}

// slicesWithoutDriverMustBeRemoved has the driver of another node come back.
func slicesWithoutDriverMustBeRemoved(s *scene) (down, back func(*scene)) {
	d, other := s.newDriver("startup"), s.newDriver("startup-other")
	before := other.published()
	return func(*scene) { d.Stop() }, func(s *scene) {
		d.s, other.s = s, s
		d.wiped()
		require.Equal(s, before, other.published())
	}
}

func shouldNotAddHealth(s *scene) (down, back func(*scene)) {
	h := newHealth("gate")
	d := s.newDriver("gate", h.reports)
	return func(*scene) {}, func(s *scene) {
		s.runs("pod", d.Node)
		h.set(s.deviceOf(d.Node, "pod"), "Unhealthy")
		s.runs("next", d.Node) // its plan is made after the report
		for _, pod := range []string{"pod", "next"} {
			require.Empty(s, s.Pod(d.Node, pod).Status.ContainerStatuses[0].AllocatedResourcesStatus)
		}
	}
}

func mustLeaveRunningPodsAlone(s *scene) (down, back func(*scene)) {
	d := s.newDriver("running")
	before := d.published()
	s.createPod("pod", d.Node)
	uid := s.Running(d.Node, "pod").UID
	return func(*scene) {}, func(s *scene) {
		s.CreatePod(d.Node, quickPod("second", d.Node, "pod"))
		require.NotEqual(s, uid, s.Running(d.Node, "second").UID)
		for _, pod := range []string{"pod", "second"} {
			require.True(s, harness.IsReady(s.Pod(d.Node, pod)))
		}
		require.Equal(s, before, d.published(), "the driver was back in time")
		// A kubelet that has restarted asks once more, for the second Pod, and not for the first.
		d.eventually(notify, 2)
		require.Equal(s, []string{getInfo, notify, prepare + " pod", getInfo, notify, prepare + " pod"}, d.since(0))
	}
}
