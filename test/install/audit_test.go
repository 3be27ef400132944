package install

import (
	"encoding/json"
	"errors"
	"io"
	"os"

	"github.com/stretchr/testify/require"

	"github.com/kwok-dra/kwok-dra/test/cluster"
)

// auditEvent is what is of interest of a request that the API server has
// answered.
type auditEvent struct {
	AuditID    string
	Verb       string
	UserAgent  string
	RequestURI string
	User       struct {
		Username string
		Extra    map[string][]string
	}
	ObjectRef      struct{ APIGroup, Resource, Subresource, Name string }
	ResponseStatus struct {
		Code    int
		Message string
	}
	// ResponseObject is empty where the log has only metadata.
	ResponseObject json.RawMessage
}

// audited are the requests in the audit log that are of interest.
func audited(t require.TestingT, c *cluster.Cluster, ofInterest func(*auditEvent) bool) []auditEvent {
	file, err := os.Open(c.AuditLog())
	require.NoError(t, err)
	defer func() { _ = file.Close() }()
	var all []auditEvent
	for decoder := json.NewDecoder(file); ; {
		var event auditEvent
		err := decoder.Decode(&event)
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			return all // the last line may not be whole yet
		}
		require.NoError(t, err)
		if ofInterest(&event) {
			all = append(all, event)
		}
	}
}
