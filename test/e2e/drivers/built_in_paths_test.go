package drivers

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kwok-dra/kwok-dra/test/e2e/harness"
)

// namespaced runs a driver in a mount namespace in which its node's folder is the kubelet's
// directory, and another one in that is /var/run. It hides what else is there, so it comes last.
const namespaced = `
root=$1
shift
mkdir -p "$root/lib/kubelet" "$root/run"
mount --rbind "$root" "$root/lib/kubelet"
mount --rbind "$root/lib" /var/lib
mount --rbind "$root/run" /var/run
exec "$@"`

func unshare(script string, arguments ...string) *exec.Cmd {
	return exec.Command("unshare", append([]string{"--user", "--map-root-user", "--mount", "sh", "-ec", script, "sh"}, arguments...)...)
}

// inNamespace is a command for a driver that knows no directory but the kubelet's. It becomes the
// driver, and so has its process ID.
func inNamespace(root string, command []string) *exec.Cmd {
	return unshare(namespaced, append([]string{root}, command...)...)
}

// skipBuiltIn skips the driver with built-in paths where it cannot run.
func skipBuiltIn(t *testing.T) {
	t.Helper()
	if out, err := unshare("mount --bind /tmp /var").CombinedOutput(); err != nil {
		t.Skipf("there are no user namespaces here: %v: %s", err, out)
	}
}

// hostOf is where the driver of processors looks for the hardware of a node.
func hostOf(root string) string { return filepath.Join(root, "host") }

// makeCPUs makes the files of four CPUs. Those of a virtual machine may lack what the driver
// reads, such as its caches, and then it has no devices.
func (s *story) makeCPUs() {
	const all = "0-3\n"
	system := filepath.Join(hostOf(filepath.Join(s.plugins, s.node)), "sys", "devices", "system")
	files := map[string]string{"cpu/online": all, "cpu/smt/control": "off\n", "node/node0/cpulist": all}
	for cpu := range 4 {
		folder := fmt.Sprintf("cpu/cpu%d/", cpu)
		files[folder+"topology/physical_package_id"] = "0\n"
		files[folder+"topology/core_id"] = fmt.Sprintln(cpu)
		files[folder+"node0/cpulist"] = all
		files[folder+"cache/index3/level"] = "3\n"
		files[folder+"cache/index3/shared_cpu_list"] = all
		files[folder+"cache/index3/id"] = "0\n"
	}
	for name, content := range files {
		path := filepath.Join(system, name)
		require.NoError(s, os.MkdirAll(filepath.Dir(path), 0o755))
		require.NoError(s, os.WriteFile(path, []byte(content), 0o600))
	}
}

// startRuntime starts the runtime's side of NRI, without which the driver ends.
func (s *story) startRuntime() {
	socket := filepath.Join(s.plugins, s.node, "run", "nri", "nri.sock")
	s.start(exec.Command(filepath.Join(s.binaries, "nri-runtime"), "-socket", socket))
	s.Eventually(harness.Patience, func() string {
		if _, err := os.Stat(socket); err != nil {
			return err.Error()
		}
		return ""
	})
}
