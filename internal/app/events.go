package app

import (
	"context"
	"crypto/sha256"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"

	"github.com/kwok-dra/kwok-dra/pkg/api/v1alpha1"
)

// eventSink writes events until ctx ends: the calls that record makes have no context,
// and client-go waits as long as a busy API server asks for.
//
// It names events about the content of an object by a hash of their message. So the API
// server refuses the same event after a restart, as long as it keeps the first one.
type eventSink struct {
	ctx    context.Context
	events typedcorev1.EventExpansion
}

// Create implements record.EventSink.
func (s *eventSink) Create(event *corev1.Event) (*corev1.Event, error) {
	if event.Reason == v1alpha1.ReasonNormalized {
		sum := sha256.Sum256(fmt.Appendf(nil, "%s\x00%s\x00%s", event.InvolvedObject.UID, event.Reason, event.Message))
		event.Name = fmt.Sprintf("%s.%x", event.InvolvedObject.Name, sum[:8])
	}
	return s.events.CreateWithEventNamespaceWithContext(s.ctx, event)
}

// Update implements record.EventSink.
func (s *eventSink) Update(event *corev1.Event) (*corev1.Event, error) {
	return s.events.UpdateWithEventNamespaceWithContext(s.ctx, event)
}

// Patch implements record.EventSink. It counts how often an event was.
func (s *eventSink) Patch(event *corev1.Event, data []byte) (*corev1.Event, error) {
	if event.Reason == v1alpha1.ReasonNormalized {
		return event, nil
	}
	return s.events.PatchWithEventNamespaceWithContext(s.ctx, event, data)
}
