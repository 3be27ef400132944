package diff

import (
	"io"
	"testing"

	"github.com/kwok-dra/kwok-dra/internal/dractl/cli"
	"github.com/kwok-dra/kwok-dra/internal/dractl/output"
	"github.com/kwok-dra/kwok-dra/internal/testing/tabletest"
)

// TestTables renders each table of the package.
func TestTables(t *testing.T) {
	changes := []change{
		{Action: create, Name: tabletest.Node + "-x7k2p", Node: tabletest.Node, Driver: tabletest.Driver, Pool: tabletest.Node},
		{Action: remove, Name: "a-x7k2p", Node: "a", Driver: "gpu.example.com", Pool: "a"},
	}
	tabletest.Golden(t, map[string]func(out io.Writer) error{
		"printChanges": func(out io.Writer) error {
			c := &command{streams: cli.Streams{Out: out}, output: output.Flag{Format: output.Table}}
			return c.printChanges(changes)
		},
	}, tabletest.Node, tabletest.Driver)
}
