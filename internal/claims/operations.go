package claims

import (
	"maps"
	"slices"
	"strings"
	"time"
	"unique"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/kwok-dra/kwok-dra/internal/claims/plan"
	"github.com/kwok-dra/kwok-dra/internal/observe/facts"
)

// KubeletRecorder records what a kubelet measures.
type KubeletRecorder interface {
	// CountInUse sets the function that counts the prepared claims, by driver and in total.
	CountInUse(inUse func() (byDriver map[string]int, all int))
	// Operation records an operation for all claims of a Pod.
	Operation(name string, took time.Duration, failed bool)
	// OperationCall records the call that an operation makes to a driver with templates.
	OperationCall(driver, operation, code string, took time.Duration)
}

// The operations of a kubelet.
const (
	prepareResources   = "PrepareResources"
	unprepareResources = "UnprepareResources"
)

// kubeletOperation is an operation of a Pod that the kubelet measures, and the time since when it is due.
type kubeletOperation struct {
	name  string
	began time.Time
}

// startOperation records which operation is due for a Pod. An operation that Stages delay counts as in progress, since
// Stages play slow drivers that way.
func (r *podReconciler) startOperation(s *podSync) {
	name, began := prepareResources, time.Now()
	switch pod := s.view.Pod; {
	case facts.IsEnding(pod):
		name = unprepareResources
	case facts.ReadyToStart(pod) == corev1.ConditionTrue:
		name = ""
	default:
		if bound, known := r.states.bound.Load(s.key); known && bound.(boundPod).uid == pod.UID && s.view.Memory.Last == nil {
			began = bound.(boundPod).at // the Pod has been queued since
		}
	}
	if s.state.operation.name != name {
		s.state.operation = kubeletOperation{name, began}
	}
}

// finishOperation records an operation that has ended for now, and its calls of drivers with templates. The kubelets
// record the calls of real drivers. The drivers are those of all claims of the Pod if called is nil.
func (r *podReconciler) finishOperation(s *podSync, called sets.Set[string], failure *plan.Failure) {
	operation := s.state.operation
	s.state.operation.name = ""
	if operation.name == "" || s.state.standby || r.KubeletRecorder == nil {
		return
	}
	took, code := time.Since(operation.began), "OK"
	r.KubeletRecorder.Operation(operation.name, took, failure != nil)
	switch {
	case failure == nil:
	case failure.Reason == plan.ReasonUnavailable:
		code = "Unavailable"
	case failure.Reason != plan.ReasonSimulated && failure.Reason != plan.ReasonParameters: // which the call returns with OK
		return // a kubelet fails before it calls drivers
	}
	if called == nil {
		called = driversOf(slices.Collect(maps.Values(s.view.Claims.Known))...)
	}
	for driver := range called {
		if s.ofTemplates.Has(driver) {
			r.KubeletRecorder.OperationCall(driver, operation.name, code, took)
		}
	}
}

// recordGonePod records that the claims of a deleted Pod are unprepared. Which drivers were real is no longer known, so
// calls are recorded only if no driver can be.
func (r *podReconciler) recordGonePod(state *podState, drivers sets.Set[string]) {
	if drivers == nil || state.standby || r.KubeletRecorder == nil {
		return
	}
	took := time.Duration(0)
	if state.operation.name == unprepareResources {
		took = time.Since(state.operation.began)
	}
	r.KubeletRecorder.Operation(unprepareResources, took, false)
	if r.Kubelets != nil && r.Kubelets.Enabled() {
		return
	}
	for driver := range drivers {
		if set := r.Config.Current(); set != nil && set.HasDriver(driver) {
			r.KubeletRecorder.OperationCall(driver, unprepareResources, "OK", took)
		}
	}
}

// driversOf returns the drivers of the devices of claims.
func driversOf(claims ...*resourcev1.ResourceClaim) sets.Set[string] {
	names := sets.New[string]()
	for _, claim := range claims {
		if claim.Status.Allocation != nil {
			for i := range claim.Status.Allocation.Devices.Results {
				names.Insert(claim.Status.Allocation.Devices.Results[i].Driver)
			}
		}
	}
	return names
}

// countInUse counts the prepared claims, by driver and in total.
func (s *account) countInUse() (byDriver map[string]int, all int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	byName := map[unique.Handle[string]]int{}
	for _, users := range s.users {
		byName[users.drivers]++
	}
	byDriver = map[string]int{}
	for names, count := range byName {
		for driver := range strings.FieldsSeq(names.Value()) {
			byDriver[driver] += count
		}
	}
	return byDriver, len(s.users)
}
