package e2e

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kwok-dra/kwok-dra/test/internal/sidecar"
)

// TestKubeletSpecsAreCovered compares kubelet-specs.md with the tests: each spec
// has a row, with tests that exist or a reason.
func TestKubeletSpecsAreCovered(t *testing.T) {
	t.Parallel()
	document, err := os.ReadFile("kubelet-specs.md")
	require.NoError(t, err)
	rows := regexp.MustCompile(`(?m)^\| (\d+) \| (.+) \| (.+) \|$`).FindAllStringSubmatch(string(document), -1)
	require.Len(t, rows, 36)
	named := regexp.MustCompile("`(Test[^`]+)`")
	tests := testNames(t)
	for i, row := range rows {
		require.Equal(t, strconv.Itoa(i+1), row[1])
		covered := row[3]
		if reason, hidden := strings.CutPrefix(covered, "not visible through the API: "); hidden {
			require.NotEmpty(t, reason)
			continue
		}
		names := named.FindAllStringSubmatch(covered, -1)
		require.NotEmpty(t, names, row[0])
		for _, name := range names {
			require.Contains(t, tests, name[1], row[0])
		}
	}
}

// testNames lists the tests below this folder, of the Stages and of claims, with the
// subtests that are named in a map.
func testNames(t *testing.T) []string {
	t.Helper()
	var names []string
	for _, folder := range []string{"test/e2e/*", "stages", "internal/claims"} {
		files, err := filepath.Glob(filepath.Join(sidecar.Root(), folder, "*_test.go"))
		require.NoError(t, err)
		for _, file := range files {
			parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
			require.NoError(t, err)
			names = append(names, namesIn(parsed)...)
		}
	}
	return names
}

func namesIn(file *ast.File) []string {
	var names []string
	for _, declaration := range file.Decls {
		function, ok := declaration.(*ast.FuncDecl)
		if !ok || !strings.HasPrefix(function.Name.Name, "Test") {
			continue
		}
		names = append(names, function.Name.Name)
		ast.Inspect(function, func(node ast.Node) bool {
			if pair, ok := node.(*ast.KeyValueExpr); ok {
				if key, ok := pair.Key.(*ast.BasicLit); ok && key.Kind == token.STRING {
					names = append(names, function.Name.Name+"/"+strings.Trim(key.Value, `"`))
				}
			}
			return true
		})
	}
	return names
}
