package install

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kwok-dra/kwok-dra/test/cluster"
	"github.com/kwok-dra/kwok-dra/test/internal/admin"
	"github.com/kwok-dra/kwok-dra/test/internal/sidecar"
)

// TestKwokctl makes a cluster with kwokctl as a user does. Another cluster, of
// which only the API server runs, sees to it that no process outlives the test.
//
// Replaced are what kwokctl would download, by the programs that are there; the
// sidecar's port, of which the machine has but one; and the number of nodes.
func TestKwokctl(t *testing.T) {
	t.Parallel()
	u := follows(t, cluster.Options{Disable: []string{cluster.Kwok, cluster.ControllerManager, cluster.Scheduler}})
	u.prepareKwokctl()
	t.Cleanup(func() {
		// The context of the test is done by now.
		remove := u.shellCommand(context.WithoutCancel(t.Context()), "kwokctl delete cluster")
		output, err := remove.CombinedOutput()
		require.NoError(t, err, "%s", output)
	})
	t.Cleanup(func() {
		if log, err := os.ReadFile(u.path("home", ".kwok", "clusters", "kwok", "logs", "kwok-dra.log")); err == nil && t.Failed() {
			t.Logf("kwok-dra wrote:\n%s", log)
		}
	})
	u.does("kwokctl", "make build\n", "", "--replicas 1000", "--replicas 50")
	// A cluster of a second's age may not have it yet, and without it no Pod is taken.
	u.run("until kubectl get serviceaccount default; do sleep 1; done")
	u.does("Devices")

	var err error
	u.client, err = admin.NewClient(u.path("home", ".kube", "config"))
	require.NoError(t, err)
	u.requirePrepared(h100)
	u.allPublished(50 + 2)

	// What is a part of the cluster stops and starts with it.
	processes := u.processes()
	u.run("kwokctl stop cluster")
	until(t, patience, func() string { return running(processes) })
	u.run("kwokctl start cluster\n" +
		`kwokctl scale node h100 --replicas 51 --config kwokctl.yaml --param '.profile="nvidia-h100"'`)
	u.allPublished(51 + 2)
}

// processes are those of the cluster that kwokctl runs. It kills them without waiting
// for their end, and one that is started meanwhile finds its port in use.
func (u *user) processes() []int {
	u.T().Helper()
	files, err := filepath.Glob(u.path("home", ".kwok", "clusters", "kwok", "pids", "*.pid"))
	require.NoError(u.T(), err)
	require.NotEmpty(u.T(), files)
	var processes []int
	for _, file := range files {
		content, err := os.ReadFile(file)
		require.NoError(u.T(), err)
		process, err := strconv.Atoi(strings.TrimSpace(string(content)))
		require.NoError(u.T(), err, file)
		processes = append(processes, process)
	}
	return processes
}

// running says which of some processes has not ended. One whose parent has not asked
// for its end yet holds nothing any more.
func running(processes []int) string {
	for _, process := range processes {
		if err := syscall.Kill(process, 0); errors.Is(err, syscall.ESRCH) {
			continue
		}
		if stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", process)); err != nil || !strings.Contains(string(stat), ") Z ") {
			return fmt.Sprintf("process %d has not ended", process)
		}
	}
	return ""
}

// TestKwokctlDocker has kwokctl say how it would start kwok-dra in a container.
func TestKwokctlDocker(t *testing.T) {
	t.Parallel()
	u := follows(t, cluster.Options{Disable: []string{cluster.Kwok, cluster.ControllerManager, cluster.Scheduler}})
	for _, runtime := range []string{"docker", "podman", "nerdctl"} {
		output, err := u.shell("kubectl kustomize kustomize/kwokctl/docker | sed 's|CLUSTER|/clusters/kwok|' > kwokctl.yaml\n" +
			"kwokctl --dry-run create cluster --runtime " + runtime + " --config kwokctl.yaml").CombinedOutput()
		require.NoError(t, err, "%s", output)
		var create, start string
		for line := range strings.Lines(string(output)) {
			switch {
			case strings.HasPrefix(line, runtime+" create --name=kwok-kwok-kwok-dra "):
				create = line
			case strings.HasPrefix(line, runtime+" start kwok-kwok-kwok-dra"):
				start = line
			}
		}
		require.NotEmpty(t, start)
		for _, part := range []string{
			" --network=kwok-kwok ", " --user=0 ",
			" --volume=/clusters/kwok/kubeconfig:/clusters/kwok/kubeconfig.yaml:ro ",
			" --volume=/clusters/kwok/pki/admin.key:/etc/kubernetes/pki/admin.key:ro ",
			" kwok-dra/kwok-dra:v0.2.0 --kubeconfig=/clusters/kwok/kubeconfig.yaml --manage-all-nodes --config-map=kube-system/kwok-dra --enable-crds\n",
		} {
			require.Contains(t, create, part)
		}
	}
}

// prepareKwokctl puts into place what the commands of the guide need.
func (u *user) prepareKwokctl() {
	program, err := sidecar.Binary()
	require.NoError(u.T(), err)
	require.NoError(u.T(), os.Mkdir(u.path("bin"), 0o755))
	require.NoError(u.T(), os.Symlink(program, u.path("bin", "kwok-dra")))
	address, err := freeAddress()
	require.NoError(u.T(), err)
	file := u.path("kustomize", "kwokctl", "base", "kwokctl.yaml")
	content, err := os.ReadFile(file)
	require.NoError(u.T(), err)
	require.NoError(u.T(), os.WriteFile(file, append(content, "  - --server-address="+address+"\n"...), 0o600))
	require.NoError(u.T(), os.MkdirAll(u.path("home"), 0o755))
	u.environment = []string{"KUBECONFIG=" + u.path("home", ".kube", "config"), "KWOK_KUBE_VERSION=" + u.cluster.Versions().Kubernetes}
	for variable, program := range map[string]string{
		"ETCD": "etcd", "KUBE_APISERVER": "kube-apiserver", "KUBE_CONTROLLER_MANAGER": "kube-controller-manager",
		"KUBE_SCHEDULER": "kube-scheduler", "KUBECTL": "kubectl", "CONTROLLER": "kwok",
	} {
		u.environment = append(u.environment, "KWOK_"+variable+"_BINARY="+u.cluster.Binary(program))
	}
}

// allPublished waits until that many nodes have slices.
func (o objects) allPublished(want int) {
	o.Helper()
	until(o.T, patience, func() string {
		list, err := o.client.ResourceV1().ResourceSlices().List(o.Context(), metav1.ListOptions{})
		if err != nil {
			return err.Error() // it may have just been started again
		}
		if len(list.Items) != want {
			return fmt.Sprintf("%d slices, want %d", len(list.Items), want)
		}
		return ""
	})
}
