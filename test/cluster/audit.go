package cluster

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"
)

// AuditEvent is what the audit log says of a request that the API server has
// answered.
type AuditEvent struct {
	AuditID    string
	Stage      string
	Verb       string
	UserAgent  string
	RequestURI string
	User       struct {
		Username string
		Extra    map[string][]string
	}
	// ImpersonatedUser is empty unless the user acts as another one.
	ImpersonatedUser struct {
		Username string
		Groups   []string
		Extra    map[string][]string
	}
	ObjectRef      struct{ APIGroup, Resource, Subresource, Namespace, Name string }
	ResponseStatus struct {
		Code    int
		Message string
	}
	// RequestReceivedTimestamp is by the API server's clock.
	RequestReceivedTimestamp time.Time
	// ResponseObject is empty where the log has only metadata.
	ResponseObject json.RawMessage
}

// Mutating reports whether the request was to write something.
func (e *AuditEvent) Mutating() bool {
	return slices.Contains([]string{"create", "update", "patch", "delete", "deletecollection"}, e.Verb)
}

// DryRun reports whether nothing was to be kept of what the request writes.
func (e *AuditEvent) DryRun() bool { return strings.Contains(e.RequestURI, "dryRun=All") }

// Audited returns the wanted events of the audit log, in their order.
func (f folder) Audited(wanted func(*AuditEvent) bool) ([]AuditEvent, error) {
	log, err := os.Open(f.AuditLog())
	if err != nil {
		return nil, fmt.Errorf("open audit log of cluster %s: %w", f.name, err)
	}
	defer func() { _ = log.Close() }()
	var all []AuditEvent
	for decoder := json.NewDecoder(log); ; {
		var event AuditEvent
		err := decoder.Decode(&event)
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			return all, nil // the last line may not be whole yet
		}
		if err != nil {
			return nil, fmt.Errorf("read audit log of cluster %s: %w", f.name, err)
		}
		if wanted(&event) {
			all = append(all, event)
		}
	}
}
