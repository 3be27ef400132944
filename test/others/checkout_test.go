package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// checkedOut makes a checkout of a project, with one commit.
func checkedOut(t *testing.T, module string) string {
	t.Helper()
	dir := t.TempDir()
	folder := filepath.Join(dir, "clusterloader2")
	require.NoError(t, os.Mkdir(folder, 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(folder, "go.mod"), []byte("module "+module+"\n"), 0o644))
	for _, args := range [][]string{
		{"init", "--quiet"},
		{"add", "."},
		{"-c", "user.name=tester", "-c", "user.email=tester@example.com", "commit", "--quiet", "--message", "first"},
	} {
		said, err := exec.Command("git", append([]string{"-C", dir}, args...)...).CombinedOutput()
		require.NoError(t, err, string(said))
	}
	return dir
}

func TestCheckout(t *testing.T) {
	t.Parallel()
	dir := checkedOut(t, perfTests.module)
	chosen, err := selection{"clusterloader2", dir}.suites(t.Context())
	require.NoError(t, err)
	require.Len(t, chosen, 2)
	for _, s := range chosen {
		require.Equal(t, perfTests.module, s.checkout.Module.Path)
		require.Regexp(t, "^[0-9a-f]{12}$", s.checkout.Module.Version)
		require.Equal(t, filepath.Join(dir, "clusterloader2"), s.checkout.Dir)
		require.False(t, s.checkout.Changed)
	}

	require.NoError(t, os.WriteFile(filepath.Join(dir, "clusterloader2", "go.mod"), []byte("module "+perfTests.module+"\n\ngo 1.26\n"), 0o644))
	changed, err := selection{"clusterloader2", dir}.suites(t.Context())
	require.NoError(t, err)
	require.True(t, changed[0].checkout.Changed)
	require.Equal(t, chosen[0].checkout.Module.Version+"-dirty", changed[0].checkout.Module.Version)
}

// TestRelease: the version of a release is its tag, though the commit has others.
func TestRelease(t *testing.T) {
	t.Parallel()
	released := perfTests
	released.commit = "v1.2.3"
	dir := checkedOut(t, released.module)
	for _, tag := range []string{"another", "v1.2.3", "v9.9.9"} {
		said, err := exec.Command("git", "-C", dir, "tag", tag).CombinedOutput()
		require.NoError(t, err, string(said))
	}
	checkout, err := released.read(t.Context(), dir)
	require.NoError(t, err)
	require.Equal(t, "v1.2.3", checkout.Module.Version)
}

func TestNoCheckout(t *testing.T) {
	t.Parallel()
	other, empty := checkedOut(t, "example.com/other"), t.TempDir()
	for name, test := range map[string]struct {
		selection
		want string
	}{
		"no suite":        {selection{"", other}, "want SUITE too, of which it is the checkout: one of clusterloader2, "},
		"needs none":      {selection{"kubernetes", other}, "suite kubernetes needs no checkout, those that do are clusterloader2, "},
		"another project": {selection{"clusterloader2", other}, "go.mod is of module example.com/other, want k8s.io/perf-tests/clusterloader2"},
		"nothing there":   {selection{"clusterloader2", empty}, "find a checkout of https://github.com/kubernetes/perf-tests in " + empty},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := test.suites(t.Context())
			require.ErrorContains(t, err, test.want)
		})
	}
}

func TestNotOfGit(t *testing.T) {
	t.Parallel()
	dir := checkedOut(t, perfTests.module)
	require.NoError(t, os.RemoveAll(filepath.Join(dir, ".git")))
	_, err := perfTests.read(t.Context(), dir)
	require.ErrorContains(t, err, "find the commit of the checkout "+dir)
	require.ErrorContains(t, err, "not a git repository")
}

// TestSkipped: without a checkout nothing is built and nothing is started.
func TestSkipped(t *testing.T) {
	t.Parallel()
	result := (&runner{}).run(t.Context(), clusterLoader)
	require.False(t, result.Bad())
	require.Equal(t, `since no module of it is published; it runs from a checkout:
  git clone https://github.com/kubernetes/perf-tests ../perf-tests && git -C ../perf-tests checkout 4b3415444f4c
  SRC=../perf-tests make test-others SUITE=clusterloader2`, result.Skipped)
}
