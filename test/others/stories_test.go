package main

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kwok-dra/kwok-dra/test/others/report"
)

func TestStories(t *testing.T) {
	stories := []story{
		{name: "a gang fits", run: func(context.Context, *world) error { return nil }},
		{name: "a gang waits", run: func(context.Context, *world) error { return errors.New("wait for Pod: it runs") }},
		{name: "a quota", run: func(context.Context, *world) error { panic("not asked for") }},
	}
	log := filepath.Join(t.TempDir(), "log")

	specs, err := (&runner{focus: "gang"}).tell(t.Context(), nil, stories, log)

	require.NoError(t, err)
	require.Equal(t, []report.Spec{
		{Name: "a gang fits", Result: report.Passed},
		{Name: "a gang waits", Result: report.Failed, Message: "wait for Pod: it runs"},
		{Name: "a quota", Result: report.LeftOut},
	}, specs)
	said, err := os.ReadFile(log)
	require.NoError(t, err)
	require.Contains(t, string(said), "a gang waits: failed in 0.0 s wait for Pod: it runs\n")
	_, err = (&runner{focus: "("}).tell(t.Context(), nil, stories, log)
	require.ErrorContains(t, err, "read focus")
}
