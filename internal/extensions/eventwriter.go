package extensions

import (
	"context"
	"errors"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/record"
	"k8s.io/klog/v2"

	"github.com/kwok-dra/kwok-dra/internal/extensions/explaining/why"
	"github.com/kwok-dra/kwok-dra/pkg/api/v1alpha1"
)

const (
	// explainInterval is how often the eventWriter looks for Pods without a node.
	explainInterval = 10 * time.Second
	// explainRetryInterval is how soon it looks again after an error.
	explainRetryInterval = time.Minute
	// explainAgainInterval is the shortest time between two events of a Pod.
	explainAgainInterval = 5 * time.Minute
)

// eventWriter writes events on Pods with claims that have had no node for long. The events say why.
type eventWriter struct {
	// after is how long a Pod waits without an event.
	after           time.Duration
	isLeader        func() bool
	listUnscheduled func(ctx context.Context) ([]*corev1.Pod, error)
	readCluster     func(ctx context.Context) (*why.Cluster, error)
	recorder        record.EventRecorder
	// lastEvents maps each Pod without a node to its last event.
	lastEvents map[types.UID]podEvent
}

// podEvent is what an event of a Pod says, and when it was written.
type podEvent struct {
	text string
	at   time.Time
}

func (e *eventWriter) runUntilDone(ctx context.Context) {
	for wait := explainInterval; ; {
		select {
		case <-ctx.Done():
			return
		case <-time.After(wait):
		}
		wait = explainInterval
		if !e.isLeader() {
			continue
		}
		if err := e.explainWaitingPods(ctx); err != nil && ctx.Err() == nil {
			klog.FromContext(ctx).Error(err, "Failed to explain unscheduled Pods")
			wait = explainRetryInterval
		}
	}
}

// explainWaitingPods looks at all Pods without a node once, and reads the cluster only if an event is due.
func (e *eventWriter) explainWaitingPods(ctx context.Context) error {
	pods, err := e.listUnscheduled(ctx)
	if err != nil {
		return err
	}
	before := e.lastEvents
	e.lastEvents = map[types.UID]podEvent{}
	var due []*corev1.Pod
	for _, pod := range pods {
		last, known := before[pod.UID]
		if known {
			e.lastEvents[pod.UID] = last
		}
		if time.Since(pod.CreationTimestamp.Time) >= e.after && time.Since(last.at) >= explainAgainInterval {
			due = append(due, pod)
		}
	}
	if len(due) == 0 {
		return nil
	}
	known, err := e.readCluster(ctx)
	if err != nil {
		return err
	}
	for _, pod := range due {
		answer := known.Answer(ctx, pod)
		if ctx.Err() != nil { // the answer of a search that was interrupted is wrong
			return ctx.Err()
		}
		e.writeEvent(pod, answer)
	}
	return nil
}

// writeEvent writes an event, unless the last one says the same.
func (e *eventWriter) writeEvent(pod *corev1.Pod, answer *why.Answer) {
	if !answer.Waits() {
		return
	}
	text := v1alpha1.EventMessage(errors.New(answer.Reason))
	if e.lastEvents[pod.UID].text != text {
		e.recorder.Event(pod, corev1.EventTypeWarning, v1alpha1.ReasonWaitingForNode, text)
	}
	e.lastEvents[pod.UID] = podEvent{text, time.Now()}
}
