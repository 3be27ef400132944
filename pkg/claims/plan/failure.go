package plan

import (
	"maps"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/kwok-dra/kwok-dra/pkg/config"
)

// LastFailure is what is remembered of a Failure until the Pod is tried again.
type LastFailure struct {
	retry  time.Time
	reason string
	// version differs once the Pod has been edited, and set once the configuration has.
	version podVersion
	set     *config.Set
}

// NewLastFailure remembers a failure of the Pod of the view until the time of its retry.
func NewLastFailure(v *PodView, failure *Failure, retry time.Time) *LastFailure {
	return &LastFailure{retry: retry, reason: failure.Reason, version: versionOf(v.Pod), set: v.Set}
}

// left is how long the Pod still has to wait: until the retry, but no longer than
// until failWhen no longer selects it, or, where it is not to blame, until the Pod
// is edited, or the configuration where that is to blame.
func (f *LastFailure) left(v *PodView, gate gate, now time.Time) time.Duration {
	switch {
	case f == nil,
		f.reason == ReasonSimulated && gate == gatePrepare,
		f.reason != ReasonSimulated && !f.version.equal(versionOf(v.Pod)),
		(f.reason == ReasonUnsettled || f.reason == ReasonTemplate) && f.set != v.Set:
		return 0
	}
	return max(0, f.retry.Sub(now))
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
