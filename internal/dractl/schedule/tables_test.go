package schedule

import (
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/kwok-dra/kwok-dra/internal/dractl/cli"
	"github.com/kwok-dra/kwok-dra/internal/testing/tabletest"
)

// TestTables renders each table of the package.
func TestTables(t *testing.T) {
	prints := func(part int, arguments ...string) func(out io.Writer) error {
		return func(out io.Writer) error {
			text, _, err := run(t, "", append(files("templates.yaml", "classes.yaml", "pods.yaml"), arguments...)...)
			if err != nil && !errors.Is(err, cli.ErrNegative) {
				return err
			}
			table, blocks, _ := strings.Cut(text, "\n\n")
			_, err = io.WriteString(out, []string{table + "\n", blocks}[part])
			return err
		}
	}
	tabletest.Golden(t, map[string]func(out io.Writer) error{
		"printPlacements":      prints(0, "--nodes", "1"),
		"printPlacements-wide": prints(0, "--nodes", "1", "-o", "wide"),
		"countFitting":         prints(0, "--nodes", "2", "--how-many"),
		"printBlocks":          prints(1, "--nodes", "2", "--how-many"),
	})
}
