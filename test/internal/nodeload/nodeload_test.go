package nodeload

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kwok-dra/kwok-dra/test/cluster"
)

// TestRequestOf counts what real drivers and impersonated ones send, and what kwok and kwok-dra write in their place.
func TestRequestOf(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		user, impersonated, agent, verb, resource, subresource, stage, want string
	}{
		{user: DriverUser + "gpu.example.com", agent: "plugin", verb: "get", resource: "nodes", want: "driver get nodes"},
		{user: "kwok-dra", impersonated: DriverUser + "gpu.example.com", agent: "gpu.example.com", verb: "get", resource: "nodes", want: "driver get nodes"},
		{user: "kwok-dra", impersonated: KubeletUser + "n0", agent: "kubelet", verb: "create", resource: "serviceaccounts", subresource: "token", want: "kubelet create serviceaccounts/token"},
		{user: "kwok-dra", impersonated: KubeletUser + "n0", agent: "kubelet", verb: "watch", resource: "pods", stage: "ResponseStarted"},
		{user: "kwok", agent: "kwok-controller", verb: "patch", resource: "pods", subresource: "status", want: "kubelet patch pods/status"},
		{user: "kwok", agent: "kwok-dra", verb: "create", resource: "resourceslices", want: "driver create resourceslices"},
		{user: "kwok", agent: "kwok-dra", verb: "list", resource: "resourceslices"},
		{user: "admin", agent: "kubectl", verb: "patch", resource: "pods", subresource: "status"},
	} {
		event := &cluster.AuditEvent{Stage: "ResponseComplete", Verb: c.verb, UserAgent: c.agent}
		if c.stage != "" {
			event.Stage = c.stage
		}
		event.User.Username, event.ImpersonatedUser.Username = c.user, c.impersonated
		event.ObjectRef.Resource, event.ObjectRef.Subresource = c.resource, c.subresource
		require.Equal(t, c.want, RequestOf(event), "%+v", c)
	}
}

// TestIsSentAgain of what a kubelet needs and was refused.
func TestIsSentAgain(t *testing.T) {
	t.Parallel()
	event := &cluster.AuditEvent{Stage: "ResponseComplete", Verb: "get"}
	event.ImpersonatedUser.Username = KubeletUser + "n0"
	event.ObjectRef.Resource, event.ResponseStatus.Code = "resourceclaims", http.StatusForbidden
	require.True(t, IsSentAgain(event))
	event.ObjectRef.Resource = "pods"
	require.False(t, IsSentAgain(event), "the Pod runs without it")
	event.ObjectRef.Resource, event.ResponseStatus.Code = "resourceclaims", http.StatusOK
	require.False(t, IsSentAgain(event))
}
