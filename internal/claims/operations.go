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
)

// KubeletRecorder records what a kubelet measures.
type KubeletRecorder interface {
	// CountInUse sets the function that counts the prepared claims, by driver and in total.
	CountInUse(inUse func() (byDriver map[string]int, all int))
	// NewPod makes the recorder of a Pod.
	NewPod() PodRecorder
}

// PodRecorder records how long the kubelet takes to prepare and to unprepare the claims of a Pod. It is
// called by one worker at a time.
type PodRecorder interface {
	// Begin begins the operation that is due for a Pod, unless it is in progress. Due is since when a first try is.
	Begin(pod *corev1.Pod, due time.Time)
	// Pause ends the operation without recording it.
	Pause()
	// Finish records that the operation has ended for now, with calls of those of the drivers that have templates.
	Finish(drivers sets.Set[string], hasTemplates func(driver string) bool, failure *plan.Failure)
	// RecordGone records that the claims of a deleted Pod are unprepared, and the drivers of these.
	RecordGone(drivers sets.Set[string])
}

// noRecorder is the KubeletRecorder where nothing is recorded.
type noRecorder struct{}

func (noRecorder) CountInUse(func() (byDriver map[string]int, all int))             {}
func (noRecorder) NewPod() PodRecorder                                              { return noRecorder{} }
func (noRecorder) Begin(*corev1.Pod, time.Time)                                     {}
func (noRecorder) Pause()                                                           {}
func (noRecorder) Finish(sets.Set[string], func(driver string) bool, *plan.Failure) {}
func (noRecorder) RecordGone(sets.Set[string])                                      {}

// finishOperation records an operation that has ended for now, and its calls of drivers. The drivers are those of all claims
// of the Pod if called is nil.
func (s *podSync) finishOperation(called sets.Set[string], failure *plan.Failure) {
	if s.state.standby {
		s.state.recorder.Pause()
		return
	}
	if called == nil {
		called = driversOf(slices.Collect(maps.Values(s.view.Claims.Known))...)
	}
	s.state.recorder.Finish(called, s.ofTemplates.Has, failure)
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
