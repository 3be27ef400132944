package usage

import (
	"cmp"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kwok-dra/kwok-dra/internal/dractl/clusterdevices"
	"github.com/kwok-dra/kwok-dra/internal/extensions/explaining/history"
	"github.com/kwok-dra/kwok-dra/internal/extensions/inventory"
	"github.com/kwok-dra/kwok-dra/internal/observe/facts"
)

// State is that of a device for the Pod or the claim that has it, or of a claim.
type State string

// The states.
const (
	// Unused is a claim without devices that no Pod names.
	Unused State = "unused"
	// Waiting is a claim without devices that a Pod waits for.
	Waiting State = "waiting"
	// Allocated devices are not prepared yet.
	Allocated State = "allocated"
	// Prepared devices are ready for the containers.
	Prepared State = "prepared"
	// Failing devices cannot be prepared, or are not ready.
	Failing State = "failing"
	// Unhealthy devices are so by the kubelet's word.
	Unhealthy State = "unhealthy"
	// Tainted devices have a taint that keeps Pods away.
	Tainted State = "tainted"
	// Gone devices are published no more.
	Gone State = "gone"
	// Idle is a claim with devices that no Pod uses.
	Idle State = "idle"
	// Ending is a Pod, or a claim, that is being deleted.
	Ending State = "ending"
	// Ended is a Pod that has ended and still has its claims.
	Ended State = "ended"
	// Unknown is a claim that could not be read.
	Unknown State = "unknown"
	// Released is what is gone since the last answer.
	Released State = "released"
)

// States are those that a user may ask for, the worst last.
var States = []State{Unused, Unknown, Waiting, Allocated, Prepared, Ended, Ending, Idle, Failing, Unhealthy, Tainted, Gone}

// IsProblem reports whether somebody has to look.
func (s State) IsProblem() bool {
	return s == Failing || s == Unhealthy || s == Tainted || s == Gone || s == Idle
}

// status is a state, since when, and why.
type status struct {
	state  State
	since  *time.Time
	reason string
}

// statusOf is the status of a device that a claim has for a Pod.
func (c *Cluster) statusOf(pod *corev1.Pod, podClaim string, claim *resourcev1.ResourceClaim, result *resourcev1.DeviceRequestAllocationResult) status {
	if pod.DeletionTimestamp != nil {
		return status{Ending, deletionTime(&pod.ObjectMeta), "the Pod is being deleted"}
	}
	if facts.IsTerminal(pod) {
		return status{Ended, endTime(pod), "the Pod has ended: " + string(pod.Status.Phase)}
	}
	start := facts.PodCondition(pod, corev1.PodReadyToStartContainers)
	failure := ""
	if start.Status != corev1.ConditionTrue && pod.Status.Phase != corev1.PodRunning {
		failure = c.known.ExplainPrepareFailure(pod)
	}
	// The failure of a Pod that cannot start says more than that its device is gone.
	if found := c.problemOf(pod.Spec.NodeName, result); found.state != "" && (found.state != Gone || failure == "") {
		return found
	}
	if message := clusterdevices.UnhealthyMessage(pod, podClaim, claim, result); message != "" {
		return status{Unhealthy, nil, message}
	}
	ready := inventory.ReadyOf(claim, result)
	if ready != nil && ready.Status == metav1.ConditionFalse {
		return status{Failing, timeOrNil(&ready.LastTransitionTime), cmp.Or(ready.Message, ready.Reason)}
	}
	if start.Status == corev1.ConditionTrue {
		return status{Prepared, timeOrNil(&start.LastTransitionTime), ""}
	}
	if pod.Status.Phase == corev1.PodRunning {
		return status{Prepared, timeOrNil(pod.Status.StartTime), ""}
	}
	if ready != nil && ready.Status == metav1.ConditionTrue {
		return status{Prepared, timeOrNil(&ready.LastTransitionTime), ""}
	}
	if failure != "" {
		event := c.known.Failures[pod.UID]
		since := history.LastSeen(event).UTC()
		if !event.FirstTimestamp.IsZero() {
			since = event.FirstTimestamp.UTC()
		}
		return status{Failing, &since, failure}
	}
	return status{Allocated, allocationTime(claim, pod), ""}
}

// problemOf is the status of a device that has gone or that is tainted, whoever has it on a node, if that is known.
// Otherwise its state is empty.
func (c *Cluster) problemOf(node string, result *resourcev1.DeviceRequestAllocationResult) status {
	id := poolID{result.Driver, result.Pool}
	found, isPublished := c.findDevice(id, result.Device)
	if !isPublished {
		if c.IsWithoutSlices {
			return status{}
		}
		silence := ""
		if node != "" {
			silence = c.known.DescribeSilentDriver(result.Driver, node)
		}
		return status{Gone, nil, cmp.Or(silence, "no ResourceSlice publishes the device any more")}
	}
	if taints := c.TaintsOf(result.Driver, result.Pool, found.device); len(taints) > 0 {
		return status{Tainted, timeOrNil(&metav1.Time{Time: taints[0].TimeAdded}), DescribeTaint(&taints[0])}
	}
	return status{}
}

// DescribeTaint is the taint as kubectl writes it, and the rule that has it.
func DescribeTaint(taint *inventory.Taint) string {
	text := taint.Key
	if taint.Value != "" {
		text += "=" + taint.Value
	}
	text += ":" + string(taint.Effect)
	if taint.Rule != "" {
		text += " by DeviceTaintRule " + taint.Rule
	}
	return text
}

// deletionTime is when an object was deleted: its deletionTimestamp is when its grace period ends.
func deletionTime(object *metav1.ObjectMeta) *time.Time {
	at := object.DeletionTimestamp.UTC()
	if object.DeletionGracePeriodSeconds != nil {
		at = at.Add(-time.Duration(*object.DeletionGracePeriodSeconds) * time.Second)
	}
	return &at
}

// allocationTime is when a claim got its devices. Where the API server does not keep that, it is when a Pod with
// the claim got its node, which is right after.
func allocationTime(claim *resourcev1.ResourceClaim, pod *corev1.Pod) *time.Time {
	if at := timeOrNil(history.AllocationTime(claim)); at != nil || pod == nil {
		return at
	}
	scheduled := facts.PodCondition(pod, corev1.PodScheduled)
	if scheduled.Status != corev1.ConditionTrue {
		return nil
	}
	return timeOrNil(&scheduled.LastTransitionTime)
}

// endTime is when the last container of a Pod ended.
func endTime(pod *corev1.Pod) *time.Time {
	var last metav1.Time
	for i := range pod.Status.ContainerStatuses {
		if ended := pod.Status.ContainerStatuses[i].State.Terminated; ended != nil && ended.FinishedAt.After(last.Time) {
			last = ended.FinishedAt
		}
	}
	return timeOrNil(&last)
}

func timeOrNil(at *metav1.Time) *time.Time {
	if at.IsZero() {
		return nil
	}
	return new(at.UTC())
}
