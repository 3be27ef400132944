package e2e

import (
	"slices"
	"strings"

	"github.com/stretchr/testify/require"

	"github.com/kwok-dra/kwok-dra/test/cluster"
)

// writesTo are the sidecar's writes to one object, of any namespace.
func (h *harness) writesTo(resource, name string) []cluster.AuditEvent {
	h.Helper()
	return slices.DeleteFunc(h.writes(resource), func(event cluster.AuditEvent) bool { return event.ObjectRef.Name != name })
}

// writes are the mutating requests to a resource that the sidecar has made, of
// all of its processes; "" stands for any resource.
func (h *harness) writes(resource string) []cluster.AuditEvent {
	h.Helper()
	return h.audited(func(event *cluster.AuditEvent) bool {
		return event.Mutating() && strings.HasPrefix(event.UserAgent, "kwok-dra/") && (resource == "" || event.ObjectRef.Resource == resource)
	})
}

func (h *harness) audited(wanted func(*cluster.AuditEvent) bool) []cluster.AuditEvent {
	h.Helper()
	events, err := h.cluster.Audited(wanted)
	require.NoError(h, err)
	return events
}
