// Package nodeload tells by the audit log what the kubelets and the drivers of fake nodes have asked of the API server.
package nodeload

import (
	"context"
	"net/http"
	"path/filepath"
	"strings"

	"github.com/kwok-dra/kwok-dra/test/cluster"
	"github.com/kwok-dra/kwok-dra/test/internal/sidecar"
)

// The users of kubelets and drivers without the names of their nodes and drivers.
const (
	KubeletUser = "system:node:"
	DriverUser  = "system:serviceaccount:kwok-dra-drivers:"
)

// Grant gives the sidecar the rights of kustomize/node-load.
func Grant(ctx context.Context, c *cluster.Cluster) error {
	arguments := []string{"apply"}
	for _, file := range []string{"namespace.yaml", "role.yaml", "role_binding.yaml", "drivers.yaml"} {
		arguments = append(arguments, "-f", filepath.Join(sidecar.Root(), "kustomize", "node-load", file))
	}
	_, err := c.Kubectl(ctx, arguments...)
	return err
}

// RequestOf returns the component, the verb and the resource of a request, such as "driver get nodes", or "" if it is neither
// a kubelet's nor a driver's, or is not finished. What kwok and kwok-dra write counts for the kubelet or the driver that would have written it.
func RequestOf(event *cluster.AuditEvent) string {
	if event.Stage != "ResponseComplete" {
		return ""
	}
	resource := event.ObjectRef.Resource
	if event.ObjectRef.Subresource != "" {
		resource += "/" + event.ObjectRef.Subresource
	}
	what := event.Verb + " " + resource
	user := event.ImpersonatedUser.Username
	if user == "" {
		user = event.User.Username
	}
	switch {
	case strings.HasPrefix(user, KubeletUser):
		return "kubelet " + what
	case strings.HasPrefix(user, DriverUser):
		return "driver " + what
	case !strings.HasPrefix(event.UserAgent, "kwok"):
		return ""
	case what == "patch pods/status":
		return "kubelet " + what
	case what == "create resourceslices":
		return "driver " + what
	}
	return ""
}

// IsSentAgain reports whether a kubelet sends a request again because the node authorizer did not know yet that the Pod is bound.
// How often that happens depends on how busy the API server is.
func IsSentAgain(event *cluster.AuditEvent) bool {
	what := RequestOf(event)
	return event.ResponseStatus.Code == http.StatusForbidden && (what == "kubelet get resourceclaims" || what == "kubelet create serviceaccounts/token")
}
