package build

import (
	"bytes"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/mod/module"
)

// smallTests are tests that build in seconds.
var smallTests = Tests{
	Module:  small.source,
	Package: "golang.org/x/mod/semver",
	Tags:    "e2e",
}

func TestEnsureTests(t *testing.T) {
	cache := t.TempDir()
	t.Setenv(CacheEnv, cache)
	var output bytes.Buffer
	program, err := EnsureTests(t.Context(), smallTests, &output)
	require.NoError(t, err)
	require.Equal(t, filepath.Join(cache, "mod-v0.42.0-semver", "e2e.test"), program)
	require.Contains(t, output.String(), "Building a program of others into "+cache)
	require.Contains(t, output.String(), "[1/1] tests of golang.org/x/mod/semver v0.42.0: done in ")
	said, err := exec.Command(program, "-test.run", "TestIsValid", "-test.v").Output()
	require.NoError(t, err)
	require.Contains(t, string(said), "--- PASS: TestIsValid")

	// Without a go command nothing can be built: it has to be found as it is.
	t.Setenv("PATH", "")
	again, err := EnsureTests(t.Context(), smallTests, nil)
	require.NoError(t, err)
	require.Equal(t, program, again)
}

func TestEnsureCommand(t *testing.T) {
	cache := t.TempDir()
	t.Setenv(CacheEnv, cache)
	var output bytes.Buffer
	program, err := EnsureCommand(t.Context(), small.source, "golang.org/x/mod/gosumcheck", &output)
	require.NoError(t, err)
	require.Equal(t, filepath.Join(cache, "mod-v0.42.0-gosumcheck", "gosumcheck"), program)
	require.Contains(t, output.String(), "[1/1] golang.org/x/mod/gosumcheck v0.42.0: done in ")
	require.NoError(t, exec.Command(program, "/dev/null").Run())
}

func TestTestsUnit(t *testing.T) {
	t.Parallel()
	u := testsUnit(Tests{Module: module.Version{Path: "k8s.io/kubernetes", Version: "v1.36.3"}, Package: "k8s.io/kubernetes/test/e2e/dra"})
	require.Equal(t, "kubernetes-v1.36.3-dra", u.name)
	require.Equal(t, "v0.36.3", u.parts, "its staging modules are published under another version")
}

// TestCommandUnit: a major version is not what a program is called.
func TestCommandUnit(t *testing.T) {
	t.Parallel()
	const metrics, trainer = "k8s.io/kube-state-metrics/v2", "github.com/kubeflow/trainer/v2"
	u := commandUnit(module.Version{Path: metrics, Version: "v2.20.0"}, metrics)
	require.Equal(t, "kube-state-metrics-v2.20.0-kube-state-metrics", u.name)
	require.Equal(t, "kube-state-metrics", u.program)
	require.Equal(t, []string{metrics}, u.packages)
	u = commandUnit(module.Version{Path: trainer, Version: "v2.2.0"}, trainer+"/cmd/manager")
	require.Equal(t, "trainer-v2.2.0-manager", u.name)
	require.Equal(t, "manager", u.program)
}
