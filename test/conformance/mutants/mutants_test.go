package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kwok-dra/kwok-dra/pkg/drajudge"
	"github.com/kwok-dra/kwok-dra/test/cluster/gomod"
)

// TestMutants: the eight patches say what they break, in statements that exist.
func TestMutants(t *testing.T) {
	t.Parallel()
	root, err := gomod.Root("github.com/kwok-dra/kwok-dra")
	require.NoError(t, err)
	mutants, err := readMutants(filepath.Join(root, patches), regexp.MustCompile(""))
	require.NoError(t, err)
	require.Len(t, mutants, 8)
	known := map[string]bool{}
	for _, statement := range drajudge.Statements() {
		known[statement.ID] = true
	}
	restarting := 0
	for _, m := range mutants {
		for _, id := range m.statements {
			require.True(t, known[id], "%s breaks %s, which is no statement", m.name, id)
		}
		if m.restarts {
			restarting++
		}
	}
	require.Equal(t, 1, restarting)
}

func TestPatchesThatAreOfNoUse(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	_, err := readMutants(folder, regexp.MustCompile(""))
	require.ErrorContains(t, err, "none matches")
	require.NoError(t, os.WriteFile(filepath.Join(folder, "a.patch"), []byte("--- a/x\n"), 0o600))
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
