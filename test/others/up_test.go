package main

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestUpIsForOneSuite(t *testing.T) {
	t.Parallel()
	require.ErrorContains(t, up(t.Context(), &runner{}, selection{name: "kueue"}, nil), "choose one with -suite, such as kueue-whole-device")
	require.ErrorContains(t, up(t.Context(), &runner{}, selection{name: "volcano"}, nil), "SRC=../volcano make test-others SUITE=volcano")
	require.ErrorContains(t, up(t.Context(), &runner{focus: "gang"}, selection{name: "volcano"}, nil), `read -focus "gang": -up runs no specs`)
	require.ErrorContains(t, up(t.Context(), &runner{without: "nodes"}, selection{name: "jobset"}, nil), `read -without "nodes": want devices or preparation`)
}

// A command has access to the cluster of the suite, and how it ends is told.
func TestRunCommand(t *testing.T) {
	t.Parallel()
	require.NoError(t, runCommand(t.Context(), []string{"sh", "-c", `test "$KUBECONFIG" = k`}, "k"))
	require.ErrorContains(t, runCommand(t.Context(), []string{"sh", "-c", "exit 3"}, "k"), "run sh: exit status 3")
}
