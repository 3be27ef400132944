package dractl

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/client-go/kubernetes"

	"github.com/kwok-dra/kwok-dra/test/cluster"
	"github.com/kwok-dra/kwok-dra/test/e2e/docs/match"
	"github.com/kwok-dra/kwok-dra/test/internal/admin"
	"github.com/kwok-dra/kwok-dra/test/internal/sidecar"
)

// lineLimit bounds the time of a line of shell.
const lineLimit = 3 * time.Minute

// shell is a user at a shell, in a directory, with a cluster.
type shell struct {
	*testing.T
	cluster *cluster.Cluster
	client  kubernetes.Interface
	dir     string
}

// newShell starts a cluster with kwok's fast Stages and, of the project's, those
// that hold Pods back, and goes to a copy of the examples.
func newShell(t *testing.T) *shell {
	t.Helper()
	kwok, err := sidecar.ModuleDir(t.Context(), "sigs.k8s.io/kwok")
	require.NoError(t, err)
	stages := []string{
		filepath.Join(kwok, "kustomize/stage/node/fast/node-initialize.yaml"),
		filepath.Join(kwok, "kustomize/stage/pod/fast/pod-complete.yaml"),
		filepath.Join(kwok, "kustomize/stage/pod/fast/pod-delete.yaml"),
		filepath.Join(sidecar.Root(), "stages/pod/fast/pod-ready.yaml"),
	}
	s := &shell{T: t, cluster: cluster.ForTest(t, cluster.Options{Config: stages}), dir: filepath.Join(t.TempDir(), "examples")}
	s.client, err = admin.NewClient(s.cluster.Kubeconfig())
	require.NoError(t, err)
	require.NoError(t, os.CopyFS(s.dir, os.DirFS(filepath.Join(sidecar.Root(), "internal/dractl/testdata/examples"))))
	return s
}

// result is what a line of shell did.
type result struct {
	code        int
	out, errOut string
}

func (r result) String() string {
	return fmt.Sprintf("exit code %d\n%s\n%s", r.code, r.out, r.errOut)
}

// command prepares a line of shell.
func (s *shell) command(ctx context.Context, line string) *exec.Cmd {
	s.Helper()
	dir, err := sidecar.Programs()
	require.NoError(s, err)
	made := exec.CommandContext(ctx, "bash", "-c", "set -o pipefail; "+line)
	made.Dir = s.dir
	made.Env = s.cluster.KubectlCommand(ctx).Env
	for i, entry := range made.Env {
		if path, ok := strings.CutPrefix(entry, "PATH="); ok {
			made.Env[i] = "PATH=" + dir + string(os.PathListSeparator) + path
		}
	}
	made.Env = append(made.Env, "KUBECONFIG="+s.cluster.Kubeconfig())
	return made
}

// run runs a line of shell to its end.
func (s *shell) run(line string) result {
	s.Helper()
	ctx, cancel := context.WithTimeout(s.Context(), lineLimit)
	defer cancel()
	var out, errOut bytes.Buffer
	command := s.command(ctx, line)
	command.Stdout, command.Stderr = &out, &errOut
	err := command.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		require.NoError(s, err, line)
	}
	return result{command.ProcessState.ExitCode(), out.String(), match.WithoutProgress(errOut.String())}
}

// must runs a line that succeeds.
func (s *shell) must(line string) string {
	s.Helper()
	r := s.run(line)
	require.Zero(s, r.code, "%s\n%s", line, r)
	return r.out
}

// eventually waits until a line succeeds.
func (s *shell) eventually(line string) {
	s.Helper()
	require.EventuallyWithT(s, func(c *assert.CollectT) {
		r := s.run(line)
		require.Zero(c, r.code, "%s\n%s", line, r)
	}, lineLimit, 500*time.Millisecond)
}

// sidecar starts the sidecar with the ConfigMap.
func (s *shell) sidecar(arguments ...string) {
	s.Helper()
	process, err := sidecar.Start(s.Context(), s.cluster, append(arguments, "--config-map", "kube-system/kwok-dra")...)
	require.NoError(s, err)
	s.Cleanup(func() { require.NoError(s, process.Kill()) })
}
