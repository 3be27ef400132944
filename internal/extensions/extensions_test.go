package extensions

import (
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/pflag"
	"github.com/stretchr/testify/require"
	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/yaml"

	"github.com/kwok-dra/kwok-dra/internal/app"
)

// TestClusterRoles: the manifests have the rights of each extension, and none of an extension
// that does not exist.
func TestClusterRoles(t *testing.T) {
	t.Parallel()
	var needed, written []string
	for _, extension := range All() {
		if extension.ClusterRole != "" {
			needed = append(needed, extension.ClusterRole)
		}
	}
	for _, folder := range []string{"rbac/*", "karpenter/rbac", "container-view", "compute-domains", "secure-serving", "node-load"} {
		files, err := filepath.Glob(filepath.Join("..", "..", "kustomize", folder, "role.yaml"))
		require.NoError(t, err)
		for _, file := range files {
			content, err := os.ReadFile(file)
			require.NoError(t, err)
			var role rbacv1.ClusterRole
			require.NoError(t, yaml.UnmarshalStrict(content, &role))
			written = append(written, role.Name)
		}
	}
	require.ElementsMatch(t, needed, written)
}

// parsed are the options of a command line.
func parsed(t *testing.T, line string) *app.Options {
	t.Helper()
	o := app.NewOptions(All()...)
	flags := o.Flags()
	flags.SetOutput(io.Discard)
	require.NoError(t, flags.Parse(strings.Fields(line)))
	return o
}

// TestFlags are all there, beside flags of the core that are about the same.
func TestFlags(t *testing.T) {
	t.Parallel()
	var names []string
	app.NewOptions(All()...).Flags().VisitAll(func(flag *pflag.Flag) { names = append(names, flag.Name) })
	require.Equal(t, "kubeconfig config config-map enable-crds dra-kwok-configmap adapters "+
		"manage-all-nodes manage-nodes-with-annotation-selector manage-nodes-with-label-selector manage-single-node plugins-dir container-view pod-resources compute-domains node-load "+
		"kube-api-qps workers shard-mode leader-elect-resource-namespace leader-elect-resource-name installation "+
		"server-address secure-serving tls-cert-file tls-private-key-file metrics-devices explain-pods-after profiling v version", strings.Join(names, " "))
}

func TestCompletes(t *testing.T) {
	t.Parallel()
	for _, line := range []string{
		"--adapters NodeOverlay,DRAConfig --dra-kwok-configmap karpenter/dra-kwok-configmap --enable-crds", "--adapters DRAConfig",
		"--dra-kwok-configmap karpenter/dra-kwok-configmap", "--config a --explain-pods-after 1m",
	} {
		require.NoError(t, parsed(t, line).Complete(), line)
	}
}

func TestCompleteRefuses(t *testing.T) {
	t.Parallel()
	for line, want := range map[string]string{
		"":                               "nothing to publish: give --config FILE, --config-map NAMESPACE/NAME or --enable-crds; for Karpenter's, --dra-kwok-configmap or --adapters; for real drivers, --plugins-dir DIR",
		"--dra-kwok-configmap karpenter": `parse --dra-kwok-configmap "karpenter": must be NAMESPACE/NAME`,
		"--dra-kwok-configmap a/b --config-map a/b":                             "parse --dra-kwok-configmap \"a/b\": --config-map is the same",
		"--adapters DRAConfigs":                                                 `parse --adapters: unknown kind "DRAConfigs": must be DRAConfig or NodeOverlay; did you mean DRAConfig?`,
		"--adapters DRAConfig,DRAConfig":                                        `parse --adapters: kind "DRAConfig" is there twice: remove one`,
		"--plugins-dir /a/directory/whose/name/is/long/enough/to/leave/no/room": "parse --plugins-dir: plugins directory /a/directory/whose/name/is/long/enough/to/leave/no/room: is 55 characters long, and the paths of sockets below it would be too long: choose one of at most 36 characters",
		"--config a --tls-cert-file b":                                          "--tls-cert-file and --tls-private-key-file are for --secure-serving: give it as well",
		"--config a --secure-serving --tls-cert-file b":                         "give both --tls-cert-file and --tls-private-key-file, or neither",
		"--config a --explain-pods-after -1s":                                   "parse --explain-pods-after -1s: must be a time such as 1m, or 0 for no events",
	} {
		require.ErrorContains(t, parsed(t, line).Complete(), want, line)
	}
}

// TestProgramsLinkChecks: every program that compiles templates refuses what an extension checks in them.
func TestProgramsLinkChecks(t *testing.T) {
	t.Parallel()
	const module = "github.com/kwok-dra/kwok-dra/"
	for _, program := range []string{"cmd/kwok-dra", "cmd/kwok-dractl", "pkg/kwokdratest", "pkg/templatenode"} {
		linked, err := exec.CommandContext(t.Context(), "go", "list", "-deps", module+program).Output()
		require.NoError(t, err)
		dependencies := strings.Split(string(linked), "\n")
		require.Contains(t, dependencies, module+"internal/devices", program)
		for _, extension := range []string{"containerview/injections", "driverpods", "parameters", "templatefields"} {
			require.Contains(t, dependencies, module+"internal/extensions/"+extension, program)
		}
	}
}
