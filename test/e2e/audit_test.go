package e2e

import (
	"bufio"
	"encoding/json"
	"os"
	"slices"
	"strings"

	"github.com/stretchr/testify/require"
)

// auditEvent is a request as the API server's audit log has it.
type auditEvent struct {
	Verb           string
	RequestURI     string
	UserAgent      string
	ObjectRef      struct{ Resource, Subresource, Namespace, Name string }
	ResponseStatus struct{ Code int }
	ResponseObject json.RawMessage
}

// writesTo are the sidecar's writes to one object, of any namespace.
func (h *harness) writesTo(resource, name string) []auditEvent {
	h.Helper()
	return slices.DeleteFunc(h.writes(resource), func(event auditEvent) bool { return event.ObjectRef.Name != name })
}

// writes are the mutating requests to a resource that the sidecar has made, of
// all of its processes; "" stands for any resource.
func (h *harness) writes(resource string) []auditEvent {
	h.Helper()
	file, err := os.Open(h.cluster.AuditLog())
	require.NoError(h, err)
	defer func() { _ = file.Close() }()
	var writes []auditEvent
	lines := bufio.NewScanner(file)
	lines.Buffer(nil, 16<<20)
	for lines.Scan() {
		var event auditEvent
		require.NoError(h, json.Unmarshal(lines.Bytes(), &event))
		mutating := slices.Contains([]string{"create", "update", "patch", "delete", "deletecollection"}, event.Verb)
		if mutating && strings.HasPrefix(event.UserAgent, "kwok-dra/") && (resource == "" || event.ObjectRef.Resource == resource) {
			writes = append(writes, event)
		}
	}
	require.NoError(h, lines.Err())
	return writes
}
