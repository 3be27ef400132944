package claims

import (
	"strings"
	"time"
	"unique"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/kwok-dra/kwok-dra/pkg/claims/plan"
	"github.com/kwok-dra/kwok-dra/pkg/observe/facts"
)

// KubeletRecorder records what a kubelet measures.
type KubeletRecorder interface {
	// CountInUse sets what counts the claims that are prepared, by driver and all.
	CountInUse(inUse func() (byDriver map[string]int, all int))
	// Operation records an operation for all claims of a Pod.
	Operation(name string, took time.Duration, failed bool)
	// OperationCall records the call of a driver that an operation makes, as of a driver with templates.
	OperationCall(driver, operation, code string, took time.Duration)
}

// The operations of a kubelet.
const (
	prepareResources   = "PrepareResources"
	unprepareResources = "UnprepareResources"
)

// noRecorder records nothing.
type noRecorder struct{}

func (noRecorder) CountInUse(func() (byDriver map[string]int, all int)) {}
func (noRecorder) Operation(string, time.Duration, bool)                {}
func (noRecorder) OperationCall(string, string, string, time.Duration)  {}

// kubeletOperation is what the kubelet measures of a Pod, and since when it is due.
type kubeletOperation struct {
	name  string
	began time.Time
}

// startOperation notes what is due for a Pod. What Stages hold back is under way: so they play a slow driver.
func (r *podReconciler) startOperation(s *podSync) {
	name, began := prepareResources, time.Now()
	switch pod := s.view.Pod; {
	case facts.IsEnding(pod):
		name = unprepareResources
	case facts.ReadyToStart(pod) == corev1.ConditionTrue:
		name = ""
	default:
		if bound, known := r.observer.states.bound.Load(s.key); known && bound.(boundPod).uid == pod.UID && s.view.Memory.Last == nil {
			began = bound.(boundPod).at // the Pod was in the queue since
		}
	}
	if s.state.operation.name != name {
		s.state.operation = kubeletOperation{name, began}
	}
}

// finishOperation counts an operation that is over for now, and the calls of drivers with templates: of those
// that are called, pkg/kubelet counts them.
func (r *podReconciler) finishOperation(s *podSync, drivers sets.Set[string], failure *plan.Failure) {
	under := s.state.operation
	s.state.operation.name = ""
	if under.name == "" || s.state.standby {
		return
	}
	took, code := time.Since(under.began), "OK"
	r.observer.KubeletRecorder.Operation(under.name, took, failure != nil)
	switch {
	case failure == nil: // the kubelet has the failures of single claims in an answer that is OK
	case failure.Reason == plan.ReasonUnavailable:
		code = "Unavailable"
	case failure.Reason != plan.ReasonSimulated && failure.Reason != plan.ReasonParameters:
		return // the kubelet has called nobody
	}
	for driver := range drivers {
		if hasTemplates(s.view.Driver, driver) {
			r.observer.KubeletRecorder.OperationCall(driver, under.name, code, took)
		}
	}
}

// recordGonePod counts that the claims of a Pod are unprepared since it is gone. Their drivers are known to have
// templates where there are no others.
func (r *podReconciler) recordGonePod(state *podState, drivers sets.Set[string]) {
	if state == nil || drivers == nil || state.standby {
		return
	}
	took := time.Duration(0)
	if under := state.operation; under.name == unprepareResources {
		took = time.Since(under.began)
	}
	r.observer.KubeletRecorder.Operation(unprepareResources, took, false)
	if r.observer.Kubelets != nil && r.observer.Kubelets.Enabled() {
		return
	}
	for driver := range drivers {
		if set := r.observer.Config.Current(); set != nil && set.HasDriver(driver) {
			r.observer.KubeletRecorder.OperationCall(driver, unprepareResources, "OK", took)
		}
	}
}

// hasTemplates reports whether a driver has templates, and is no real one on the node.
func hasTemplates(of plan.Driver, driver string) bool {
	if both, ok := of.(*drivers); ok {
		return both.templates.Has(driver)
	}
	return of.Has(driver)
}

// driversOfClaims are the drivers of the claims that a view has.
func driversOfClaims(v *plan.PodView) sets.Set[string] {
	names := sets.New[string]()
	for _, claim := range v.Claims.Known {
		names.Insert(driverNamesOf(claim).splitNames()...)
	}
	return names
}

// driverNames are names of drivers. Most claims have the same, which are kept once.
type driverNames struct{ joined unique.Handle[string] }

func driverNamesOf(claim *resourcev1.ResourceClaim) driverNames {
	names := sets.New[string]()
	if claim.Status.Allocation != nil {
		for i := range claim.Status.Allocation.Devices.Results {
			names.Insert(claim.Status.Allocation.Devices.Results[i].Driver)
		}
	}
	return driverNames{unique.Make(strings.Join(sets.List(names), " "))} // which is in no name
}

func (n driverNames) splitNames() []string { return strings.Fields(n.joined.Value()) }

// countInUse counts the claims that are prepared, by driver and all.
func (s *states) countInUse() (byDriver map[string]int, all int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	byName := map[driverNames]int{}
	for _, users := range s.users {
		byName[users.drivers]++
	}
	byDriver = map[string]int{}
	for names, count := range byName {
		for _, driver := range names.splitNames() {
			byDriver[driver] += count
		}
	}
	return byDriver, len(s.users)
}
