package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kwok-dra/kwok-dra/internal/dractl/checkautoscaler"
	"github.com/kwok-dra/kwok-dra/pkg/drajudge"
	"github.com/kwok-dra/kwok-dra/test/cluster/gomod"
	"github.com/kwok-dra/kwok-dra/test/internal/karpenter"
	"github.com/kwok-dra/kwok-dra/test/internal/sidecar"
)

// TestMutants: the patches say what they break, in statements that exist, and for each of an autoscaler's there is one.
func TestMutants(t *testing.T) {
	t.Parallel()
	mutants, err := readMutants(filepath.Join(sidecar.Root(), patches), regexp.MustCompile(""))
	require.NoError(t, err)
	known := map[string][]drajudge.Statement{scheduler: drajudge.Statements(), karpenter.Component: checkautoscaler.Statements()}
	count, broken, restarting := map[string]int{}, map[string]bool{}, 0
	for _, m := range mutants {
		require.Contains(t, trials, m.program, m.name)
		count[m.program]++
		for _, id := range m.statements {
			require.True(t, slices.ContainsFunc(known[m.program], func(s drajudge.Statement) bool { return s.ID == id }), "%s breaks %s, which is no statement", m.name, id)
			broken[id] = true
		}
		if m.restarts {
			restarting++
		}
	}
	require.Equal(t, map[string]int{scheduler: 8, karpenter.Component: 7}, count)
	require.Equal(t, 1, restarting)
	for _, statement := range checkautoscaler.Statements() {
		require.True(t, broken[statement.ID], statement.ID)
	}
}

// TestPatchesApply: those of Karpenter are of the version that is tested. Building kube-scheduler tells it of its own.
func TestPatchesApply(t *testing.T) {
	t.Parallel()
	mutants, err := readMutants(filepath.Join(sidecar.Root(), patches), regexp.MustCompile("^karpenter/"))
	require.NoError(t, err)
	module, err := gomod.Download(t.Context(), filepath.Join(sidecar.Root(), "test", "karpenter"), "sigs.k8s.io/karpenter")
	require.NoError(t, err)
	for _, m := range mutants {
		apply := exec.CommandContext(t.Context(), "git", "apply", "--check", "-p3", m.patch)
		apply.Dir = module.Dir
		apply.Env = append(os.Environ(), "GIT_CEILING_DIRECTORIES="+filepath.Dir(module.Dir))
		out, err := apply.CombinedOutput()
		require.NoError(t, err, "%s: %s", m.name, out)
	}
}

func TestPatchesThatAreOfNoUse(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	_, err := readMutants(folder, regexp.MustCompile(""))
	require.ErrorContains(t, err, "none matches")
	require.NoError(t, os.Mkdir(filepath.Join(folder, scheduler), 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(folder, scheduler, "a.patch"), []byte("--- a/x\n"), 0o600))
	_, err = readMutants(folder, regexp.MustCompile(""))
	require.ErrorContains(t, err, "a.patch: begin it with a sentence")
}

// TestTable: a fault that was not found is an error.
func TestTable(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	found := outcome{mutant: &mutant{name: "one"}, seed: 7, statement: "device-once", seen: "device-once at version 3"}
	require.NoError(t, printTable(&out, []outcome{found, {mutant: &mutant{name: "two"}}}))
	require.Regexp(t, `one +in story 7 +0s +device-once at version 3\n`, out.String())
	require.Regexp(t, `two +not looked for`, out.String())
	err := printTable(&out, []outcome{found, {mutant: &mutant{name: "three"}, err: os.ErrNotExist}})
	require.EqualError(t, err, "not proven: three")
}
