package drajudge

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/watch"
)

// auditLine is an audit event of a request that succeeded.
func auditLine(verb, resource, name, rest string) string {
	resource, subresource, _ := strings.Cut(resource, "/")
	return `{"stage": "ResponseComplete", "stageTimestamp": "2026-01-01T00:00:00.000000Z", "requestURI": "/api", "verb": "` + verb + `",
		"objectRef": {"resource": "` + resource + `", "subresource": "` + subresource + `", "namespace": "default", "name": "` + name + `"},
		"responseStatus": {"code": 200}, ` + rest + "}\n"
}

func podJSON(version, more string) string {
	return `"responseObject": {"kind": "Pod", "metadata": {"namespace": "default", "name": "a", "uid": "1", "resourceVersion": "` + version + `"` + more + `}}`
}

// TestReadAudit: writes of an audit log become the events of a watch.
func TestReadAudit(t *testing.T) {
	t.Parallel()
	history, err := ReadAudit(strings.NewReader(
		auditLine("create", "pods", "", podJSON("5", "")) +
			auditLine("get", "pods", "a", podJSON("5", "")) +
			strings.Replace(auditLine("patch", "pods", "a", podJSON("6", "")), `"/api"`, `"/api?dryRun=All"`, 1) +
			strings.Replace(auditLine("patch", "pods", "a", podJSON("6", "")), "200", "409", 1) +
			strings.Replace(auditLine("patch", "pods", "a", podJSON("6", "")), "ResponseComplete", "RequestReceived", 1) +
			auditLine("create", "leases", "a", `"responseObject": {"kind": "Lease"}`) +
			auditLine("create", "pods/eviction", "a", `"responseObject": {"kind": "Status"}`) +
			auditLine("patch", "pods/status", "a", podJSON("7", "")) +
			auditLine("create", "pods/binding", "a", `"requestObject": {"kind": "Binding", "target": {"name": "node-1"}}, "responseObject": {"kind": "Status"}`) +
			auditLine("delete", "pods", "a", podJSON("9", `, "deletionTimestamp": "2026-01-01T00:00:00Z", "deletionGracePeriodSeconds": 30`)) +
			auditLine("delete", "pods", "a", podJSON("9", `, "deletionTimestamp": "2026-01-01T00:00:00Z", "deletionGracePeriodSeconds": 0`)) +
			auditLine("create", "resourceclaims", "c", `"responseObject": {"kind": "ResourceClaim", "metadata": {"namespace": "default", "name": "c", "resourceVersion": "11"}}`) +
			auditLine("delete", "resourceclaims", "c", `"responseObject": {"kind": "ResourceClaim", "metadata": {"namespace": "default", "name": "c", "resourceVersion": "12", "finalizers": ["f"], "deletionTimestamp": "2026-01-01T00:00:00Z"}}`) +
			auditLine("update", "resourceclaims", "c", `"responseObject": {"kind": "ResourceClaim", "metadata": {"namespace": "default", "name": "c", "resourceVersion": "12", "deletionTimestamp": "2026-01-01T00:00:00Z"}}`) +
			auditLine("create", "resourceslices", "", `"responseObject": {"kind": "ResourceSlice", "metadata": {"name": "s", "resourceVersion": "13"}}`) +
			auditLine("deletecollection", "resourceslices", "", `"responseObject": {"kind": "ResourceSliceList", "items": [{"metadata": {"name": "s", "resourceVersion": "13"}}]}`) +
			auditLine("create", "namespaces", "", `"responseObject": {"kind": "Namespace", "metadata": {"name": "default", "resourceVersion": "14"}}`) +
			auditLine("delete", "namespaces", "default", `"responseObject": {"kind": "Status"}`),
	))
	require.NoError(t, err)
	var got []string
	for _, event := range history {
		got = append(got, string(event.Type)+" "+versionOf(event.Object))
		require.False(t, event.Time.IsZero())
	}
	require.Equal(t, []string{
		"ADDED 5", "MODIFIED 7", "MODIFIED 7", "MODIFIED 9", "DELETED 9",
		"ADDED 11", "MODIFIED 12", "DELETED 12", "ADDED 13", "DELETED 13", "ADDED 14", "DELETED 14",
	}, got)
	require.Equal(t, "node-1", history[2].Object.(*corev1.Pod).Spec.NodeName)
	require.Equal(t, watch.Deleted, history.Sorted()[len(history)-1].Type)
}

func TestReadAuditNeedsObjects(t *testing.T) {
	t.Parallel()
	_, err := ReadAudit(strings.NewReader(auditLine("create", "pods", "a", `"level": "Metadata"`)))
	require.EqualError(t, err, "read audit event 1: the create of pods a has no responseObject: log it at level RequestResponse")
}

// TestJudgeAudit: a Pod that is bound without its claim is found in an audit log.
func TestJudgeAudit(t *testing.T) {
	t.Parallel()
	pod := `"responseObject": {"kind": "Pod", "metadata": {"namespace": "default", "name": "a", "resourceVersion": "5"}, "spec": {"resourceClaims": [{"name": "gpu", "resourceClaimName": "missing"}]}}`
	history, err := ReadAudit(strings.NewReader(auditLine("create", "pods", "", pod) +
		auditLine("create", "pods/binding", "a", `"requestObject": {"target": {"name": "node-1"}}`)))
	require.NoError(t, err)
	require.Equal(t, []string{boundWithClaims}, statementIDs(Judge(t.Context(), history, Options{})))
}
