package claims

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/klog/v2"

	"github.com/kwok-dra/kwok-dra/pkg/api/v1alpha1"
	"github.com/kwok-dra/kwok-dra/pkg/loop"
)

// retryJitter is what the kubelet adds to the time between two syncs of a Pod, as
// a share of it (workerResyncIntervalJitterFactor in pkg/kubelet/pod_workers.go).
const retryJitter = 0.5

// gate says what the configuration wants of a Pod now.
type gate int

const (
	gateWait gate = iota
	gatePrepare
	gateFail
)

// gate asks the selectors.
func (a *attempt) gate(ctx context.Context) (gate, error) {
	fail, err := a.set.FailWhen.Matches(ctx, a.object)
	if err != nil {
		return gateWait, &prepareError{reasonSelector, err}
	}
	if fail {
		return gateFail, nil
	}
	prepare, err := a.set.PrepareWhen.Matches(ctx, a.object)
	if err != nil {
		return gateWait, &prepareError{reasonSelector, err}
	}
	if prepare {
		return gatePrepare, nil
	}
	return gateWait, nil
}

// prepare prepares the claims of a Pod, all or none.
func (p *Preparer) prepare(ctx context.Context, a *attempt) error {
	if a.set.Faithful {
		if err := p.showWaiting(ctx, a); err != nil {
			return err
		}
	}
	gate, err := a.gate(ctx)
	if err != nil {
		return err
	}
	if gate == gateWait {
		return p.showWaiting(ctx, a)
	}
	if left := a.state.failure.left(a, gate); left > 0 {
		p.podLoop.AddAfter(a.key, left)
		return nil
	}
	claims, err := p.check(ctx, a)
	if err != nil {
		return err
	}
	if !p.actsFor(a.node, claims) {
		return nil // the cache did not have a claim yet
	}
	wanted, err := p.plan(a, claims, gate)
	if err != nil {
		return err
	}
	for _, want := range wanted {
		if err := p.write(ctx, a, want); err != nil {
			return err
		}
	}
	return p.start(ctx, a)
}

// plan works out what all claims of the Pod are to show, before any is written.
func (p *Preparer) plan(a *attempt, claims []*resourcev1.ResourceClaim, gate gate) ([]*desired, error) {
	var wanted []*desired
	for _, claim := range claims {
		if err := a.answer(claim, gate); err != nil {
			return nil, err
		}
		want, err := p.desire(a, claim)
		if err != nil {
			return nil, failed(reasonTemplate, "NodePrepareResources failed for ResourceClaim %s: %w", claim.Name, err)
		}
		wanted = append(wanted, want)
	}
	return wanted, nil
}

// answer is what the driver of a claim would answer the kubelet. Drivers without
// a template are not played.
func (a *attempt) answer(claim *resourcev1.ResourceClaim, gate gate) error {
	for _, result := range claim.Status.Allocation.Devices.Results {
		if err := a.unsettled(&result); err != nil && !skipsPrepare(claim, result.Driver) {
			return failed(reasonUnsettled, "NodePrepareResources failed for ResourceClaim %s: %w", claim.Name, err)
		}
		switch {
		case !a.set.Names(result.Driver):
		case pluginOf(a.node) == pluginSilent:
			return unavailable(result.Driver)
		case gate == gateFail:
			return failed(reasonSimulated, "NodePrepareResources failed for ResourceClaim %s: %s", claim.Name, failureOf(a.pod))
		}
	}
	return nil
}

// unsettled is why it is not known what the driver of a device does: kwok-dra has
// published it, no document in force makes it, and of a refused one no good version is
// known. It is nil where that is known.
func (a *attempt) unsettled(result *resourcev1.DeviceRequestAllocationResult) error {
	if len(a.set.Unsettled) == 0 || !a.published(a.node.Name, result) {
		return nil
	}
	_, err := a.lookup.Template(result)
	if err == nil {
		return nil
	}
	return fmt.Errorf("%w, until this is settled: %w", err, utilerrors.NewAggregate(a.set.Unsettled))
}

