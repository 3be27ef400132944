package checkscheduler

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/kwok-dra/kwok-dra/internal/dractl/checkscheduler"
	"github.com/kwok-dra/kwok-dra/internal/dractl/checkscheduler/story"
	"github.com/kwok-dra/kwok-dra/internal/dractl/trial"
	"github.com/kwok-dra/kwok-dra/test/cluster"
	"github.com/kwok-dra/kwok-dra/test/e2e/harness"
	"github.com/kwok-dra/kwok-dra/test/internal/admin"
	"github.com/kwok-dra/kwok-dra/test/internal/sidecar"
)

// rig is a cluster, and the command.
type rig struct {
	cluster *cluster.Cluster
	client  kubernetes.Interface
	ctl     string
}

func newRig(t *testing.T) *rig {
	t.Helper()
	programs, err := sidecar.Programs()
	require.NoError(t, err)
	r := &rig{ctl: filepath.Join(programs, "kwok-dractl")}
	r.cluster = cluster.ForTest(t, cluster.Options{Disable: []string{cluster.Kwok}})
	r.client, err = admin.NewClient(r.cluster.Kubeconfig())
	require.NoError(t, err)
	return r
}

// check runs check-scheduler to its end, and returns its report and exit code.
func (r *rig) check(t *testing.T, arguments ...string) (report checkscheduler.Report, code int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), harness.Patience)
	defer cancel()
	command := exec.CommandContext(ctx, r.ctl, append([]string{"check-scheduler", "-o", "json"}, arguments...)...)
	command.Env = append(os.Environ(), "KUBECONFIG="+r.cluster.Kubeconfig())
	var out, errOut bytes.Buffer
	command.Stdout, command.Stderr = &out, &errOut
	err := command.Run()
	t.Log(errOut.String())
	if exit, isExit := errors.AsType[*exec.ExitError](err); !isExit || exit.ExitCode() != 1 {
		require.NoError(t, err, errOut.String())
	}
	require.NoError(t, json.Unmarshal(out.Bytes(), &report), errOut.String())
	return report, command.ProcessState.ExitCode()
}

// failed are the results of statements that are violated.
func failed(report checkscheduler.Report) map[string]trial.Result {
	results := map[string]trial.Result{}
	for _, result := range report.Results {
		if result.Outcome == "FAILED" {
			results[result.ID] = result
		}
	}
	return results
}

func TestCheckScheduler(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	t.Run("schedulers", func(t *testing.T) { // it returns when all have ended
		t.Run("kube-scheduler", func(t *testing.T) {
			t.Parallel()
			report, code := r.check(t, "--seeds", "5")
			require.Empty(t, failed(report))
			require.Zero(t, code)
			require.Equal(t, 5, report.Stories)
			require.True(t, strings.HasPrefix(report.Kubernetes, "v1."), report.Kubernetes)
		})
		t.Run("one without DRA", func(t *testing.T) {
			t.Parallel()
			r.blind(t)
		})
		t.Run("interrupt", func(t *testing.T) {
			t.Parallel()
			r.interrupt(t)
		})
		t.Run("own cluster", func(t *testing.T) {
			t.Parallel()
			r.ownCluster(t)
		})
	})
	r.nothingIsLeft(t)
}

