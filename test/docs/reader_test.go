package docs

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kwok-dra/kwok-dra/test/cluster"
	"github.com/kwok-dra/kwok-dra/test/cluster/build"
	"github.com/kwok-dra/kwok-dra/test/docs/page"
	"github.com/kwok-dra/kwok-dra/test/sidecar"
)

// reader is somebody with a checkout who follows a page.
type reader struct {
	home string
	// checkout is the reader's own copy of the repository, and the working directory.
	checkout string
	// programs is a directory with kubectl, kwok-dra and kwok-dractl.
	programs string
	// kubeconfig is that of the reader's cluster, "" without one.
	kubeconfig string
}

// newReader makes a reader with a cluster as a page wants it.
func newReader(t *testing.T, wants string) *reader {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	require.NoError(t, err)
	r := &reader{home: filepath.Join(dir, "home"), checkout: filepath.Join(dir, "kwok-dra"), programs: filepath.Join(dir, "programs")}
	for _, made := range []string{r.home, r.checkout, r.programs} {
		require.NoError(t, os.Mkdir(made, 0o755))
	}
	require.NoError(t, copyRepository(r.checkout))
	programs := buildPrograms(t)
	if wants == page.None {
		for _, program := range programs {
			require.NoError(t, os.Symlink(program, filepath.Join(r.programs, filepath.Base(program))))
		}
		return r
	}
	c := demo(t)
	r.kubeconfig = c.Kubeconfig()
	for _, program := range programs {
		adopted, err := c.Adopt(program)
		require.NoError(t, err)
		r.programs = filepath.Dir(adopted)
	}
	return r
}

// goVariables are what a Go program needs that has no HOME with a configuration.
var goVariables = []string{"GOCACHE", "GOMODCACHE", "GOPROXY", "GOSUMDB", "GONOSUMDB", "GOTOOLCHAIN", "GOFLAGS"}

// environment is that of the reader's shell, with nothing else of whoever runs the
// test.
func (r *reader) environment(t *testing.T) []string {
	t.Helper()
	environment := []string{
		"HOME=" + r.home,
		"PATH=" + r.programs + string(os.PathListSeparator) + os.Getenv("PATH"),
	}
	if r.kubeconfig != "" {
		environment = append(environment, "KUBECONFIG="+r.kubeconfig)
	}
	output, err := exec.CommandContext(t.Context(), "go", append([]string{"env", "-json"}, goVariables...)...).Output()
	require.NoError(t, err)
	var values map[string]string
	require.NoError(t, json.Unmarshal(output, &values))
	for name, value := range values {
		environment = append(environment, name+"="+value)
	}
	return environment
}

// copyRepository copies what users have of the repository.
func copyRepository(to string) error {
	entries, err := os.ReadDir(sidecar.Root())
	if err != nil {
		return fmt.Errorf("copy repository: %w", err)
	}
	for _, entry := range entries {
		from, to := filepath.Join(sidecar.Root(), entry.Name()), filepath.Join(to, entry.Name())
		switch {
		case slices.Contains(notPages, entry.Name()):
			continue
		case entry.IsDir():
			err = os.CopyFS(to, os.DirFS(from))
		default:
			err = os.Link(from, to)
		}
		if err != nil {
			return fmt.Errorf("copy repository: %w", err)
		}
	}
	return nil
}

// buildPrograms are the paths of the programs that readers have.
func buildPrograms(t *testing.T) []string {
	t.Helper()
	versions, err := build.Versions{}.Resolve()
	require.NoError(t, err)
	built, err := build.Ensure(t.Context(), build.Options{Versions: versions})
	require.NoError(t, err)
	ours, err := sidecar.Programs()
	require.NoError(t, err)
	programs := []string{built.Path("kubectl"), built.Path("kwokctl")}
	for _, name := range []string{"kwok-dra", "kwok-dractl", "kubectl-dra"} {
		programs = append(programs, filepath.Join(ours, name))
	}
	return programs
}

// demo starts a cluster as "make demo" leaves it.
func demo(t *testing.T) *cluster.Cluster {
	t.Helper()
	kwok, err := sidecar.ModuleDir(t.Context(), "sigs.k8s.io/kwok")
	require.NoError(t, err)
	c := cluster.ForTest(t, cluster.Options{EnableCRDs: []string{"Stage"}})
	kubectl := func(arguments ...string) {
		_, err := c.Kubectl(t.Context(), arguments...)
		require.NoError(t, err)
	}
	kubectl("apply", "-k", filepath.Join(kwok, "kustomize", "stage", "fast"))
	kubectl("apply", "-k", filepath.Join(sidecar.Root(), "kustomize", "crd"))
	kubectl("apply", "-k", filepath.Join(sidecar.Root(), "stages", "pod", "fast"))
	manifests := filepath.Join(sidecar.Root(), "test", "demo", "manifests")
	kubectl("apply", "-f", filepath.Join(manifests, "configuration.yaml"))
	_, err = sidecar.Start(t.Context(), c, "--config-map", "kube-system/kwok-dra", "--enable-crds")
	require.NoError(t, err)
	kubectl("apply", "-f", filepath.Join(manifests, "nodes.yaml"), "-f", filepath.Join(manifests, "workload.yaml"))
	return c
}
