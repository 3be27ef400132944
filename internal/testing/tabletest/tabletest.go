package tabletest

import (
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
)

var update = flag.Bool("update", false, "write testdata/tables anew")

// Dir is where the tables of a package are, each in a file with the name of the function that makes it.
const Dir = "testdata/tables"

// Names that are as long as they get.
const (
	Node    = "gpu-worker-pool-us-central1-a-h100-mega-8g-0123456789abcdef0"
	Driver  = "gpu.accelerators.infrastructure.example.com"
	Product = "NVIDIA H100 80GB HBM3 Tensor Core"
	Pod     = "llama-70b-pretraining-worker-0017"
	UUID    = "GPU-4a3b2c1d-0e9f-4877-a655-443322110000"
)

// Golden compares what functions print on terminals of 60, 80 and 160 columns, and in a pipe, with the
// files of the package. Lines fit, unless a word alone is wider, and words of names are whole.
func Golden(t *testing.T, tables map[string]func(out io.Writer) error, names ...string) {
	t.Helper()
	for function, show := range tables {
		var text strings.Builder
		for _, columns := range []int{60, 80, 160, 0} {
			t.Setenv("COLUMNS", fmt.Sprint(columns))
			var out strings.Builder
			require.NoError(t, show(&out), function)
			require.NotEmpty(t, out.String(), function)
			if columns == 0 {
				fmt.Fprintf(&text, "--- pipe\n%s", out.String())
				continue
			}
			fmt.Fprintf(&text, "--- %d columns\n%s", columns, out.String())
			requireFits(t, function, out.String(), columns)
			requireNames(t, function, text.String(), out.String(), names)
		}
		requireGolden(t, filepath.Join(Dir, function+".txt"), text.String())
	}
	files, err := os.ReadDir(Dir)
	require.NoError(t, err)
	for _, file := range files {
		require.Contains(t, tables, strings.TrimSuffix(file.Name(), ".txt"), "%s/%s is of no table", Dir, file.Name())
	}
}

func requireFits(t *testing.T, function, table string, columns int) {
	t.Helper()
	for line := range strings.Lines(table) {
		line = strings.TrimSuffix(line, "\n")
		isWord := !strings.Contains(strings.TrimSpace(line), " ")
		require.True(t, isWord || utf8.RuneCountInString(line) <= columns, "%s at %d columns: %s", function, columns, line)
	}
}

// requireNames requires the names that a narrower table has.
func requireNames(t *testing.T, function, narrower, table string, names []string) {
	t.Helper()
	for _, name := range names {
		if strings.Contains(narrower, name) {
			require.Contains(t, table, name, function)
		}
	}
}

func requireGolden(t *testing.T, path, got string) {
	t.Helper()
	if *update {
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
		require.NoError(t, os.WriteFile(path, []byte(got), 0o644))
	}
	want, err := os.ReadFile(path)
	require.NoError(t, err, "write it with go test -update")
	require.Equal(t, string(want), got, "%s: go test -update writes it anew", path)
}