// blind checks a kube-scheduler that binds Pods and does not look at their claims.
func (r *rig) blind(t *testing.T) {
	t.Helper()
	const name = "blind"
	path := filepath.Join(t.TempDir(), "scheduler.yaml")
	require.NoError(t, os.WriteFile(path, fmt.Appendf(nil, `apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
clientConnection: {kubeconfig: %q}
leaderElection: {leaderElect: false}
profiles: [{schedulerName: %s, plugins: {multiPoint: {disabled: [{name: DynamicResources}]}}}]
`, r.cluster.Kubeconfig(), name), 0o600))
	report, code := r.check(t, "--scheduler-name", name, "--seeds", "1", "--only", "^bound-with-claims$", "--", r.cluster.Binary(cluster.Scheduler), "--config", path, "--secure-port=0")
	require.Equal(t, 1, code)
	evidence := failed(report)["bound-with-claims"].Evidence
	require.NotNil(t, evidence)
	require.True(t, evidence.Reproduced)
	require.Less(t, evidence.Parts, evidence.Whole)
	smallest, err := story.Read([]byte(evidence.Story))
	require.NoError(t, err)
	objects := map[string]int{}
	for i := range smallest.Steps {
		for _, object := range smallest.Steps[i].Create {
			objects[object.GetObjectKind().GroupVersionKind().Kind]++
		}
	}
	require.Equal(t, 1, objects["Node"], evidence.Story)
	require.Equal(t, 1, objects["Pod"], evidence.Story)
	require.Zero(t, objects["ResourceSlice"], evidence.Story)
	require.Contains(t, evidence.Script, "schedulerName: "+name)
}

// interrupt ends a check while it waits for the scheduler.
func (r *rig) interrupt(t *testing.T) {
	t.Helper()
	const name = "nobody" // no scheduler has the name
	command := exec.CommandContext(t.Context(), r.ctl, "check-scheduler", "--scheduler-name", name)
	command.Env = append(os.Environ(), "KUBECONFIG="+r.cluster.Kubeconfig())
	require.NoError(t, command.Start())
	harness.API{T: t, Client: r.client}.Eventually(harness.Patience, func() string {
		pods, err := r.client.CoreV1().Pods("").List(t.Context(), metav1.ListOptions{FieldSelector: "spec.schedulerName=" + name})
		require.NoError(t, err)
		if len(pods.Items) == 0 {
			return "a Pod"
		}
		return ""
	})
	require.NoError(t, command.Process.Signal(syscall.SIGINT))
	_ = command.Wait() // its exit code is next
	require.Equal(t, 2, command.ProcessState.ExitCode())
}

// ownCluster has no kubeconfig, and the programs of a release in a directory.
func (r *rig) ownCluster(t *testing.T) {
	t.Helper()
	programs := t.TempDir()
	for _, name := range []string{cluster.Etcd, cluster.APIServer, cluster.ControllerManager, cluster.Scheduler} {
		require.NoError(t, os.Symlink(r.cluster.Binary(name), filepath.Join(programs, name)))
	}
	report, code := r.check(t, "--control-plane", programs, "--seeds", "1")
	require.Zero(t, code)
	require.Equal(t, 1, report.Stories)
	running, err := exec.CommandContext(t.Context(), "ps", "-eo", "args").Output()
	require.NoError(t, err)
	require.NotContains(t, string(running), programs, "processes are left")
}

// nothingIsLeft looks for what the checks have created. The controller manager deletes namespaces a while later.
func (r *rig) nothingIsLeft(t *testing.T) {
	t.Helper()
	harness.API{T: t, Client: r.client}.Eventually(harness.Patience, func() string {
		nodes, err := r.client.CoreV1().Nodes().List(t.Context(), metav1.ListOptions{})
		require.NoError(t, err)
		slices, err := r.client.ResourceV1().ResourceSlices().List(t.Context(), metav1.ListOptions{})
		require.NoError(t, err)
		classes, err := r.client.ResourceV1().DeviceClasses().List(t.Context(), metav1.ListOptions{})
		require.NoError(t, err)
		namespaces, err := r.client.CoreV1().Namespaces().List(t.Context(), metav1.ListOptions{})
		require.NoError(t, err)
		for _, namespace := range namespaces.Items {
			if strings.HasPrefix(namespace.Name, "story-") || strings.HasPrefix(namespace.Name, "check-") {
				return "namespace " + namespace.Name + " to go"
			}
		}
		if left := len(nodes.Items) + len(slices.Items) + len(classes.Items); left > 0 {
			return fmt.Sprintf("%d objects to go", left)
		}
		return ""
	})
}
