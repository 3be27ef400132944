package harness

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kwok-dra/kwok-dra/test/cluster"
)

// Audit is the audit log of the cluster.
type Audit struct {
	t       *testing.T
	cluster *cluster.Cluster
}

// WritesTo are the sidecar's writes to one object, of any namespace.
func (a Audit) WritesTo(resource, name string) []cluster.AuditEvent {
	a.t.Helper()
	return slices.DeleteFunc(a.Writes(resource), func(event cluster.AuditEvent) bool { return event.ObjectRef.Name != name })
}

// Writes are the mutating requests to a resource that the sidecar has made, of
// all of its processes; "" stands for any resource. A conflict is none of them:
// somebody else has written meanwhile, nothing was, and the sidecar looks again.
func (a Audit) Writes(resource string) []cluster.AuditEvent {
	a.t.Helper()
	return a.Audited(func(event *cluster.AuditEvent) bool {
		return event.Mutating() && event.ResponseStatus.Code != http.StatusConflict &&
			strings.HasPrefix(event.UserAgent, "kwok-dra/") && (resource == "" || event.ObjectRef.Resource == resource)
	})
}

// Audited returns the finished requests of the audit log that match, in their order.
func (a Audit) Audited(wanted func(*cluster.AuditEvent) bool) []cluster.AuditEvent {
	a.t.Helper()
	events, err := a.cluster.Audited(wanted)
	require.NoError(a.t, err)
	return events
}

// NoWrites restarts the sidecar on a state that is right, and has it prove by a
// node's coming that it has looked at everything.
func (h *H) NoWrites() {
	h.Helper()
	before := h.countStored()
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
	require.Equal(h, before, h.countStored(), "a restart with nothing changed writes nothing")
}

// countStored counts the sidecar's writes but for those that only ask.
func (a Audit) countStored() int {
	a.t.Helper()
	return len(slices.DeleteFunc(a.Writes(""), func(event cluster.AuditEvent) bool { return event.DryRun() }))
}
