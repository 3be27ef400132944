package app

import (
	"crypto/sha256"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/record"

	"github.com/kwok-dra/kwok-dra/pkg/api/v1alpha1"
)

// onceSink names events about the content of an object by a hash of their message.
// So the API server refuses the same event after a restart, as long as it keeps the
// first one.
type onceSink struct{ record.EventSink }

// Create implements record.EventSink.
func (s onceSink) Create(event *corev1.Event) (*corev1.Event, error) {
	if isOnce(event) {
		sum := sha256.Sum256(fmt.Appendf(nil, "%s\x00%s\x00%s", event.InvolvedObject.UID, event.Reason, event.Message))
		event.Name = fmt.Sprintf("%s.%x", event.InvolvedObject.Name, sum[:8])
	}
	return s.EventSink.Create(event)
}

// Patch implements record.EventSink. It counts how often an event was.
func (s onceSink) Patch(event *corev1.Event, data []byte) (*corev1.Event, error) {
	if isOnce(event) {
		return event, nil
	}
	return s.EventSink.Patch(event, data)
}

func isOnce(event *corev1.Event) bool {
	return event.Reason == v1alpha1.ReasonNormalized
}
