package kubectldra

import (
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestLinksNoKwokDRA holds what the plugin is linked of. It works on any cluster, so it has nothing of the sidecar.
func TestLinksNoKwokDRA(t *testing.T) {
	t.Parallel()
	const module = "github.com/kwok-dra/kwok-dra/"
	linked := strings.Split(runGo(t, "list", "-deps", module+"cmd/kubectl-dra"), "\n")
	require.Contains(t, linked, module+"internal/extensions/explaining/why")
	require.NotContains(t, linked, "k8s.io/client-go/kubernetes", "it has the clients of all API groups")
	for _, dependency := range linked {
		for _, needless := range []string{
			module + "internal/app", module + "internal/claims", module + "internal/config", module + "internal/devices",
			module + "internal/dractl/check", module + "internal/dractl/fleet", module + "internal/extensions/driverpods",
			module + "internal/extensions/explaining/selection", module + "internal/extensions/explaining/sidecar",
			module + "internal/extensions/karpenter", module + "internal/extensions/realdrivers", module + "internal/observe/lifecycle",
			module + "internal/resourceslice", module + "pkg/api/defaults", module + "pkg/api/validation",
			"google.golang.org/grpc", "k8s.io/client-go/informers", "k8s.io/kubelet", "sigs.k8s.io/kwok/pkg/utils", "github.com/itchyny/gojq", "github.com/Masterminds/sprig",
		} {
			require.False(t, dependency == needless || strings.HasPrefix(dependency, needless+"/"), "the plugin links %s", dependency)
		}
	}
}

// TestCompilesForWindows compiles the plugin for a system that the rest of the product does not run on.
func TestCompilesForWindows(t *testing.T) {
	t.Parallel()
	runGo(t, "build", ".")
}

// runGo returns the output of the go command, for Windows.
func runGo(t *testing.T, arguments ...string) string {
	t.Helper()
	var problems strings.Builder
	command := exec.CommandContext(t.Context(), "go", arguments...)
	command.Env = append(os.Environ(), "GOOS=windows", "CGO_ENABLED=0")
	command.Stderr = &problems
	output, err := command.Output()
	require.NoError(t, err, "%s", &problems)
	return string(output)
}
