package history

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// podSteps are the steps of a Pod. An owner was there before the claim that is
// made for it.
func podSteps(pod *corev1.Pod, owner bool) []Step {
	object := "Pod " + pod.Name
	created := Step{Time: timeOrNil(&pod.CreationTimestamp), What: "created", Object: object, rank: rankPodCreated}
	if owner {
		created.rank = rankOwnerCreated
	}
	steps := []Step{created}
	for i := range pod.Status.Conditions {
		c := &pod.Status.Conditions[i]
		step := Step{
			Time: timeOrNil(&c.LastTransitionTime), What: fmt.Sprintf("%s=%s", c.Type, c.Status),
			Object: object, Detail: joinDetails(c.Reason, c.Message), rank: rankOfCondition(c),
		}
		if c.Type == corev1.PodScheduled {
			step.Detail = cmp.Or(step.Detail, "on node "+pod.Spec.NodeName)
		}
		steps = append(steps, step)
	}
	steps = append(steps, containerSteps(object, pod.Status.InitContainerStatuses, rankStarting, rankStarting)...)
	return append(steps, containerSteps(object, pod.Status.ContainerStatuses, rankRunning, rankAfter)...)
}

// containerSteps say when containers started, and when they ended, with these ranks.
func containerSteps(object string, statuses []corev1.ContainerStatus, started, ended int) []Step {
	var steps []Step
	for i := range statuses {
		name := "container " + statuses[i].Name
		start := Step{What: "started", Object: object, Detail: name, rank: started}
		switch state := &statuses[i].State; {
		case state.Running != nil:
			start.Time = timeOrNil(&state.Running.StartedAt)
			steps = append(steps, start)
		case state.Terminated != nil:
			start.Time = timeOrNil(&state.Terminated.StartedAt)
			outcome := joinDetails(fmt.Sprintf("%s: exit code %d", name, state.Terminated.ExitCode), state.Terminated.Reason, state.Terminated.Message)
			steps = append(steps, start, Step{Time: timeOrNil(&state.Terminated.FinishedAt), What: "ended", Object: object, Detail: outcome, rank: ended})
		}
	}
	return steps
}

// timeOrNil is a time, or nil if there is none.
func timeOrNil(at *metav1.Time) *time.Time {
	if at.IsZero() {
		return nil
	}
	return new(at.UTC())
}

func joinDetails(texts ...string) string {
	return strings.Join(slices.DeleteFunc(texts, func(s string) bool { return s == "" }), ": ")
}
