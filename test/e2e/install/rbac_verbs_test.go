package install

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/kwok-dra/kwok-dra/test/cluster"
	"github.com/kwok-dra/kwok-dra/test/cluster/build"
	"github.com/kwok-dra/kwok-dra/test/internal/admin"
	"github.com/kwok-dra/kwok-dra/test/internal/sidecar"
)

// verbs is the cluster on which sidecars run with and without a verb, each with a
// ServiceAccount and a node of its own.
type verbs struct {
	cluster *cluster.Cluster
	client  kubernetes.Interface
	// role is what kwok-dra is given besides what kwok is.
	role *rbacv1.ClusterRole
}

// TestVerbs takes each verb of the role away, and has the API server refuse
// something then, and that not happen for which the verb is there. With the whole
// role everything happens, and nothing is refused.
func TestVerbs(t *testing.T) {
	t.Parallel()
	v := newVerbs(t)
	steps := steps()
	t.Run("none", func(t *testing.T) {
		t.Parallel()
		p := v.play(t, "none", v.role, nil)
		for _, step := range []string{"start", "publish", "report", "repair", "adopt", "prepare", "update", "refuse", "explain", "retire", "wipe"} {
			steps[step].happen(p)
			until(t, patience, func() string { return steps[step].missing(p) })
		}
		require.Empty(t, p.refusals())
	})
	for i, taken := range permissions(v.role) {
		t.Run(strings.ReplaceAll(taken.String(), "/", "-"), func(t *testing.T) {
			t.Parallel()
			step, known := stepOf[taken]
			require.True(t, known, "nothing is known to need this permission")
			if taken.resource == "resourceclaims/driver" && kubernetesMinor(t) < 36 {
				t.Skip("asked for from Kubernetes 1.36 on")
			}
			if taken.resource == "devicetaintrules" && taken.verb == "watch" && !v.hasTaintRules(t) {
				t.Skip("nobody watches what the API server does not have")
			}
			p := v.play(t, fmt.Sprintf("verb-%d", i), without(v.role, taken), environmentFor(taken))
			for _, before := range steps[step].after {
				steps[before].happen(p)
				until(t, patience, func() string { return steps[before].missing(p) })
			}
			steps[step].happen(p)
			p.lacks(taken, steps[step])
		})
	}
}

// lacks returns when the API server has refused what needs the permission, and fails if the
// step has happened nevertheless.
func (p *player) lacks(taken permission, step step) {
	p.Helper()
	if taken.resource == "devicetaintrules" {
		until(p.T, patience, func() string { return p.notRefused(taken, 1) })
		return // pictures then leave their taints out, as where the API server has none
	}
	if taken.verb == "watch" {
		// It lists instead, again and again, but less and less often.
		until(p.T, patience, func() string { return p.notRefused(taken, 3) })
		return
	}
	until(p.T, patience, func() string { return p.notRefused(taken, 1) })
	require.NotEmpty(p, step.missing(p), "it happens without the verb")
}

// hasTaintRules reports whether the API server has DeviceTaintRules in any version.
func (v *verbs) hasTaintRules(t *testing.T) bool {
	t.Helper()
	_, err := v.cluster.Kubectl(t.Context(), "get", "devicetaintrules.resource.k8s.io")
	return err == nil
}

// environmentFor turns off what has clients do without a list where the API
// server knows a watch that begins with one.
func environmentFor(taken permission) []string {
	if taken.verb == "list" {
		return []string{"KUBE_FEATURE_WatchListClient=false"}
	}
	return nil
}

func kubernetesMinor(t *testing.T) int {
	t.Helper()
	versions, err := build.Versions{}.Resolve()
	require.NoError(t, err)
	minor := 0
	_, err = fmt.Sscanf(versions.Kubernetes, "v1.%d.", &minor)
	require.NoError(t, err)
	return minor
}

// verbsConfiguration has devices on the nodes with the label devices=yes.
const verbsConfiguration = `
apiVersion: dra.kwok.x-k8s.io/v1alpha1
kind: ResourcePoolTemplate
metadata: {name: gpus}
spec:
  driver: gpu.example.com
  nodeSelector: {nodeSelectorTerms: [{matchExpressions: [{key: devices, operator: In, values: ["yes"]}]}]}
  devices:
  - {name: gpu, count: 2, attributes: {flavor: '{{ .Node.metadata.labels.flavor }}'}}
`

