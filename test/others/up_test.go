package main

import (
	"io"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestUpIsForOneSuite(t *testing.T) {
	t.Parallel()
	require.ErrorContains(t, up(t.Context(), selection{name: "kueue"}, io.Discard), "choose one with -suite, such as kueue-whole-device")
	require.ErrorContains(t, up(t.Context(), selection{name: "volcano"}, io.Discard), "SRC=../volcano make test-others SUITE=volcano")
}