// desire counts the Pod among those that the claim is prepared for.
func (p *Preparer) desire(a *attempt, claim *resourcev1.ResourceClaim) (*desired, error) {
	return desire(claim, source{lookup: a.lookup, named: a.set.Names, pods: objectsOf(p.users(claim, a.pod.UID))})
}

// start reports that the Pod's containers can be started.
func (p *Preparer) start(ctx context.Context, a *attempt) error {
	if err := p.patchStatus(ctx, a, "ready", startStatus(a.pod, corev1.ConditionTrue, time.Now())); err != nil {
		return err
	}
	a.state.failure = nil
	p.metrics.ready(p.states.boundAt(a.state))
	klog.FromContext(ctx).V(2).Info("Prepared the claims of the pod", "pod", a.key, "node", a.node.Name)
	return p.showHealth(ctx, a)
}

// showWaiting gives a Pod the status of one that waits, unless it has it, or
// its containers run without having waited.
func (p *Preparer) showWaiting(ctx context.Context, a *attempt) error {
	if readyToStart(a.pod) != "" || !waiting(a.pod) {
		return nil
	}
	return p.patchStatus(ctx, a, "waiting", waitingStatus(a.pod, a.node, time.Now()))
}

// report reports a failure, and sets when the Pod is tried again.
func (p *Preparer) report(ctx context.Context, a *attempt, err error) error {
	var failure *prepareError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &failure):
		return p.fail(ctx, a, failure)
	case loop.LostRace(err):
		return err // the Pod or the claim is gone, or another one has its name
	}
	p.metrics.failures.WithLabelValues(reasonAPI).Inc()
	if forbidden(err) || p.podLoop.Failures(a.key) >= loop.Patience {
		p.event(a, err)
	}
	return err
}

// forbidden reports whether an answer remains the same however often the request
// is repeated. The API server refuses as invalid what a status may not contain for
// lack of permission.
func forbidden(err error) bool {
	return apierrors.IsForbidden(err) || apierrors.IsInvalid(err) && strings.Contains(err.Error(), "Forbidden:")
}

// fail makes the Pod wait as the kubelet would.
func (p *Preparer) fail(ctx context.Context, a *attempt, failure *prepareError) error {
	p.metrics.failures.WithLabelValues(failure.reason).Inc()
	p.event(a, failure)
	retry := wait.Jitter(a.set.RetryInterval, retryJitter)
	a.state.failure = newFailure(a, failure.reason, time.Now().Add(retry))
	p.podLoop.AddAfter(a.key, retry)
	klog.FromContext(ctx).V(2).Info("Could not prepare the claims of the pod", "pod", a.key, "node", a.node.Name, "reason", failure.reason, "err", failure.err)
	return p.showWaiting(ctx, a)
}

func (p *Preparer) event(a *attempt, err error) {
	p.recorder(a.node.Name).Event(a.pod, corev1.EventTypeWarning, v1alpha1.ReasonFailedPrepare, v1alpha1.EventMessage(failureMessage(err)))
}

// podVersion is what the kubelet syncs a Pod for at once: a change of anything
// but its status.
type podVersion struct {
	generation          int64
	labels, annotations map[string]string
}

func versionOf(pod *corev1.Pod) podVersion {
	return podVersion{generation: pod.Generation, labels: pod.Labels, annotations: pod.Annotations}
}

func (v podVersion) equal(other podVersion) bool {
	return v.generation == other.generation && maps.Equal(v.labels, other.labels) && maps.Equal(v.annotations, other.annotations)
}

func newFailure(a *attempt, reason string, retry time.Time) *failure {
	return &failure{retry: retry, reason: reason, version: versionOf(a.pod), set: a.set}
}

// left is how long the Pod still has to wait: until the retry, but no longer than
// until failWhen no longer selects it, or, where it is not to blame, until the Pod
// is edited, or the configuration where that is to blame.
func (f *failure) left(a *attempt, gate gate) time.Duration {
	switch {
	case f == nil,
		f.reason == reasonSimulated && gate == gatePrepare,
		f.reason != reasonSimulated && !f.version.equal(versionOf(a.pod)),
		(f.reason == reasonUnsettled || f.reason == reasonTemplate) && f.set != a.set:
		return 0
	}
	return max(0, time.Until(f.retry))
}
