package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"
)

func passes(name string) part {
	return part{name: name, run: func(context.Context, io.Writer) error { return nil }}
}

func fails(name, message string) part {
	return part{name: name, run: func(_ context.Context, out io.Writer) error {
		fmt.Fprintln(out, message)
		return errors.New("exit status 1")
	}}
}

func TestAllPass(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	require.NoError(t, runAll(t.Context(), &out, []part{passes("a"), passes("b")}))
	require.Regexp(t, `(?s)^\[1/2\] a\n\[1/2\] a: done in .*\[2/2\] b: done in .*\nAll 2 parts passed in 0s\.\n$`, out.String())
}

func TestOthersRunAfterAFailure(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	err := runAll(t.Context(), &out, []part{fails("a", "--- FAIL: TestA"), passes("b"), fails("c", "--- FAIL: TestC")})
	require.EqualError(t, err, "failed: a, c")
	for _, want := range []string{"[1/3] a: failed after", "--- FAIL: TestA\na: exit status 1\n", "[2/3] b: done in", "--- FAIL: TestC", "1 of 3 parts passed in"} {
		require.Contains(t, out.String(), want)
	}
}

func TestNoProgramsNoClusters(t *testing.T) {
	t.Parallel()
	programs := fails("programs of a cluster", "no compiler")
	programs.reports = true
	onCluster := fails("test/e2e", "must not run")
	onCluster.needsCluster = true
	var out bytes.Buffer
	err := runAll(t.Context(), &out, []part{passes("a"), programs, onCluster, passes("b")})
	require.EqualError(t, err, "failed: programs of a cluster")
	require.Contains(t, out.String(), "Not run, since the programs of a cluster could not be made: test/e2e\n")
	require.Contains(t, out.String(), "2 of 4 parts passed in")
	require.NotContains(t, out.String(), "must not run")
}

func TestInterrupted(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	interrupted := part{name: "a", run: func(context.Context, io.Writer) error {
		cancel()
		return ctx.Err()
	}}
	err := runAll(ctx, io.Discard, []part{interrupted, fails("b", "must not run")})
	require.EqualError(t, err, "run a: interrupted")
}

func TestClassify(t *testing.T) {
	t.Parallel()
	got := classify("example.org/cmd fmt\n" +
		"example.org/a.test fmt example.org/a\n\n" +
		"example.org/b.test fmt " + clusterPrograms + "\n")
	require.Equal(t, packages{quick: []string{"example.org/a"}, onClusters: []string{"example.org/b"}}, got)
}

func TestOrder(t *testing.T) {
	t.Parallel()
	pkgs := []string{repository + "/test/e2e/prepare", repository + "/test/faults", repository + "/test/cluster", repository + "/test/e2ex"}
	sortSlowLast(pkgs)
	require.Equal(t, []string{repository + "/test/cluster", repository + "/test/e2ex", repository + "/test/e2e/prepare", repository + "/test/faults"}, pkgs)
}

// TestParts holds the parts against the packages that exist.
func TestParts(t *testing.T) {
	t.Parallel()
	all, err := parts(t.Context())
	require.NoError(t, err)
	require.Equal(t, "unit tests", all[0].name)
	names := map[string]part{}
	for _, p := range all {
		names[p.name] = p
	}
	require.Contains(t, names, "unit tests of test")
	require.False(t, names["unit tests of test"].needsCluster)
	require.True(t, names["test/faults"].needsCluster)
	require.True(t, names["test/cluster"].needsCluster)
	require.Len(t, matching(all, regexp.MustCompile("^test/faults$")), 1)
}

func TestModuleOf(t *testing.T) {
	t.Parallel()
	require.Equal(t, "/r/test/cluster", moduleOf("/r", "test/cluster/build"))
	require.Equal(t, "/r/test", moduleOf("/r", "test/e2e"))
	require.Equal(t, "/r", moduleOf("/r", "pkg/config"))
}
