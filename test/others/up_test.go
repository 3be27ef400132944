package main

import (
	"io"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestUpIsForOneSuite(t *testing.T) {
	t.Parallel()
	require.ErrorContains(t, up(t.Context(), &runner{}, selection{name: "kueue"}, io.Discard), "choose one with -suite, such as kueue-whole-device")
	require.ErrorContains(t, up(t.Context(), &runner{}, selection{name: "volcano"}, io.Discard), "SRC=../volcano make test-others SUITE=volcano")
	require.ErrorContains(t, up(t.Context(), &runner{focus: "gang"}, selection{name: "volcano"}, io.Discard), `read -focus "gang": -up runs no specs`)
	require.ErrorContains(t, up(t.Context(), &runner{without: "nodes"}, selection{name: "jobset"}, io.Discard), `read -without "nodes": want devices or preparation`)
}
