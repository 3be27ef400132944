package why

import (
	"context"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kwok-dra/kwok-dra/internal/extensions/explaining/simulator"
	"github.com/kwok-dra/kwok-dra/internal/observe/facts"
)

// Cluster is what is known of a cluster. Answers say less if parts are nil.
type Cluster struct {
	// Now is for what is due.
	Now    time.Time
	Claims map[types.NamespacedName]*resourcev1.ResourceClaim
	// Failures are the newest event of each Pod that tells of a failure, by its UID.
	Failures map[types.UID]*corev1.Event
	// Nodes are all of them, by name.
	Nodes     map[string]*corev1.Node
	Scheduler *simulator.Scheduler
	// Sidecar is what kwok-dra works with.
	Sidecar *Sidecar
	// Unseen says what could not be read, if anything.
	Unseen string

	slices []*resourcev1.ResourceSlice
}

// NewCluster makes a Cluster of claims and of events about failures.
func NewCluster(claims []*resourcev1.ResourceClaim, events []*corev1.Event) *Cluster {
	c := &Cluster{Claims: map[types.NamespacedName]*resourcev1.ResourceClaim{}, Failures: map[types.UID]*corev1.Event{}}
	for _, claim := range claims {
		c.Claims[types.NamespacedName{Namespace: claim.Namespace, Name: claim.Name}] = claim
	}
	for _, event := range events {
		uid := event.InvolvedObject.UID
		if known := c.Failures[uid]; known == nil || facts.LastSeen(event).After(facts.LastSeen(known)) {
			c.Failures[uid] = event
		}
	}
	return c
}

// Answer says why a Pod does not run yet.
func (c *Cluster) Answer(ctx context.Context, pod *corev1.Pod) *Answer {
	answer := newAnswer(pod)
	scheduled := facts.PodCondition(pod, corev1.PodScheduled)
	start := facts.PodCondition(pod, corev1.PodReadyToStartContainers)
	switch {
	case pod.DeletionTimestamp != nil:
		return answer.setState(Terminating, *pod.DeletionTimestamp, "it is being deleted")
	case facts.IsTerminal(pod):
		return answer.setState(Ended, facts.PodCondition(pod, corev1.PodReady).LastTransitionTime, "it has ended: "+string(pod.Status.Phase))
	case pod.Status.Phase == corev1.PodRunning:
		return answer.setState(Running, facts.PodCondition(pod, corev1.PodReady).LastTransitionTime, "it runs on node "+pod.Spec.NodeName)
	case pod.Spec.NodeName == "":
		return c.explainUnbound(ctx, answer)
	case !facts.UsesClaims(pod):
		return answer.setState(NoClaims, scheduled.LastTransitionTime, noClaims+"; it has not started yet on node "+pod.Spec.NodeName)
	case start.Status == corev1.ConditionTrue:
		return answer.setState(Starting, start.LastTransitionTime, "its claims are prepared; "+describeContainers(pod))
	}
	return c.explainPreparing(ctx, answer.setState(Preparing, scheduled.LastTransitionTime, ""))
}

const noClaims = "it has no ResourceClaim and no extended resource of a DeviceClass, so it waits for no device"

// describeContainers says what is known of containers that do not run.
func describeContainers(pod *corev1.Pod) string {
	var waiting []string
	for _, status := range slices.Concat(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses) {
		if state := status.State.Waiting; state != nil {
			waiting = append(waiting, joinNonEmpty(": ", "container "+status.Name+" waits", state.Reason, state.Message))
		}
	}
	if len(waiting) == 0 {
		return "no Stage of KWOK has started its containers yet, such as pod-ready"
	}
	return strings.Join(waiting, "; ")
}

// joinNonEmpty joins the texts that are not empty.
func joinNonEmpty(separator string, texts ...string) string {
	return strings.Join(slices.DeleteFunc(texts, func(text string) bool { return text == "" }), separator)
}
