package kubectldra

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/kwok-dra/kwok-dra/test/cluster"
	"github.com/kwok-dra/kwok-dra/test/internal/sidecar"
)

// lines are what users type, with every command that reads a cluster.
var lines = [][]string{
	{"overview"},
	{"pods", "-A"},
	{"pods", "-n", "ml", "-o", "wide"},
	{"pods", "claim/train", "-n", "ml"},
	{"claims", "-A"},
	{"claims", "-n", "ml", "-l", "team=a"},
	{"claim", "train", "-n", "ml"},
	{"devices"},
	{"nodes"},
	{"check"},
	{"check", "-n", "ml"},
	{"why", "wants", "-n", "ml"},
	{"why", "train", "-n", "ml"},
	{"fit", "-n", "ml", "-f", "testdata/pod.yaml"},
}

// roleOfGuide is the ClusterRole that the guide gives to readers.
func roleOfGuide(t *testing.T) *rbacv1.ClusterRole {
	t.Helper()
	page, err := os.ReadFile(filepath.Join(sidecar.Root(), "docs/guides/real-clusters.md"))
	require.NoError(t, err)
	for _, block := range regexp.MustCompile("(?s)```yaml\n(.*?)```").FindAllStringSubmatch(string(page), -1) {
		var role rbacv1.ClusterRole
		if yaml.UnmarshalStrict([]byte(block[1]), &role) == nil && role.Kind == "ClusterRole" && role.Name == "dra-viewer" {
			return &role
		}
	}
	require.Fail(t, "the page has no ClusterRole dra-viewer")
	return nil
}

// TestRights has a viewer with the ClusterRole of the guide, a member of a namespace, and somebody without rights.
func TestRights(t *testing.T) {
	t.Parallel()
	u := newCluster(t, cluster.Options{Audit: true})
	role := roleOfGuide(t)
	_, err := u.client.RbacV1().ClusterRoles().Create(t.Context(), role, metav1.CreateOptions{})
	require.NoError(t, err)
	viewer, member, nobody := u.account("viewer"), u.account("member"), u.account("nobody")
	_, err = u.client.RbacV1().ClusterRoleBindings().Create(t.Context(), &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "viewer"}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role.Name},
		Subjects: []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: namespace, Name: "viewer"}},
	}, metav1.CreateOptions{})
	require.NoError(t, err)
	// What the ClusterRole view has of a namespace. Without controllers that one is empty.
	verbs := []string{"get", "list", "watch"}
	_, err = u.client.RbacV1().Roles(namespace).Create(t.Context(), &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Name: "member"}, Rules: []rbacv1.PolicyRule{
		{APIGroups: []string{""}, Resources: []string{"pods", "events"}, Verbs: verbs},
		{APIGroups: []string{"resource.k8s.io"}, Resources: []string{"resourceclaims", "resourceclaimtemplates"}, Verbs: verbs},
	}}, metav1.CreateOptions{})
	require.NoError(t, err)
	_, err = u.client.RbacV1().RoleBindings(namespace).Create(t.Context(), &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "member"}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: "member"},
		Subjects: []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: namespace, Name: "member"}},
	}, metav1.CreateOptions{})
	require.NoError(t, err)
	u.awaitRights(viewer, "list", "resourceslices")
	u.awaitRights(member, "list", "pods", "-n", namespace)

	u.viewerSeesAll(viewer)
	u.watches(viewer)
	u.viewerNeedsAll(role)
	u.memberSeesOwn(member)
	for _, arguments := range [][]string{{"pods", "-n", namespace}, {"claims", "-n", namespace}, {"claim", "train", "-n", namespace}} {
		r := u.run(nobody, arguments...)
		require.Equal(t, 2, r.code, r)
		require.Regexp(t, `^error: cannot (list|get) resourceclaims in namespace ml: .*dra-viewer`, r.errOut)
		require.Empty(t, r.out)
	}
}

// viewerSeesAll: no command lacks a right.
func (u *users) viewerSeesAll(viewer string) {
	u.Helper()
	for _, arguments := range u.knownLines() {
		r := u.run(viewer, arguments...)
		require.Less(u, r.code, 2, "%v: %s", arguments, r)
		require.NotContains(u, r.errOut, "cannot ", "%v", arguments)
		require.NotContains(u, r.out, "not checked", "%v", arguments)
	}
	require.Contains(u, u.run(viewer, "__complete", "claim", "-n", namespace, "").out, "train\n")
	require.Contains(u, u.run(viewer, "__complete", "claims", "-n", "").out, namespace+"\n")
}

