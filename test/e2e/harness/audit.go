package harness

import (
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/stretchr/testify/require"

	"github.com/kwok-dra/kwok-dra/test/cluster"
)

// WritesTo are the sidecar's writes to one object, of any namespace.
func (h *H) WritesTo(resource, name string) []cluster.AuditEvent {
	h.Helper()
	return slices.DeleteFunc(h.Writes(resource), func(event cluster.AuditEvent) bool { return event.ObjectRef.Name != name })
}

// Writes are the mutating requests to a resource that the sidecar has made, of
// all of its processes; "" stands for any resource. A conflict is none of them:
// somebody else has written meanwhile, nothing was, and the sidecar looks again.
func (h *H) Writes(resource string) []cluster.AuditEvent {
	h.Helper()
	return h.Audited(func(event *cluster.AuditEvent) bool {
		return event.Mutating() && event.ResponseStatus.Code != http.StatusConflict &&
			strings.HasPrefix(event.UserAgent, "kwok-dra/") && (resource == "" || event.ObjectRef.Resource == resource)
	})
}

// Audited returns the finished requests of the audit log that match, in their order.
func (h *H) Audited(wanted func(*cluster.AuditEvent) bool) []cluster.AuditEvent {
	h.Helper()
	events, err := h.Cluster.Audited(wanted)
	require.NoError(h, err)
	return events
}

// NoWrites restarts the sidecar on a state that is right, and has it prove by a
// node's coming that it has looked at everything.
func (h *H) NoWrites() {
	h.Helper()
	before := h.stored()
	process := h.Sidecar()
	h.Eventually(Patience, func() string {
		added := h.Metric(process, "workqueue_adds_total", `name="slices"`)
		done := h.Metric(process, "workqueue_work_duration_seconds_count", `name="slices"`)
		if added == 0 || done < added {
			return fmt.Sprintf("%v of %v nodes looked at", done, added)
		}
		return ""
	})
	require.NoError(h, process.Stop())
	require.Equal(h, before, h.stored(), "a restart with nothing changed writes nothing")
}

// stored counts the sidecar's writes but for those that only ask.
func (h *H) stored() int {
	h.Helper()
	return len(slices.DeleteFunc(h.Writes(""), func(event cluster.AuditEvent) bool { return strings.Contains(event.RequestURI, "dryRun=All") }))
}
