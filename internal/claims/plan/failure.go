package plan

import (
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kwok-dra/kwok-dra/internal/config"
	"github.com/kwok-dra/kwok-dra/internal/observe/facts"
	"github.com/kwok-dra/kwok-dra/pkg/api/v1alpha1"
)

// The reasons of prepare failures, as kwok_dra_prepare_failures_total has them.
// docs/reference/metrics.md is made from these comments.
const (
	// the claim does not exist, or has not been created from its template yet.
	ReasonNoClaim = "no_claim"
	// the claim was made for another Pod.
	ReasonNotOwner = "not_owner"
	// the claim is not reserved for the Pod, which was bound without the scheduler.
	ReasonNotReserved = "not_reserved"
	// the claim is not allocated.
	ReasonNotAllocated = "not_allocated"
	// a template names the driver, and it has no pool on the node, or no Pod where it needs one.
	ReasonNotRegistered = "not_registered"
	// the Stages say that the driver's plugin has crashed.
	ReasonUnavailable = "unavailable"
	// a real driver refuses, or does not answer.
	ReasonDriver = "driver"
	// the opaque parameters for a driver do not fit `parameters` of its template.
	ReasonParameters = "parameters"
	// `failWhen` selects the Pod.
	ReasonSimulated = "simulated"
	// a template in `claimStatus` cannot be rendered, or yields what the API server does not accept.
	ReasonTemplate = "template"
	// no document in force makes a device that is published, or none is in force at all, and a document is refused since before kwok-dra started.
	ReasonUnsettled = "unsettled"
	// `prepareWhen` or `failWhen` cannot be evaluated for the Pod.
	ReasonSelector = "selector"
	// the API server refuses a write, or does not answer.
	ReasonAPI = "api"
)

// Failure is a failure that a kubelet would report as well. Only time or a change of the Pod helps.
type Failure struct {
	Reason string
	Err    error
}

// Error is the kubelet's text.
func (f *Failure) Error() string { return f.Err.Error() }

// Unwrap returns the cause.
func (f *Failure) Unwrap() error { return f.Err }

// Failed returns a Failure.
func Failed(reason, format string, arguments ...any) error {
	return &Failure{Reason: reason, Err: fmt.Errorf(format, arguments...)}
}

// Pending is the error of a driver that tries a call again and again, until the call fails after Timeout.
type Pending struct {
	*Failure
	Timeout time.Duration
}

// LastFailure is what is remembered of a Failure until the retry.
type LastFailure struct {
	retry  time.Time
	reason string
	// edition and set are those that the failure was planned on.
	edition metav1.ObjectMeta
	set     *config.Set
}

// NewLastFailure remembers a failure of the view's Pod until the time of its retry.
func NewLastFailure(v *PodView, failure *Failure, retry time.Time) *LastFailure {
	return &LastFailure{retry: retry, reason: failure.Reason, edition: podEdition(v.Pod), set: v.Set}
}

// podEdition changes with each edit of a Pod for which the kubelet syncs it at once, which is any but one of its status.
func podEdition(pod *corev1.Pod) metav1.ObjectMeta {
	return metav1.ObjectMeta{Generation: pod.Generation, Labels: pod.Labels, Annotations: pod.Annotations}
}

// remainingDelay returns how long the Pod has to wait for the retry. A simulated failure ends as soon as failWhen no longer
// selects the Pod, others with an edit of the Pod, and those that the configuration causes with an edit of that too.
func (f *LastFailure) remainingDelay(v *PodView, fails bool, now time.Time) time.Duration {
	switch {
	case f == nil,
		f.reason == ReasonSimulated && !fails,
		f.reason != ReasonSimulated && !apiequality.Semantic.DeepEqual(f.edition, podEdition(v.Pod)),
		slices.Contains([]string{ReasonUnsettled, ReasonTemplate, ReasonParameters}, f.reason) && f.set != v.Set:
		return 0
	}
	return max(0, f.retry.Sub(now))
}

// simulatedFailureText is the message of the condition with which Stages make preparing fail.
func simulatedFailureText(pod *corev1.Pod) string {
	condition := facts.PodCondition(pod, v1alpha1.PrepareResources)
	if condition.Status != corev1.ConditionFalse || condition.Message == "" {
		return "failWhen selects the Pod"
	}
	return condition.Message
}
