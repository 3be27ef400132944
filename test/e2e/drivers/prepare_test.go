package drivers

import (
	"context"
	"fmt"

	"github.com/stretchr/testify/require"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kwok-dra/kwok-dra/test/drivers/file"
	"github.com/kwok-dra/kwok-dra/test/e2e/harness"
)

func mustKeepPodPending(s *scene) {
	d := s.newDriver("times-out")
	d.instead(prepare, func(ctx context.Context) (any, error) {
		<-ctx.Done()
		return nil, ctx.Err()
	})
	s.createPod("pod", d.Node)
	d.eventually(prepare, 2)
	require.Contains(s, s.FailedPrepare(d.Node, "pod").Message, "NodePrepareResources: rpc error: code = DeadlineExceeded")
	pod := s.Pod(d.Node, "pod")
	require.Equal(s, corev1.PodPending, pod.Status.Phase)
	require.False(s, harness.IsReady(pod))
}

func mustRunPodAfterPrepareFails(s *scene) {
	d := s.newDriver("prepare-fails")
	d.fails(prepare)
	s.createPod("pod", d.Node)
	d.eventually(prepare+failed, 2)
	require.Contains(s, s.FailedPrepare(d.Node, "pod").Message, "NodePrepareResources: rpc error: code = Unknown desc = simulated failure")
	require.False(s, harness.IsReady(s.Pod(d.Node, "pod")))
	d.answers(nil)
	s.Running(d.Node, "pod")
	require.Equal(s, 1, d.count(prepare+succeeded))
}

// createCompletingPod creates a Pod whose containers end by themselves.
func (s *scene) createCompletingPod(name, node string, classes ...string) {
	s.Helper()
	pod := quickPod(name, node, name)
	suspended, err := s.Client.BatchV1().Jobs(node).Create(s.Context(), &batchv1.Job{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: batchv1.JobSpec{Suspend: new(true), Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{
			RestartPolicy: corev1.RestartPolicyNever, Containers: pod.Spec.Containers, ResourceClaims: pod.Spec.ResourceClaims,
		}}},
	}, metav1.CreateOptions{})
	require.NoError(s, err)
	pod.OwnerReferences = []metav1.OwnerReference{{APIVersion: "batch/v1", Kind: "Job", Name: name, UID: suspended.UID}}
	pod.Spec.RestartPolicy = corev1.RestartPolicyNever
	if len(classes) == 0 {
		classes = []string{node}
	}
	s.CreateClaim(node, name, harness.ClaimSpec(classes...))
	s.CreatePod(node, pod)
}

// succeeds waits until a Pod has succeeded.
func (s *scene) succeeds(name, node string) {
	s.Helper()
	s.PodEventually(node, name, func(pod *corev1.Pod) bool { return pod.Status.Phase == corev1.PodSucceeded })
}

func mustRunPodAfterUnprepareFails(s *scene) {
	d := s.newDriver("unprepare-fails")
	d.fails(unprepare)
	s.createCompletingPod("pod", d.Node)
	d.eventually(prepare+succeeded, 1)
	d.eventually(unprepare+failed, 1)
	require.Equal(s, corev1.PodRunning, s.Pod(d.Node, "pod").Status.Phase)
	d.answers(nil)
	d.eventually(unprepare+succeeded, 1)
	s.succeeds("pod", d.Node)
}

func mustUnprepareForDeletedPod(s *scene) {
	d := s.newDriver("deleted")
	d.fails(unprepare)
	s.runs("pod", d.Node)
	s.DeletePod(d.Node, "pod", 1)
	d.eventually(unprepare+failed, 1)
	require.NotNil(s, s.Pod(d.Node, "pod").DeletionTimestamp, "it waits for the driver")
	d.answers(nil)
	s.Gone(d.Node, "pod")
	require.Equal(s, 1, d.count(unprepare+succeeded))
}

// second starts another driver of a node, for devices of the class that is returned.
func (s *scene) second(node string, adjust ...func(*file.Options)) (d *driver, class string) {
	s.Helper()
	class = node + "-2"
	s.DeviceClass(class, driverOf(class))
	return s.start(node, append(adjust, func(o *file.Options) { o.Name = driverOf(class) })...), class
}

func twoPluginsMustPrepare(s *scene) {
	one := s.newDriver("two")
	two, class := s.second("two")
	s.createCompletingPod("pod", "two", "two", class)
	s.succeeds("pod", "two")
	for _, d := range []*driver{one, two} {
		require.Equal(s, []string{getInfo, notify, prepare + " pod", unprepare + " pod"}, d.since(0))
		require.Equal(s, 1, d.count(unprepare+succeeded))
	}
}

// callsOf is how many calls of a driver kwok-dra has counted.
func (s *scene) callsOf(d *driver, method, code string) float64 {
	s.Helper()
	return s.Metric(s.kwokDRA, "kwok_dra_plugin_call_duration_seconds_count",
		fmt.Sprintf("driver=%q", d.Name), fmt.Sprintf("method=%q", method), fmt.Sprintf("code=%q", code))
}

func twoPluginsMustProvideMetrics(s *scene) {
	one := s.newDriver("metrics")
	two, class := s.second("metrics")
	s.runs("pod", "metrics", "metrics", class)
	require.GreaterOrEqual(s, s.Metric(s.kwokDRA, "kwok_dra_registered_plugins"), 2.0)
	require.GreaterOrEqual(s, s.Metric(s.kwokDRA, "kwok_dra_prepared_claims"), 1.0)
	for _, d := range []*driver{one, two} {
		require.InDelta(s, 1, s.callsOf(d, prepare, "OK"), 0)
		require.Zero(s, s.callsOf(d, unprepare, "OK"))
	}
	s.gone("pod", "metrics")
	for _, d := range []*driver{one, two} {
		require.InDelta(s, 1, s.callsOf(d, unprepare, "OK"), 0)
	}
}

func mustRunPodAfterOnePrepareFails(s *scene) {
	s.newDriver("one-prepare")
	two, class := s.second("one-prepare")
	two.fails(prepare)
	s.createPod("pod", "one-prepare", "one-prepare", class)
	two.eventually(prepare+failed, 1)
	require.False(s, harness.IsReady(s.Pod("one-prepare", "pod")))
	two.answers(nil)
	s.Running("one-prepare", "pod")
	require.Equal(s, 1, two.count(prepare+succeeded))
}

func mustRunPodAfterOneUnprepareFails(s *scene) {
	one := s.newDriver("one-unprepare")
	two, class := s.second("one-unprepare")
	two.fails(unprepare)
	s.createCompletingPod("pod", "one-unprepare", "one-unprepare", class)
	for _, d := range []*driver{one, two} {
		d.eventually(prepare+succeeded, 1)
	}
	two.eventually(unprepare+failed, 1)
	two.answers(nil)
	two.eventually(unprepare+succeeded, 1)
	s.succeeds("pod", "one-unprepare")
}
