package docs

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kwok-dra/kwok-dra/test/cluster"
	"github.com/kwok-dra/kwok-dra/test/cluster/build"
	"github.com/kwok-dra/kwok-dra/test/internal/sidecar"
	"github.com/kwok-dra/kwok-dra/test/tools/demo/world"
)

// reader is somebody with a checkout who follows a page.
type reader struct {
	home string
	// checkout is the reader's own copy of the repository, and the working directory.
	checkout string
	// programs are directories with kubectl, kwok-dra, kwok-dractl and the like.
	programs []string
	// cluster is the reader's, or nil.
	cluster *cluster.Cluster
	// kubeconfig is that of the reader's cluster, "" without one.
	kubeconfig string
}

// newReader makes a reader who has no cluster.
func newReader(t *testing.T) *reader {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	require.NoError(t, err)
	ours, err := sidecar.Programs()
	require.NoError(t, err)
	r := &reader{
		home: filepath.Join(dir, "home"), checkout: filepath.Join(dir, "kwok-dra"),
		programs: []string{ours, filepath.Dir(controlPlane(t).Path("kubectl"))},
	}
	for _, made := range []string{r.home, r.checkout} {
		require.NoError(t, os.Mkdir(made, 0o755))
	}
	require.NoError(t, copyRepository(r.checkout))
	return r
}

// follows gives the reader a cluster, and its programs, which end with it.
func (r *reader) follows(demo *world.World) {
	r.cluster, r.kubeconfig, r.programs = demo.Cluster, demo.Cluster.Kubeconfig(), []string{demo.Path}
}

// controlPlane are the programs of Kubernetes and kwok.
func controlPlane(t *testing.T) *build.Programs {
	t.Helper()
	versions, err := build.Versions{}.Resolve()
	require.NoError(t, err)
	programs, err := build.Ensure(t.Context(), build.Options{Versions: versions})
	require.NoError(t, err)
	return programs
}

// goVariables are what a Go program needs that has no HOME with a configuration.
var goVariables = []string{"GOCACHE", "GOMODCACHE", "GOPROXY", "GOSUMDB", "GONOSUMDB", "GOTOOLCHAIN", "GOFLAGS"}

// environment is that of the reader's shell, with nothing else of whoever runs the
// test.
func (r *reader) environment(t *testing.T) []string {
	t.Helper()
	environment := []string{
		"HOME=" + r.home,
		"PATH=" + strings.Join(append(r.programs, os.Getenv("PATH")), string(os.PathListSeparator)),
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
