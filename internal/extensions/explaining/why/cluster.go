package why

import (
	"context"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kwok-dra/kwok-dra/internal/extensions/explaining/history"
	"github.com/kwok-dra/kwok-dra/internal/extensions/explaining/simulator"
	"github.com/kwok-dra/kwok-dra/internal/observe/facts"
	"github.com/kwok-dra/kwok-dra/pkg/api/v1alpha1"
)

// Cluster is what is known of a cluster. Answers say less if parts are nil.
type Cluster struct {
	Objects

	// Now is for what is due.
	Now time.Time
	// Failures are the newest event of each Pod about a claim that cannot be created or prepared, by
	// the UID of the Pod, and Warnings its newest other warning.
	Failures, Warnings map[types.UID]*corev1.Event
	Scheduler          *simulator.Scheduler
	// Sidecar says what kwok-dra does. It is nil in clusters without it.
	Sidecar Sidecar
	// Unseen says what could not be read, if anything.
	Unseen string
}

// Objects are those of a cluster that Pods with devices depend on.
type Objects struct {
	Claims map[types.NamespacedName]*resourcev1.ResourceClaim
	// Nodes are all of them, by name.
	Nodes  map[string]*corev1.Node
	Slices []*resourcev1.ResourceSlice
	// Unread are the resources that could not be read.
	Unread []string
}

// Sidecar says what kwok-dra does for Pods on fake nodes.
type Sidecar interface {
	// ForecastPreparation says what kwok-dra would do for a Pod now if it would not prepare its claims,
	// why, and what else is known.
	ForecastPreparation(ctx context.Context, pod *corev1.Pod) (now, cause string, details []string)
	// RetryInterval is how long kwok-dra waits before it tries again to prepare claims.
	RetryInterval() time.Duration
	// DescribeSilence says why a driver has published nothing.
	DescribeSilence(driver string) []string
	// DescribeSetter says who sets the binding conditions of the devices of a driver, and when.
	DescribeSetter(driver string, allocated time.Time) string
}

// NewCluster makes a Cluster of claims and of events about failures.
func NewCluster(claims []*resourcev1.ResourceClaim, events []*corev1.Event) *Cluster {
	c := &Cluster{
		Objects:  Objects{Claims: map[types.NamespacedName]*resourcev1.ResourceClaim{}},
		Failures: map[types.UID]*corev1.Event{}, Warnings: map[types.UID]*corev1.Event{},
	}
	for _, claim := range claims {
		c.Claims[types.NamespacedName{Namespace: claim.Namespace, Name: claim.Name}] = claim
	}
	for _, event := range events {
		uid, of := event.InvolvedObject.UID, c.Warnings
		switch {
		case event.Reason == v1alpha1.ReasonFailedPrepare || event.Reason == failedCreation:
			of = c.Failures
		case event.Type != corev1.EventTypeWarning:
			continue
		}
		if known := of[uid]; known == nil || history.LastSeen(event).After(history.LastSeen(known)) {
			of[uid] = event
		}
	}
	return c
}

// NewWorldCluster makes a Cluster of all that is known of one.
func NewWorldCluster(world *simulator.World, events []*corev1.Event) *Cluster {
	c := NewCluster(world.Claims, events)
	c.Slices, c.Unseen = world.Slices, world.Unseen
	c.Nodes = map[string]*corev1.Node{}
	for _, node := range world.Nodes {
		c.Nodes[node.Name] = node
	}
	c.Scheduler = simulator.NewScheduler(world)
	return c
}

// isUnread reports whether a resource could not be read.
func (o *Objects) isUnread(resource string) bool { return slices.Contains(o.Unread, resource) }

// Answer says why a Pod does not run yet.
func (c *Cluster) Answer(ctx context.Context, pod *corev1.Pod) *Answer {
	answer := &Answer{Subject: Subject{Namespace: pod.Namespace, Pod: pod.Name, Node: pod.Spec.NodeName}, pod: pod}
	if owner := metav1.GetControllerOf(pod); owner != nil {
		answer.Owner = owner.Kind + " " + owner.Name
	}
	scheduled := facts.PodCondition(pod, corev1.PodScheduled)
	start := facts.PodCondition(pod, corev1.PodReadyToStartContainers)
	switch {
	case pod.DeletionTimestamp != nil:
		return c.explainEnding(answer)
	case facts.IsTerminal(pod):
		return answer.setState(Ended, facts.PodCondition(pod, corev1.PodReady).LastTransitionTime, "it has ended: "+string(pod.Status.Phase))
	case pod.Status.Phase == corev1.PodRunning:
		answer.Details = c.describeUnhealthy(pod)
		return answer.setState(Running, facts.PodCondition(pod, corev1.PodReady).LastTransitionTime, "it runs on node "+pod.Spec.NodeName)
	case pod.Spec.NodeName == "":
		return c.explainUnbound(ctx, answer)
	case !facts.UsesClaims(pod):
		answer.Details = []string{noClaims}
		return answer.setState(Starting, scheduled.LastTransitionTime, c.describeUnstarted(pod))
	case start.Status == corev1.ConditionTrue:
		prepared := joinNonEmpty(", but ", "its claims are prepared", strings.Join(c.describeUnhealthy(pod), ", "))
		return answer.setState(Starting, start.LastTransitionTime, prepared+"; "+c.describeUnstarted(pod))
	}
	return c.explainPreparing(ctx, answer.setState(Preparing, scheduled.LastTransitionTime, ""))
}

const noClaims = "it has no ResourceClaim and no extended resource of a DeviceClass, so it waits for no device"

// describeUnstarted says what is known of containers that do not run.
func (c *Cluster) describeUnstarted(pod *corev1.Pod) string {
	var waiting []string
	for _, status := range slices.Concat(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses) {
		if state := status.State.Waiting; state != nil && state.Reason != containerCreating && state.Reason != podInitializing {
			waiting = append(waiting, joinNonEmpty(": ", "container "+status.Name+" waits", state.Reason, state.Message))
		}
	}
	warning := c.Warnings[pod.UID]
	switch {
	case len(waiting) > 0:
		return strings.Join(waiting, "; ")
	case c.describeNode(pod.Spec.NodeName) != "":
		return c.describeNode(pod.Spec.NodeName)
	case warning != nil:
		return describeEvent(warning)
	case c.Sidecar != nil:
		return "no Stage of KWOK has started its containers yet, such as pod-ready"
	}
	return "the kubelet of node " + pod.Spec.NodeName + " has not started its containers yet"
}

// The reasons of containers of which only others say why they wait.
const containerCreating, podInitializing = "ContainerCreating", "PodInitializing"

// joinNonEmpty joins the texts that are not empty.
func joinNonEmpty(separator string, texts ...string) string {
	return strings.Join(slices.DeleteFunc(texts, func(text string) bool { return text == "" }), separator)
}
