package main

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/stretchr/testify/require"

	"github.com/kwok-dra/kwok-dra/test/cluster/gomod"
)

func root(t *testing.T) string {
	t.Helper()
	root, err := gomod.Root("github.com/kwok-dra/kwok-dra")
	require.NoError(t, err)
	return root
}

// TestMutants keeps the patches from rotting: each applies to the checkout, what it
// changes compiles, and the unit test that it names exists.
func TestMutants(t *testing.T) {
	t.Parallel()
	all, err := mutantsIn(filepath.Join(root(t), patches), "")
	require.NoError(t, err)
	dir := t.TempDir()
	copied, err := copyCheckout(t.Context(), root(t), dir)
	require.NoError(t, err)
	for _, m := range all {
		require.NoError(t, copied.putFault(t.Context(), m))
		require.NoError(t, copied.removeFault(t.Context(), m))
		require.True(t, hasTest(t, filepath.Join(dir, m.unit), m.test), "%s names %s, which %s does not have", m.name, m.test, m.unit)
	}
	for len(all) > 0 {
		all = buildTogether(t, copied, all)
	}
}

// buildTogether builds what those that can be in together change, since each build
// takes seconds, and returns the others.
func buildTogether(t *testing.T, copied checkout, all []mutant) (others []mutant) {
	t.Helper()
	var in []mutant
	var packages []string
	for _, m := range all {
		if copied.putFault(t.Context(), m) != nil {
			others = append(others, m)
			continue
		}
		in, packages = append(in, m), append(packages, m.packages...)
	}
	require.NoError(t, copied.buildPackages(t.Context(), packages...))
	for _, m := range slices.Backward(in) {
		require.NoError(t, copied.removeFault(t.Context(), m))
	}
	return others
}

func hasTest(t *testing.T, dir, name string) bool {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*_test.go"))
	require.NoError(t, err)
	for _, file := range files {
		content, err := os.ReadFile(file)
		require.NoError(t, err)
		if strings.Contains(string(content), "\nfunc "+name+"(") {
			return true
		}
	}
	return false
}

func TestPatchesThatAreOfNoUse(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	copied := checkout{dir}
	require.NoError(t, os.WriteFile(filepath.Join(dir, "go.mod"), []byte("module m\n"), 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "a.go"), []byte("package m\n"), 0o600))
	patch := func(name, text string) (mutant, error) {
		path := filepath.Join(dir, name+patchSuffix)
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
		return readMutant(path)
	}
	const about = "It breaks.\nUnit test: ./. TestA\n\n"
	_, err := patch("bare", "--- a/a.go\n")
	require.ErrorContains(t, err, `begin it with a sentence that says what the fault does, and a line "Unit test: PACKAGE TEST"`)
	_, err = patch("empty", about)
	require.ErrorContains(t, err, "it changes no file")

	found, err := patch("found", strings.TrimSuffix(about, "\n")+"Features: restore|copies\n\n--- a/a.go\n+++ b/a.go\n")
	require.NoError(t, err)
	require.Equal(t, []string{"-features", "restore|copies"}, found.arguments())

	m, err := patch("old", about+"--- a/a.go\n+++ b/a.go\n@@ -1 +1 @@\n-package other\n+package m // other\n")
	require.NoError(t, err)
	require.ErrorContains(t, copied.putFault(t.Context(), m), "old.patch no longer applies, make it anew from today's code")
	m, err = patch("broken", about+"--- a/a.go\n+++ b/a.go\n@@ -1 +1 @@\n-package m\n+package m; var a = b\n")
	require.NoError(t, err)
	require.Empty(t, m.arguments())
	require.NoError(t, copied.putFault(t.Context(), m))
	require.ErrorContains(t, copied.buildPackages(t.Context(), m.packages...), "undefined: b")

	_, err = mutantsIn(dir, "nothing")
	require.Error(t, err)
	_, err = mutantsIn(filepath.Join(root(t), patches), "nosuch")
	require.ErrorContains(t, err, `read -only "nosuch": no patch in `)
}

// said is what the suite says of seeds that run side by side.
const said = `=== NAME  TestSeeds/cluster-2
    seeds_test.go:89: seed 2: 70 operations, 100 changes, 12 reads, 30 writes, 9 faults, 1 sidecars, nothing else; right after 0.1 s; took 4.0 s
=== NAME  TestSeeds/cluster-1
    seeds_test.go:89: seed 1: 70 operations, 100 changes, 12 reads, 30 writes, 9 faults, 1 sidecars, kill; right after 0.0 s; took 4.0 s
    seeds_test.go:92: seed 1 failed; again: go test ./faults -run TestSeeds -seed 1
        30s after the last fault 2 things are wrong:
          pod s1-pod-4 on s1-node-2 is not told to start
          pod s1-pod-5 on s1-node-2 is not told to start
    seeds_test.go:92: seed 3 failed; again: go test ./faults -run TestSeeds -seed 3
        goroutines leak: 70, at the start 20
`

func TestListen(t *testing.T) {
	t.Parallel()
	l := listener{tell: func(verdict) {}}
	content := iotest.OneByteReader(strings.NewReader(said))
	for buffer := make([]byte, 16); ; {
		n, err := content.Read(buffer)
		_, _ = l.Write(buffer[:n])
		if err != nil {
			break
		}
	}
	require.Equal(t, verdict{ran: 2, seed: 1, rule: "pod s1-pod-4 on s1-node-2 is not told to start"}, l.verdict)
}

// TestTable: what survives and what could not be looked for are failures alike.
func TestTable(t *testing.T) {
	t.Parallel()
	outcomes := []outcome{
		{mutant: mutant{name: "found"}, verdict: verdict{ran: 3, seed: 3, rule: "pod p is not told to start"}},
		{mutant: mutant{name: "survivor"}, verdict: verdict{ran: 50}, err: errors.New("it survives 50 seeds")},
		{mutant: mutant{name: "broken"}, err: errors.New("broken.patch no longer compiles\nx.go:1")},
	}
	var out strings.Builder
	require.EqualError(t, printTable(&out, outcomes), "not proven: survivor, broken")
	require.Equal(t, `
MUTANT    FOUND       AFTER  BY
found     at seed 3   0s     pod p is not told to start
survivor  not proven  0s     it survives 50 seeds
broken    not proven  0s     broken.patch no longer compiles ...
`, out.String())
	require.NoError(t, printTable(&out, outcomes[:1]))
}