func newVerbs(t *testing.T) *verbs {
	t.Helper()
	c := cluster.ForTest(t, cluster.Options{Audit: true})
	client, err := admin.NewClient(c.Kubeconfig())
	require.NoError(t, err)
	kubectl := func(arguments ...string) {
		_, err := c.Kubectl(t.Context(), arguments...)
		require.NoError(t, err)
	}
	kubectl("apply", "-k", filepath.Join(moduleDir(t, "sigs.k8s.io/kwok", "v0.8.0"), "kustomize", "rbac"))
	kubectl("apply", "-k", filepath.Join(sidecar.Root(), "kustomize", "crd"))
	kubectl("apply", "-f", filepath.Join(sidecar.Root(), "kustomize", "profiles", "gpu-example", "deviceclass.yaml"))
	_, err = client.CoreV1().ConfigMaps("kube-system").Create(t.Context(), &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Name: "kwok-dra"},
		Data:       map[string]string{"gpus": verbsConfiguration},
	}, metav1.CreateOptions{})
	require.NoError(t, err)
	until(t, patience, func() string {
		_, err := c.Kubectl(t.Context(), "get", "resourcepooltemplates.dra.kwok.x-k8s.io,kwokdraconfigurations.dra.kwok.x-k8s.io")
		if err != nil {
			return err.Error()
		}
		return ""
	})
	return &verbs{cluster: c, client: client, role: ourRole(t)}
}

// player is a sidecar with what it has: a ServiceAccount, and a node that only it
// manages, all of one name.
type player struct {
	account
	playerNode
	playerPods
	sidecar *process
}

// account is a ServiceAccount, by whose name goes what is the player's.
type account struct {
	*testing.T
	*verbs
	name string
}

// play starts a sidecar with kwok's role and another.
func (v *verbs) play(t *testing.T, name string, role *rbacv1.ClusterRole, environment []string, arguments ...string) *player {
	t.Helper()
	own := account{t, v, name}
	own.create(role)
	token, err := v.client.CoreV1().ServiceAccounts("kube-system").CreateToken(t.Context(), name, &authenticationv1.TokenRequest{}, metav1.CreateOptions{})
	require.NoError(t, err)
	kubeconfig, err := writeKubeconfig(v.cluster.Kubeconfig(), filepath.Join(stateDir(v.cluster), name+".kubeconfig"), "", token.Status.Token)
	require.NoError(t, err)
	program, err := sidecar.Binary()
	require.NoError(t, err)
	plugins, err := os.MkdirTemp("", "p") //nolint:usetesting // its paths are too long for sockets
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, os.RemoveAll(plugins)) })
	started, err := startProcess(v.cluster, command{
		name: name, program: program, environment: environment,
		log: filepath.Join(v.cluster.Logs(), "kwok-dra-"+name+".log"),
		arguments: append([]string{
			"--kubeconfig=" + kubeconfig, "--server-address=" + loopback + ":0", "--config-map=kube-system/kwok-dra", "--enable-crds",
			"--manage-nodes-with-label-selector=player=" + name, "--plugins-dir=" + plugins, "-v=2",
		}, arguments...),
	})
	require.NoError(t, err)
	t.Cleanup(started.stop)
	return &player{own, playerNode{own}, playerPods{own}, started}
}

func (a account) create(role *rbacv1.ClusterRole) {
	a.Helper()
	named := metav1.ObjectMeta{Name: a.name}
	_, err := a.client.CoreV1().ServiceAccounts("kube-system").Create(a.Context(), &corev1.ServiceAccount{ObjectMeta: named}, metav1.CreateOptions{})
	require.NoError(a, err)
	_, err = a.client.RbacV1().ClusterRoles().Create(a.Context(), &rbacv1.ClusterRole{ObjectMeta: named, Rules: role.Rules}, metav1.CreateOptions{})
	require.NoError(a, err)
	for _, of := range []string{a.name, "kwok-controller"} {
		_, err = a.client.RbacV1().ClusterRoleBindings().Create(a.Context(), &rbacv1.ClusterRoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: a.name + "-" + of},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: of},
			Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: "kube-system", Name: a.name}},
		}, metav1.CreateOptions{})
		require.NoError(a, err)
	}
}

// notReady says so while the sidecar does.
func (p *player) notReady() string {
	if status, err := p.sidecar.get(p.Context(), corev1.URISchemeHTTP, "/readyz", ""); err != nil || status != http.StatusOK {
		return fmt.Sprintf("the sidecar is not ready: status %d, %v", status, err)
	}
	return ""
}
