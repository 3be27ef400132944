package kubeletmetrics

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/kwok-dra/kwok-dra/internal/claims/plan"
	"github.com/kwok-dra/kwok-dra/internal/observe/facts"
)

// The operations of a kubelet.
const (
	prepareResources   = "PrepareResources"
	unprepareResources = "UnprepareResources"
)

// Pod records the operations of a Pod, as a claims.PodRecorder. The kubelets record the calls of real drivers.
type Pod struct {
	*Metrics
	// name is that of the operation in progress, or empty, and began the time since when it is due.
	name  string
	began time.Time
}

// NewPod makes the recorder of a Pod.
func (m *Metrics) NewPod() *Pod { return &Pod{Metrics: m} }

// Begin implements claims.PodRecorder. An operation that Stages delay counts as in progress, since Stages play slow drivers
// that way.
func (o *Pod) Begin(pod *corev1.Pod, due time.Time) {
	name, began := prepareResources, due
	switch {
	case facts.IsEnding(pod):
		name, began = unprepareResources, time.Now()
	case facts.ReadyToStart(pod) == corev1.ConditionTrue:
		name = ""
	}
	if o.name != name {
		o.name, o.began = name, began
	}
}

// Pause implements claims.PodRecorder.
func (o *Pod) Pause() { o.name = "" }

// Finish implements claims.PodRecorder.
func (o *Pod) Finish(drivers sets.Set[string], hasTemplates func(driver string) bool, failure *plan.Failure) {
	name := o.name
	if o.name = ""; name == "" {
		return
	}
	took, code := time.Since(o.began), "OK"
	o.recordOperation(name, took, failure != nil)
	switch {
	case failure == nil:
	case failure.Reason == plan.ReasonUnavailable:
		code = "Unavailable"
	case failure.Reason != plan.ReasonSimulated && failure.Reason != plan.ReasonParameters: // which the call returns with OK
		return // a kubelet fails before it calls drivers
	}
	for driver := range drivers {
		if hasTemplates(driver) {
			o.Call(driver, methodPrefix+name, code, took)
		}
	}
}

// RecordGone implements claims.PodRecorder. Which drivers were real is no longer known, so calls are recorded only if no
// driver can be.
func (o *Pod) RecordGone(drivers sets.Set[string]) {
	took := time.Duration(0)
	if o.name == unprepareResources {
		took = time.Since(o.began)
	}
	o.recordOperation(unprepareResources, took, false)
	for driver := range drivers {
		if o.AllHaveTemplates != nil && o.AllHaveTemplates(driver) {
			o.Call(driver, methodPrefix+unprepareResources, "OK", took)
		}
	}
}
