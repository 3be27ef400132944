package install

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/yaml"

	"github.com/kwok-dra/kwok-dra/test/internal/sidecar"
)

// permission is one verb on one resource of one API group.
type permission struct{ group, resource, verb string }

func (p permission) String() string {
	if p.group == "" {
		return p.resource + " " + p.verb
	}
	return p.resource + "." + p.group + " " + p.verb
}

// readRole reads a ClusterRole.
func readRole(t *testing.T, elem ...string) *rbacv1.ClusterRole {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(elem...))
	require.NoError(t, err)
	var role rbacv1.ClusterRole
	require.NoError(t, yaml.UnmarshalStrict(content, &role))
	require.NotEmpty(t, role.Rules)
	return &role
}

// ourRole has the rules of the core and of all extensions.
func ourRole(t *testing.T) *rbacv1.ClusterRole {
	t.Helper()
	all := &rbacv1.ClusterRole{}
	for _, part := range []string{"", "explaining", "device-taints", "real-drivers"} {
		all.Rules = append(all.Rules, readRole(t, sidecar.Root(), "kustomize", "rbac", part, "role.yaml").Rules...)
	}
	return all
}

func permissions(role *rbacv1.ClusterRole) []permission {
	var all []permission
	for _, rule := range role.Rules {
		for _, group := range rule.APIGroups {
			for _, resource := range rule.Resources {
				for _, verb := range rule.Verbs {
					all = append(all, permission{group, resource, verb})
				}
			}
		}
	}
	return all
}

// without is the role but for one permission.
func without(role *rbacv1.ClusterRole, taken permission) *rbacv1.ClusterRole {
	rest := &rbacv1.ClusterRole{}
	for _, rule := range role.Rules {
		for _, group := range rule.APIGroups {
			for _, resource := range rule.Resources {
				verbs := slices.DeleteFunc(slices.Clone(rule.Verbs), func(verb string) bool { return permission{group, resource, verb} == taken })
				if len(verbs) > 0 {
					rest.Rules = append(rest.Rules, rbacv1.PolicyRule{
						APIGroups: []string{group}, Resources: []string{resource}, Verbs: verbs, ResourceNames: rule.ResourceNames,
					})
				}
			}
		}
	}
	return rest
}

// TestRoleAddsToKwoks has the role give nothing that kwok's own gives already, be
// it of the oldest release or of the newest.
func TestRoleAddsToKwoks(t *testing.T) {
	t.Parallel()
	for _, version := range []string{"v0.6.0", "v0.7.0", "v0.8.0"} {
		kwoks := permissions(readRole(t, moduleDir(t, "sigs.k8s.io/kwok", version), "kustomize", "rbac", "role.yaml"))
		for _, ours := range permissions(ourRole(t)) {
			require.NotContains(t, kwoks, ours, "kwok %s", version)
		}
	}
}
