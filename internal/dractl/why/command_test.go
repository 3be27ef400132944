package why

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"github.com/kwok-dra/kwok-dra/internal/dractl/cli"
	"github.com/kwok-dra/kwok-dra/internal/dractl/output"
	"github.com/kwok-dra/kwok-dra/internal/extensions/explaining/why"
)

func TestList(t *testing.T) {
	t.Parallel()
	var out, errOut strings.Builder
	c := &command{streams: cli.Streams{Out: &out, ErrOut: &errOut}, output: output.Flag{Format: output.JSON}}
	answer := why.Answer{Subject: why.Subject{Namespace: "default", Pod: "p"}, State: why.Unscheduled, Reason: "no node has the devices"}
	groups := []*why.Group{{Answer: answer, Pods: []string{"p"}}}
	require.NoError(t, c.listGroups(groups, time.Now()))
	var shown []struct {
		State why.State
		Pods  []string
	}
	require.NoError(t, json.Unmarshal([]byte(out.String()), &shown))
	require.Len(t, shown, 1)
	require.Equal(t, why.Unscheduled, shown[0].State)
	require.Equal(t, []string{"p"}, shown[0].Pods)

	out.Reset()
	c.output.Format = output.Table
	require.NoError(t, c.listGroups(groups, time.Now()))
	require.Equal(t, "Pod default/p waits for a node: no node has the devices\n", out.String())

	out.Reset()
	require.NoError(t, c.listGroups(nil, time.Now()))
	require.Empty(t, out.String())
	require.Equal(t, "no Pod waits for devices\n", errOut.String())
}

// TestInterrupted: what a search has found that was interrupted is not printed.
func TestInterrupted(t *testing.T) {
	t.Parallel()
	var out, errOut strings.Builder
	c := &command{streams: cli.Streams{Out: &out, ErrOut: &errOut}, output: output.Flag{Format: output.Table}}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	pod := &corev1.Pod{}
	require.ErrorIs(t, c.explainPods(ctx, why.NewCluster(nil, nil), pod, nil), context.Canceled)
	require.ErrorIs(t, c.explainPods(ctx, why.NewCluster(nil, nil), nil, []*corev1.Pod{pod}), context.Canceled)
	require.Empty(t, out.String()+errOut.String())
}
