package stages_test

import (
	"slices"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kwok-dra/kwok-dra/internal/config"
	"github.com/kwok-dra/kwok-dra/internal/observe/lifecycle"
)

const (
	failedPrepare = "FailedPrepareDynamicResources"

	// latency is how long the sidecar takes over a write, retryInterval how long it
	// waits after a failure.
	latency       = 10 * time.Millisecond
	retryInterval = time.Minute
)

// sidecar is what the Stages see of kwok-dra: of a Pod with claims it writes the
// waiting status, PodReadyToStartContainers, and the health of devices.
type sidecar struct {
	set *config.Set
	p   *podPlayer
	// retry is when preparing is tried again that has failed.
	retry time.Time
}

// next is what the sidecar does next about the Pod as it is, or nil.
func (s *sidecar) next() *deed {
	pod := s.p.object
	if len(pod.Spec.ResourceClaims) == 0 && pod.Status.ExtendedResourceClaimStatus == nil {
		return nil
	}
	start := s.p.status(corev1.PodReadyToStartContainers)
	switch {
	case ending(pod):
		if start == "True" && s.set.Faithful && s.matches(s.set.UnprepareWhen) {
			return s.write(s.start(corev1.ConditionFalse))
		}
	case start == "True":
		if s.set.Faithful && pod.Status.Phase == corev1.PodRunning && !showsHealth(pod) {
			return s.write(showHealth)
		}
	case start == "" && s.set.Faithful:
		return s.write(s.wait)
	case s.matches(s.set.FailWhen):
		return &deed{due: latest(s.p.now.Add(latency), s.retry), do: s.fail}
	case s.matches(s.set.PrepareWhen):
		s.retry = time.Time{}
		return s.write(s.start(corev1.ConditionTrue))
	case start == "":
		return s.write(s.wait)
	}
	return nil
}

func (s *sidecar) matches(selector *lifecycle.Selector) bool {
	matched, err := selector.Matches(s.p.t.Context(), lifecycle.NewObject(s.p.object))
	require.NoError(s.p.t, err)
	return matched
}

func (s *sidecar) write(how func(*corev1.Pod)) *deed {
	return &deed{due: s.p.now.Add(latency), do: func() { s.p.change(how) }}
}

func (s *sidecar) start(status corev1.ConditionStatus) func(*corev1.Pod) {
	return func(pod *corev1.Pod) {
		s.setCondition(pod, corev1.PodCondition{Type: corev1.PodReadyToStartContainers, Status: status})
	}
}

func (s *sidecar) fail() {
	s.p.events = append(s.p.events, failedPrepare+": "+s.p.condition(prepareResources).Message)
	s.retry = s.p.now.Add(retryInterval)
	if s.p.status(corev1.PodReadyToStartContainers) == "" {
		s.p.change(s.wait)
		return
	}
	s.p.other = s.next()
}

// wait writes the status that a kubelet gives a Pod whose claims are not prepared.
func (s *sidecar) wait(pod *corev1.Pod) {
	initialized, waiting := corev1.PodCondition{Type: corev1.PodInitialized, Status: corev1.ConditionTrue}, "ContainerCreating"
	if len(pod.Spec.InitContainers) > 0 {
		waiting = "PodInitializing"
		initialized.Status, initialized.Reason = corev1.ConditionFalse, "ContainersNotInitialized"
		initialized.Message = "containers with incomplete status: [i]"
	}
	s.start(corev1.ConditionFalse)(pod)
	s.setCondition(pod, initialized)
	for _, kind := range []corev1.PodConditionType{corev1.PodReady, corev1.ContainersReady} {
		s.setCondition(pod, corev1.PodCondition{
			Type: kind, Status: corev1.ConditionFalse, Reason: "ContainersNotReady",
			Message: "containers with unready status: [c]",
		})
	}
	pod.Status.InitContainerStatuses = waitingContainers(pod.Spec.InitContainers, waiting)
	pod.Status.ContainerStatuses = waitingContainers(pod.Spec.Containers, waiting)
	pod.Status.StartTime = &metav1.Time{Time: s.p.now}
	pod.Status.HostIP, pod.Status.HostIPs = nodeIP, []corev1.HostIP{{IP: nodeIP}}
}

// setCondition sets one condition.
func (s *sidecar) setCondition(pod *corev1.Pod, condition corev1.PodCondition) {
	condition.LastTransitionTime = metav1.Time{Time: s.p.now}
	pod.Status.Conditions = slices.DeleteFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool { return c.Type == condition.Type })
	pod.Status.Conditions = append(pod.Status.Conditions, condition)
}

func waitingContainers(containers []corev1.Container, reason string) []corev1.ContainerStatus {
	var statuses []corev1.ContainerStatus
	for _, container := range containers {
		status := corev1.ContainerStatus{
			Name: container.Name, Image: container.Image, Started: new(bool),
			State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason}},
		}
		for _, mount := range container.VolumeMounts {
			status.VolumeMounts = append(status.VolumeMounts, corev1.VolumeMountStatus{Name: mount.Name, MountPath: mount.MountPath})
		}
		statuses = append(statuses, status)
	}
	return statuses
}

func showsHealth(pod *corev1.Pod) bool {
	return len(pod.Status.ContainerStatuses) > 0 && len(pod.Status.ContainerStatuses[0].AllocatedResourcesStatus) > 0
}

func showHealth(pod *corev1.Pod) {
	health := corev1.ResourceHealth{ResourceID: "gpu.example.com/node-0/gpu-0", Health: corev1.ResourceHealthStatusUnknown}
	pod.Status.ContainerStatuses[0].AllocatedResourcesStatus = []corev1.ResourceStatus{{Name: "claim:a", Resources: []corev1.ResourceHealth{health}}}
}

// ending tells, as kwok-dra does, whether a kubelet would start no container of
// the Pod any more.
func ending(pod *corev1.Pod) bool {
	if pod.DeletionTimestamp != nil || pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed {
		return true
	}
	return len(pod.Status.ContainerStatuses) > 0 && !slices.ContainsFunc(pod.Status.ContainerStatuses, func(s corev1.ContainerStatus) bool {
		ended := s.State.Terminated
		return ended == nil || pod.Spec.RestartPolicy != corev1.RestartPolicyNever &&
			(pod.Spec.RestartPolicy != corev1.RestartPolicyOnFailure || ended.ExitCode != 0)
	})
}

func latest(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}
