package history

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kwok-dra/kwok-dra/internal/observe/facts"
)

// Step is a step on the way of a claim.
type Step struct {
	// Time is left out if it is not known. Most times have whole seconds only: the
	// API keeps no more of them.
	Time *time.Time `json:"time,omitempty"`
	What string     `json:"step"`
	// Object is whose step it is, if it is not the claim's.
	Object string `json:"object,omitempty"`
	Detail string `json:"detail,omitempty"`
	// rank is the order of steps of one second.
	rank int
}

// Story has the objects that tell the history of a claim.
type Story struct {
	Claim *resourcev1.ResourceClaim
	// Pods are those that the claim is reserved for, by name.
	Pods map[string]*corev1.Pod
	// Events are those of its namespace.
	Events []*corev1.Event
}

// ListSteps returns the steps of the claim since its creation, in their order.
func (s *Story) ListSteps() []Step {
	steps := claimSteps(s.Claim)
	objects := map[types.UID]string{s.Claim.UID: ""}
	for _, consumer := range s.Claim.Status.ReservedFor {
		if consumer.Resource != "pods" {
			continue
		}
		pod := s.Pods[consumer.Name]
		if pod == nil || pod.UID != consumer.UID {
			steps = append(steps, Step{What: "gone", Object: "Pod " + consumer.Name, Detail: "the claim is still reserved for it", rank: rankBound})
			continue
		}
		objects[pod.UID] = "Pod " + pod.Name
		hasRun := func(status corev1.ContainerStatus) bool {
			return status.State.Terminated != nil && !status.State.Terminated.StartedAt.IsZero()
		}
		prepared := Step{What: "prepared", Detail: "for pods/" + pod.Name, rank: rankPrepared}
		switch start := facts.PodCondition(pod, corev1.PodReadyToStartContainers); {
		case start.Status == corev1.ConditionTrue:
			prepared.Time = timeOrNil(&start.LastTransitionTime)
			steps = append(steps, prepared)
		case pod.Status.Phase == corev1.PodRunning:
			prepared.Detail += ", which runs: the Pod does not say when"
			steps = append(steps, prepared)
		case facts.IsTerminal(pod) && slices.ContainsFunc(pod.Status.ContainerStatuses, hasRun):
			// The kubelet has the drivers unprepare before it writes that a Pod has ended.
			steps = append(steps, Step{Time: timeOrNil(&start.LastTransitionTime), What: "unprepared", Detail: "for pods/" + pod.Name + ", which has ended", rank: rankAfter})
		}
		steps = append(steps, podSteps(pod, metav1.IsControlledBy(s.Claim, pod))...)
	}
	for _, event := range s.Events {
		if object, of := objects[event.InvolvedObject.UID]; of {
			message := event.Message
			if event.Count > 1 {
				message += fmt.Sprintf(" (%d times)", event.Count)
			}
			rank, isRanked := eventRanks[event.Reason]
			if !isRanked {
				rank = rankWaiting
			}
			steps = append(steps, Step{Time: new(LastSeen(event).UTC()), What: event.Reason, Object: object, Detail: message, rank: rank})
		}
	}
	orderSteps(steps)
	return steps
}

