package status

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	"github.com/kwok-dra/kwok-dra/internal/dractl/cli"
	"github.com/kwok-dra/kwok-dra/internal/dractl/cluster"
	"github.com/kwok-dra/kwok-dra/internal/dractl/clusterdevices"
	"github.com/kwok-dra/kwok-dra/internal/dractl/output"
	"github.com/kwok-dra/kwok-dra/internal/extensions/explaining/why"
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

// story has the objects that tell the history of a claim.
type story struct {
	claim *resourcev1.ResourceClaim
	// pods are those that it is reserved for, by name.
	pods map[string]*corev1.Pod
	// events are those of its namespace.
	events []*corev1.Event
}

// readStory reads the story of a claim.
func readStory(ctx context.Context, client kubernetes.Interface, namespace, name string) (*story, error) {
	claim, err := getClaim(ctx, client, namespace, name)
	if err != nil {
		return nil, err
	}
	s := &story{claim: claim, pods: map[string]*corev1.Pod{}}
	for _, consumer := range clusterdevices.ConsumingPods(claim) {
		pod, err := client.CoreV1().Pods(namespace).Get(ctx, consumer, metav1.GetOptions{})
		switch {
		case err == nil:
			s.pods[consumer] = pod
		case !apierrors.IsNotFound(err):
			return nil, fmt.Errorf("get pod %s/%s: %w", namespace, consumer, err)
		}
	}
	events, err := client.CoreV1().Events(namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, fmt.Errorf("list events: %w", err)
	}
	s.events = cluster.Pointers(events.Items)
	return s, nil
}

// getClaim gets a claim that the user has named. The error for one that does not exist says what may be
// meant: often the name is that of a Pod, whose claim was made from a template.
func getClaim(ctx context.Context, client kubernetes.Interface, namespace, name string) (*resourcev1.ResourceClaim, error) {
	claim, err := client.ResourceV1().ResourceClaims(namespace).Get(ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		list, err := client.ResourceV1().ResourceClaims(namespace).List(ctx, metav1.ListOptions{})
		if err != nil {
			return nil, fmt.Errorf("there is no claim %q in namespace %s: list claims: %w", name, namespace, err)
		}
		var names []string
		for i := range list.Items {
			names = append(names, list.Items[i].Name)
			for _, owner := range list.Items[i].OwnerReferences {
				if owner.Kind == "Pod" && owner.Name == name {
					return nil, fmt.Errorf("there is no claim %q in namespace %s: Pod %s has the claim %s", name, namespace, name, list.Items[i].Name)
				}
			}
		}
		return nil, cli.NotFound(fmt.Sprintf("there is no claim %q in namespace %s", name, namespace), name, names,
			"list them with kubectl get resourceclaims -n "+namespace)
	}
	if err != nil {
		return nil, fmt.Errorf("get resourceclaim %s/%s: %w", namespace, name, err)
	}
	return claim, nil
}

// listSteps returns the steps of the claim since its creation, in their order.
func (s *story) listSteps() []Step {
	steps := claimSteps(s.claim)
	objects := map[types.UID]string{s.claim.UID: ""}
	for _, consumer := range s.claim.Status.ReservedFor {
		if consumer.Resource != "pods" {
			continue
		}
		pod := s.pods[consumer.Name]
		if pod == nil || pod.UID != consumer.UID {
			steps = append(steps, Step{What: "gone", Object: "Pod " + consumer.Name, Detail: "the claim is still reserved for it", rank: rankBound})
			continue
		}
		objects[pod.UID] = "Pod " + pod.Name
		prepared := Step{What: "prepared", Detail: "for pods/" + pod.Name, rank: rankPrepared}
		switch start := facts.PodCondition(pod, corev1.PodReadyToStartContainers); {
		case start.Status == corev1.ConditionTrue:
			prepared.Time = timeOrNil(&start.LastTransitionTime)
			steps = append(steps, prepared)
		case pod.Status.Phase == corev1.PodRunning:
			prepared.Detail += ", which runs: the Pod does not say when"
			steps = append(steps, prepared)
		}
		steps = append(steps, podSteps(pod, metav1.IsControlledBy(s.claim, pod))...)
	}
	for _, event := range s.events {
		if object, of := objects[event.InvolvedObject.UID]; of {
			message := event.Message
			if event.Count > 1 {
				message += fmt.Sprintf(" (%d times)", event.Count)
			}
			steps = append(steps, Step{Time: new(why.LastSeen(event).UTC()), What: event.Reason, Object: object, Detail: message, rank: rankOfEvent(event)})
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
		steps = append(steps, Step{Time: timeOrNil(allocationTime(claim)), What: "allocated", Detail: strings.Join(devices, ","), rank: rankAllocated})
	}
	var reserved *metav1.Time
	unknown := ": of several it is not kept when"
	if len(claim.Status.ReservedFor) == 1 { // or it is not known which one came with the devices
		reserved, unknown = allocationTime(claim), ""
	}
	for _, consumer := range claim.Status.ReservedFor {
		steps = append(steps, Step{Time: timeOrNil(reserved), What: "reserved", Detail: "for " + consumer.Resource + "/" + consumer.Name + unknown, rank: rankReserved})
	}
	for i := range claim.ManagedFields {
		if entry := &claim.ManagedFields[i]; writesDevices(entry) {
			steps = append(steps, Step{Time: timeOrNil(entry.Time), What: "devices written", Detail: "last by " + entry.Manager, rank: rankDevice})
		}
	}
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

// allocationTime is when a claim got its devices. If the API server does not keep that time, it is when the
// scheduler last wrote the status.
func allocationTime(claim *resourcev1.ResourceClaim) *metav1.Time {
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

// stepTable shows steps, with the time since the first in whole seconds: most times in the API have no
// fraction, so the fraction of a difference would be wrong.
func stepTable(steps []Step) *output.Rows {
	columns := []output.Column{{Name: "time"}, {Name: "after"}, {Name: "object"}, {Name: "step"}, {Name: "detail"}}
	table := &output.Rows{Columns: columns, Tail: true}
	var first time.Time
	for i := range steps {
		step := &steps[i]
		at, after := "<unknown>", "<unknown>"
		if step.Time != nil {
			if first.IsZero() {
				first = step.Time.Truncate(time.Second)
			}
			at, after = step.Time.Format(time.RFC3339), step.Time.Truncate(time.Second).Sub(first).String()
			if step.Time.Nanosecond() != 0 {
				at = step.Time.Format("2006-01-02T15:04:05.000Z07:00") // as much of the second as is known
			}
		}
		table.Add(at, after, cmp.Or(step.Object, "claim"), step.What, output.OrNone(step.Detail))
	}
	return table
}
