package extensions

import (
	"context"
	"errors"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/record"
	"k8s.io/klog/v2"

	"github.com/kwok-dra/kwok-dra/pkg/api/v1alpha1"
	"github.com/kwok-dra/kwok-dra/pkg/why"
)

const (
	// explainEvery is how often the explainer looks for Pods without a node.
	explainEvery = 10 * time.Second
	// explainRetry is when it looks again after an error.
	explainRetry = time.Minute
	// explainAgain is when a Pod may have another event, if the reason is another one by then.
	explainAgain = 5 * time.Minute
)

// explainer writes events on Pods with claims that have had no node for long. They say why.
type explainer struct {
	// after is how long a Pod waits without an event.
	after       time.Duration
	leads       func() bool
	unscheduled func(ctx context.Context) ([]*corev1.Pod, error)
	// whole reads the cluster.
	whole    func(ctx context.Context) (*why.Cluster, error)
	recorder record.EventRecorder
	told     map[types.UID]told
}

// told is what the last event of a Pod says, and when it was written.
type told struct {
	text string
	at   time.Time
}

func (e *explainer) run(ctx context.Context) {
	for wait := explainEvery; ; {
		select {
		case <-ctx.Done():
			return
		case <-time.After(wait):
		}
		wait = explainEvery
		if !e.leads() {
			continue
		}
		if err := e.explain(ctx); err != nil && ctx.Err() == nil {
			klog.FromContext(ctx).Error(err, "Cannot say why Pods have no node")
			wait = explainRetry
		}
	}
}

// explain looks at all Pods without a node once.
func (e *explainer) explain(ctx context.Context) error {
	pods, err := e.unscheduled(ctx)
	if err != nil {
		return err
	}
	before := e.told
	e.told = map[types.UID]told{}
	var due []*corev1.Pod
	for _, pod := range pods {
		last, known := before[pod.UID]
		if known {
			e.told[pod.UID] = last
		}
		if time.Since(pod.CreationTimestamp.Time) >= e.after && time.Since(last.at) >= explainAgain {
			due = append(due, pod)
		}
	}
	if len(due) == 0 {
		return nil
	}
	known, err := e.whole(ctx)
	if err != nil {
		return err
	}
	for _, pod := range due {
		e.tell(pod, known.Answer(ctx, pod))
	}
	return nil
}

// tell writes an event, unless the last one says the same.
func (e *explainer) tell(pod *corev1.Pod, answer *why.Answer) {
	if !answer.Waits() {
		return
	}
	text := v1alpha1.EventMessage(errors.New(answer.Reason))
	if e.told[pod.UID].text != text {
		e.recorder.Event(pod, corev1.EventTypeWarning, v1alpha1.ReasonWaitingForNode, text)
	}
	e.told[pod.UID] = told{text, time.Now()}
}
