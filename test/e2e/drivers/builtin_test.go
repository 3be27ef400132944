package drivers

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kwok-dra/kwok-dra/test/cluster"
	"github.com/kwok-dra/kwok-dra/test/e2e/harness"
	"github.com/kwok-dra/kwok-dra/test/internal/sidecar"
)

// inNamespace runs a driver in a mount namespace in which its node's folder is the kubelet's
// directory.
const inNamespace = `
mkdir -p %[1]s/lib/kubelet
mount --rbind %[1]s %[1]s/lib/kubelet
mount --rbind %[1]s/lib /var/lib
exec %[2]s -driver %[3]s -node %[4]s -kubeconfig %[5]s -cdi %[1]s/cdi`

// TestBuiltInPaths: a driver that knows no directory but the kubelet's runs in a mount namespace of its
// own.
func TestBuiltInPaths(t *testing.T) {
	t.Parallel()
	unshare := func(script string) *exec.Cmd {
		return exec.CommandContext(t.Context(), "unshare", "--user", "--map-root-user", "--mount", "sh", "-c", script)
	}
	if out, err := unshare("mount --bind /tmp /var").CombinedOutput(); err != nil {
		t.Skipf("there are no user namespaces here: %v: %s", err, out)
	}
	s := newScene(t, cluster.Options{Config: harness.FastStages(t)})
	s.Configure("configuration", harness.Knobs)
	s.Sidecar("--plugins-dir", s.plugins)
	s.newNode("a")
	binary := filepath.Join(t.TempDir(), "file-driver")
	require.NoError(t, sidecar.Build(filepath.Join(sidecar.Root(), "test"), binary, "./drivers/cmd/file-driver"))
	command := unshare(fmt.Sprintf(inNamespace, filepath.Join(s.plugins, "a"), binary, driverOf("a"), "a", s.Cluster.Kubeconfig()))
	command.Stderr = os.Stderr
	require.NoError(t, command.Start())
	t.Cleanup(func() {
		_ = command.Process.Kill()
		_ = command.Wait() // which says that it was killed
	})
	s.Published("a", driverOf("a"), 4)
	s.CreateClaim("a", "c", harness.ClaimSpec("a"))
	s.CreatePod("a", harness.NewPod("p", "a", "c"))
	s.Running("a", "p")
}
