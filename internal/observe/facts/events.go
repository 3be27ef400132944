package facts

import (
	"time"

	corev1 "k8s.io/api/core/v1"
)

// LastSeen returns when an event was last seen.
func LastSeen(event *corev1.Event) time.Time {
	switch {
	case event.Series != nil:
		return event.Series.LastObservedTime.Time
	case !event.LastTimestamp.IsZero():
		return event.LastTimestamp.Time
	case !event.EventTime.IsZero():
		return event.EventTime.Time
	}
	return event.CreationTimestamp.Time
}
