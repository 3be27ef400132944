package build

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/mod/module"
)

// TestPatchedUnit: a program with another fault is another program.
func TestPatchedUnit(t *testing.T) {
	t.Parallel()
	patch := filepath.Join(t.TempDir(), "fault.patch")
	require.NoError(t, os.WriteFile(patch, []byte("one"), 0o600))
	u, err := patchedUnit(Patched{Kubernetes: "v1.36.3", Program: "kube-scheduler", Patch: patch})
	require.NoError(t, err)
	require.Regexp(t, `^kubernetes-v1\.36\.3-fault-[0-9a-f]{8}$`, u.name)
	require.Equal(t, []string{"k8s.io/kubernetes/cmd/kube-scheduler"}, u.packages)
	require.NoError(t, os.WriteFile(patch, []byte("two"), 0o600))
	other, err := patchedUnit(Patched{Kubernetes: "v1.36.3", Program: "kube-scheduler", Patch: patch})
	require.NoError(t, err)
	require.NotEqual(t, u.name, other.name)

	require.Equal(t, u.source, changedModule("k8s.io/kubernetes/pkg/a.go", u))
	require.Equal(t, module.Version{Path: "k8s.io/api", Version: "v0.36.3"}, changedModule("k8s.io/api/core/v1/types.go", u))
}

// TestPatchModules: a program is built with the patch, and the module cache stays as it is.
func TestPatchModules(t *testing.T) {
	t.Setenv(CacheEnv, t.TempDir())
	patch := writeUsagePatch(t)
	u := commandUnit(small.source, "golang.org/x/mod/gosumcheck")
	u.patch = patch
	program, err := ensureOne(t.Context(), u, &bytes.Buffer{})
	require.NoError(t, err)
	requirePatched(t, program)

	u.name = "again"
	require.NoError(t, os.WriteFile(patch, bytes.ReplaceAll(readText(t, patch), []byte("usage: gosumcheck"), []byte("usage: other")), 0o600))
	_, err = ensureOne(t.Context(), u, &bytes.Buffer{})
	require.ErrorContains(t, err, "usage.patch does not apply to golang.org/x/mod@v0.42.0")
	require.NoError(t, os.WriteFile(patch, []byte("nothing"), 0o600))
	_, err = ensureOne(t.Context(), u, &bytes.Buffer{})
	require.ErrorContains(t, err, "it changes no file")
}

// TestPatchedModule: a program of a checkout is built with the patch of a module, and the checkout stays as it is.
func TestPatchedModule(t *testing.T) {
	t.Parallel()
	const checkout = ".."
	before := readText(t, filepath.Join(checkout, "go.mod"))
	program := filepath.Join(t.TempDir(), "program")
	p := PatchedModule{Dir: checkout, Package: "golang.org/x/mod/gosumcheck", Module: "golang.org/x/mod", Patch: writeUsagePatch(t)}
	require.NoError(t, p.Build(t.Context(), program, &bytes.Buffer{}))
	requirePatched(t, program)
	require.Equal(t, string(before), string(readText(t, filepath.Join(checkout, "go.mod"))))
}

// writeUsagePatch writes a patch of gosumcheck.
func writeUsagePatch(t *testing.T) string {
	t.Helper()
	patch := filepath.Join(t.TempDir(), "usage.patch")
	require.NoError(t, os.WriteFile(patch, []byte(`It says something else.

--- a/golang.org/x/mod/gosumcheck/main.go
+++ b/golang.org/x/mod/gosumcheck/main.go
@@ -45,3 +45,3 @@
 func usage() {
-	fmt.Fprintf(os.Stderr, "usage: gosumcheck [-h H] [-k key] [-u url] [-v] go.sum...\n")
+	fmt.Fprintf(os.Stderr, "patched\n")
 	os.Exit(2)
`), 0o600))
	return patch
}

func requirePatched(t *testing.T, program string) {
	t.Helper()
	said, _ := exec.Command(program).CombinedOutput()
	require.Equal(t, "patched\n", string(said))
}

func readText(t *testing.T, path string) []byte {
	t.Helper()
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	return text
}
