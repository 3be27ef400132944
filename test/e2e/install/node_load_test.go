package install

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kwok-dra/kwok-dra/test/cluster"
	"github.com/kwok-dra/kwok-dra/test/internal/nodeload"
)

// withNodeLoad is what docs/guides/node-load.md says.
const withNodeLoad = `
resources: [../kustomize/kwok]
components: [../kustomize/node-load]
`

// nodeLoadRequests are some that kubelets and drivers send in any case.
var nodeLoadRequests = []string{
	"kubelet get nodes", "kubelet create events", "kubelet deletecollection resourceslices", "kubelet get pods", "kubelet create serviceaccounts/token",
	"kubelet get resourceclaims", "driver get nodes", "driver get resourceclaims",
}

// TestNodeLoad installs kwok-dra with the component node-load: it may act as the kubelets and the drivers of the nodes, as
// nobody else but users, the API server refuses none of their requests, and nothing is left after all is uninstalled.
func TestNodeLoad(t *testing.T) {
	t.Parallel()
	options := hostOptions()
	options.Audit = true
	u := follows(t, options)
	before := u.fresh()
	u.write(withNodeLoad, "mine", "kustomization.yaml")
	u.does("Kustomize", "-k kustomize/kwok", "-k mine")
	u.requireNodeLoadRights()
	u.does("Devices")
	u.requirePrepared(h100)
	until(t, patience, func() string { return u.missingNodeLoad() })
	u.uninstalls(before, "-k kustomize/kwok", "-k mine")
}

// requireNodeLoadRights asks the API server what kwok-dra may, and what a driver may.
func (u *user) requireNodeLoadRights() {
	t := u.T()
	t.Helper()
	const (
		kwokDRA = "system:serviceaccount:kube-system:kwok-controller"
		drivers = "system:serviceaccounts:kwok-dra-drivers"
		driver  = nodeload.DriverUser + "gpu.nvidia.com"
	)
	for _, c := range []struct {
		user, group string
		attributes  authorizationv1.ResourceAttributes
		isAllowed   bool
	}{
		{kwokDRA, "", authorizationv1.ResourceAttributes{Verb: "impersonate", Resource: "users", Name: nodeload.KubeletUser + h100}, true},
		{kwokDRA, "", authorizationv1.ResourceAttributes{Verb: "impersonate", Resource: "groups", Name: "system:nodes"}, true},
		{kwokDRA, "", authorizationv1.ResourceAttributes{Verb: "impersonate", Resource: "groups", Name: "system:masters"}, false},
		{kwokDRA, "", authorizationv1.ResourceAttributes{
			Verb: "impersonate", Group: "authentication.k8s.io", Resource: "userextras", Subresource: "authentication.kubernetes.io/node-name", Name: h100,
		}, true},
		{kwokDRA, "", authorizationv1.ResourceAttributes{Verb: "impersonate", Resource: "serviceaccounts", Namespace: "kwok-dra-drivers", Name: "gpu.nvidia.com"}, true},
		{kwokDRA, "", authorizationv1.ResourceAttributes{Verb: "impersonate", Resource: "serviceaccounts", Namespace: "kube-system", Name: "default"}, false},
		{driver, drivers, authorizationv1.ResourceAttributes{Verb: "get", Resource: "nodes", Name: h100}, true},
		{driver, drivers, authorizationv1.ResourceAttributes{Verb: "watch", Group: "resource.k8s.io", Resource: "resourceslices"}, true},
		{driver, drivers, authorizationv1.ResourceAttributes{Verb: "get", Group: "resource.k8s.io", Resource: "resourceclaims", Namespace: "default", Name: "gpus"}, true},
		{driver, drivers, authorizationv1.ResourceAttributes{Verb: "delete", Group: "resource.k8s.io", Resource: "resourceslices"}, false},
		{driver, drivers, authorizationv1.ResourceAttributes{Verb: "get", Resource: "secrets", Namespace: "default", Name: "any"}, false},
	} {
		review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{User: c.user, ResourceAttributes: &c.attributes}}
		if c.group != "" {
			review.Spec.Groups = []string{c.group}
		}
		answer, err := u.client.AuthorizationV1().SubjectAccessReviews().Create(t.Context(), review, metav1.CreateOptions{})
		require.NoError(t, err)
		require.Equal(t, c.isAllowed, answer.Status.Allowed, "%s: %+v", c.user, c.attributes)
	}
}

// missingNodeLoad says which requests were not sent yet. It fails if the API server has refused one for lack of a right.
func (u *user) missingNodeLoad() string {
	t := u.T()
	t.Helper()
	sent := map[string]bool{}
	events, err := u.cluster.Audited(func(event *cluster.AuditEvent) bool {
		return strings.HasPrefix(event.UserAgent, "kwok-dra/") || event.ImpersonatedUser.Username != ""
	})
	require.NoError(t, err)
	for _, event := range events {
		// The node authorizer also tells real kubelets that they have nothing to do with a Pod any more.
		if event.ResponseStatus.Code == http.StatusForbidden {
			require.Contains(t, event.ResponseStatus.Message, "no relationship found between node", "%s %s", event.Verb, event.RequestURI)
		}
		if event.ImpersonatedUser.Username != "" && event.ResponseStatus.Code < http.StatusBadRequest {
			sent[nodeload.RequestOf(&event)] = true
		}
	}
	for _, what := range nodeLoadRequests {
		if !sent[what] {
			return fmt.Sprintf("nobody has sent %q", what)
		}
	}
	return ""
}