func claimSteps(claim *resourcev1.ResourceClaim) []Step {
	steps := []Step{{Time: timeOrNil(&claim.CreationTimestamp), What: "created", Detail: describeRequests(claim), rank: rankCreated}}
	if allocation := claim.Status.Allocation; allocation != nil {
		var devices []string
		for i := range allocation.Devices.Results {
			result := &allocation.Devices.Results[i]
			devices = append(devices, result.Request+"="+result.Driver+"/"+result.Pool+"/"+result.Device)
		}
		steps = append(steps, Step{Time: timeOrNil(AllocationTime(claim)), What: "allocated", Detail: strings.Join(devices, ","), rank: rankAllocated})
	}
	var reserved *metav1.Time
	unknown := ": of several it is not kept when"
	if len(claim.Status.ReservedFor) == 1 { // or it is not known which one came with the devices
		reserved, unknown = AllocationTime(claim), ""
	}
	for _, consumer := range claim.Status.ReservedFor {
		steps = append(steps, Step{Time: timeOrNil(reserved), What: "reserved", Detail: "for " + consumer.Resource + "/" + consumer.Name + unknown, rank: rankReserved})
	}
	for i := range claim.ManagedFields {
		if entry := &claim.ManagedFields[i]; writesDevices(entry) {
			steps = append(steps, Step{Time: timeOrNil(entry.Time), What: "devices written", Detail: "last by " + entry.Manager, rank: rankDevice})
		}
	}
	steps = append(steps, bindingSteps(claim)...)
	for i := range claim.Status.Devices {
		device := &claim.Status.Devices[i]
		name := device.Driver + "/" + device.Pool + "/" + device.Device
		for j := range device.Conditions {
			c := &device.Conditions[j]
			steps = append(steps, Step{Time: timeOrNil(&c.LastTransitionTime), What: fmt.Sprintf("%s=%s", c.Type, c.Status), Object: "device " + name, Detail: joinDetails(c.Reason, c.Message), rank: rankDevice})
		}
	}
	if claim.DeletionTimestamp != nil {
		steps = append(steps, Step{Time: timeOrNil(claim.DeletionTimestamp), What: "deleted", Detail: "waits for " + strings.Join(claim.Finalizers, ","), rank: rankDeleted})
	}
	return steps
}

// bindingSteps are the binding conditions that nobody has set yet. Those that are set are among the conditions of
// devices.
func bindingSteps(claim *resourcev1.ResourceClaim) []Step {
	var steps []Step
	if claim.Status.Allocation == nil {
		return nil
	}
	for i := range claim.Status.Allocation.Devices.Results {
		result := &claim.Status.Allocation.Devices.Results[i]
		var conditions []metav1.Condition
		if entry := facts.EntryOf(claim, facts.ResultID(result)); entry != nil {
			conditions = entry.Conditions
		}
		for _, wanted := range result.BindingConditions {
			if meta.FindStatusCondition(conditions, wanted) == nil {
				steps = append(steps, Step{
					What: "waits for " + wanted, Object: "device " + result.Driver + "/" + result.Pool + "/" + result.Device,
					Detail: "a binding condition that the driver has not set: the Pod is not bound before", rank: rankWaiting,
				})
			}
		}
	}
	return steps
}

// writesDevices reports whether a manager has written status.devices of a claim.
func writesDevices(entry *metav1.ManagedFieldsEntry) bool {
	var fields struct {
		Status map[string]json.RawMessage `json:"f:status"`
	}
	if entry.Subresource != "status" || entry.FieldsV1 == nil || json.Unmarshal(entry.FieldsV1.GetRawBytes(), &fields) != nil {
		return false
	}
	return fields.Status["f:devices"] != nil
}

func describeRequests(claim *resourcev1.ResourceClaim) string {
	var all []string
	for i := range claim.Spec.Devices.Requests {
		request := &claim.Spec.Devices.Requests[i]
		if request.Exactly == nil {
			var classes []string
			for j := range request.FirstAvailable {
				classes = append(classes, request.FirstAvailable[j].DeviceClassName)
			}
			all = append(all, request.Name+" wants the first of "+strings.Join(classes, ", "))
			continue
		}
		count := "all"
		if request.Exactly.AllocationMode != resourcev1.DeviceAllocationModeAll {
			count = fmt.Sprint(request.Exactly.Count)
		}
		all = append(all, fmt.Sprintf("%s wants %s of %s", request.Name, count, request.Exactly.DeviceClassName))
	}
	return strings.Join(all, "; ")
}

// AllocationTime is when a claim got its devices. If the API server does not keep that time, it is when the
// scheduler last wrote the status.
func AllocationTime(claim *resourcev1.ResourceClaim) *metav1.Time {
	if at := claim.Status.Allocation; at != nil && at.AllocationTimestamp != nil {
		return at.AllocationTimestamp
	}
	for _, entry := range claim.ManagedFields {
		if entry.Subresource == "status" && strings.Contains(entry.Manager, "scheduler") {
			return entry.Time
		}
	}
	return nil
}

// LastSeen returns when an event was last seen.
func LastSeen(event *corev1.Event) time.Time {
	switch {
	case event.Series != nil:
		return event.Series.LastObservedTime.Time
	case !event.LastTimestamp.IsZero():
		return event.LastTimestamp.Time
	case !event.EventTime.IsZero():
		return event.EventTime.Time
	}
	return event.CreationTimestamp.Time
}
