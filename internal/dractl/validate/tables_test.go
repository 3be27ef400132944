package validate

import (
	"errors"
	"io"
	"testing"

	"github.com/kwok-dra/kwok-dra/internal/dractl/cli"
	"github.com/kwok-dra/kwok-dra/internal/testing/tabletest"
)

// TestTables renders the problems of a file.
func TestTables(t *testing.T) {
	tabletest.Golden(t, map[string]func(out io.Writer) error{
		"printResult": func(out io.Writer) error {
			command := New(cli.Streams{Out: out, ErrOut: io.Discard}, nil)
			command.SilenceErrors, command.SilenceUsage = true, true
			command.SetArgs([]string{"-f", "../check/testdata/invalid.yaml"})
			err := command.Execute()
			if errors.Is(err, cli.ErrNegative) {
				return nil
			}
			return err
		},
	})
}
