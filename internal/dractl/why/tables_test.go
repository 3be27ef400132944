package why

import (
	"io"
	"testing"
	"time"

	"github.com/kwok-dra/kwok-dra/internal/dractl/cli"
	"github.com/kwok-dra/kwok-dra/internal/dractl/output"
	"github.com/kwok-dra/kwok-dra/internal/extensions/explaining/why"
	"github.com/kwok-dra/kwok-dra/internal/testing/tabletest"
)

// TestTables renders an answer with all its lines.
func TestTables(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	answer := &why.Answer{
		Subject: why.Subject{Namespace: "default", Pod: tabletest.Pod}, State: why.Unscheduled, Since: new(now.Add(-5 * time.Minute)),
		Reason:   "all 8 devices of class gpu on 1 node are allocated (default/a 8); request gpus wants 4 on one node; nearest: node " + tabletest.Node + " lacks 4",
		Details:  []string{"node " + tabletest.Node + ": claim c, request gpus wants 4: devices 8, class gpu 8, free 0"},
		Evidence: why.Evidence{Scheduler: "0/1 nodes are available: 1 cannot allocate all claims."},
	}
	tabletest.Golden(t, map[string]func(out io.Writer) error{
		"printText": func(out io.Writer) error {
			c := &command{streams: cli.Streams{Out: out}, output: output.Flag{Format: output.Table}}
			return c.showAnswer(answer, now)
		},
	}, tabletest.Node, tabletest.Pod)
}