// viewerNeedsAll: the commands ask for nothing that the role lacks, and for each resource of clusters that it has. Of
// workloads and priorities they read those that a user names.
func (u *users) viewerNeedsAll(role *rbacv1.ClusterRole) {
	u.Helper()
	granted := map[string]bool{}
	for _, rule := range role.Rules {
		require.Subset(u, []string{"get", "list", "watch"}, rule.Verbs)
		for _, resource := range rule.Resources {
			granted[resource] = slices.Contains(rule.APIGroups, "") || slices.Contains(rule.APIGroups, "resource.k8s.io")
		}
	}
	asked := map[string]bool{}
	for _, event := range u.audited("viewer") {
		if event.ObjectRef.Resource == "selfsubjectaccessreviews" {
			continue
		}
		require.Contains(u, granted, event.ObjectRef.Resource, event.RequestURI)
		require.Less(u, event.ResponseStatus.Code, 500, event.RequestURI)
		asked[event.ObjectRef.Resource] = true
	}
	for resource, isOfClusters := range granted {
		require.True(u, !isOfClusters || asked[resource], "no command reads %s", resource)
	}
}

// memberSeesOwn: a user with the rights of a namespace learns all that these tell, and what is missing.
func (u *users) memberSeesOwn(member string) {
	u.Helper()
	r := u.run(member, "pods", "-n", namespace)
	require.Zero(u, r.code, r)
	require.Regexp(u, `^1 Pod has 1 device, 1 waits: kubectl dra why wants -n ml\n\n`, r.out)
	require.Regexp(u, `(?m)^train +train +gpu.example.com +h100-0 +gpu-0 +<none> +prepared `, r.out)
	require.Contains(u, r.errOut, "cannot list resourceslices: ask for the ClusterRole dra-viewer")

	r = u.run(member, "claims", "-n", namespace)
	require.Zero(u, r.code, r)
	require.Regexp(u, `(?m)^train +prepared .* gpu.example.com/h100-0/gpu-0 `, r.out)
	r = u.run(member, "claim", "train", "-n", namespace)
	require.Zero(u, r.code, r)
	require.Contains(u, r.out, "Claim ml/train is prepared since ")

	r = u.run(member, "check", "-n", namespace)
	require.Zero(u, r.code, r)
	require.Regexp(u, `^No problems found in 2 claims in namespace ml\n`, r.out)
	require.Regexp(u, `not checked: .*nodeGone`, strings.ReplaceAll(r.out, "\n  ", " "))
	require.Contains(u, r.errOut, "cannot list nodes: ask for the ClusterRole dra-viewer")

	r = u.run(member, "pods", "-A")
	require.Equal(u, 2, r.code, r)
	require.Contains(u, r.errOut, "cannot list resourceclaims")
}

// TestWritesNothing: what commands ask the API server for is in its audit log.
func TestWritesNothing(t *testing.T) {
	t.Parallel()
	u := newCluster(t, cluster.Options{Audit: true})
	_, err := u.client.RbacV1().ClusterRoleBindings().Create(t.Context(), &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "owner"}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "cluster-admin"},
		Subjects: []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: namespace, Name: "owner"}},
	}, metav1.CreateOptions{})
	require.NoError(t, err)
	owner := u.account("owner")
	u.awaitRights(owner, "create", "pods")
	for _, arguments := range u.knownLines() {
		r := u.run(owner, arguments...)
		require.Less(t, r.code, 2, "%v: %s", arguments, r)
	}
	u.watches(owner)
	events := u.audited("owner")
	require.Greater(t, len(events), len(u.knownLines()))
	for _, event := range events {
		isReview := event.Verb == "create" && event.ObjectRef.Resource == "selfsubjectaccessreviews"
		require.True(t, isReview || slices.Contains([]string{"get", "list", "watch"}, event.Verb), fmt.Sprint(event.Verb, " ", event.RequestURI))
	}
}
