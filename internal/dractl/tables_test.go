package dractl

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kwok-dra/kwok-dra/internal/testing/tabletest"
)

// TestTablesAreRendered: each function that makes a table, or prints text as wide as the terminal, has a file
// that shows it at several widths. The test of its package compares the file with what the function makes.
func TestTablesAreRendered(t *testing.T) {
	t.Parallel()
	seen := 0
	require.NoError(t, filepath.WalkDir(".", func(path string, _ fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
		if err != nil {
			return err
		}
		for _, declared := range file.Decls {
			function, ok := declared.(*ast.FuncDecl)
			if !ok || !printsForTerminals(function) {
				continue
			}
			seen++
			require.FileExists(t, filepath.Join(filepath.Dir(path), tabletest.Dir, function.Name.Name+".txt"), "add %s of %s to TestTables of its package", function.Name.Name, path)
		}
		return nil
	}))
	require.Greater(t, seen, 10)
}

// printsForTerminals reports whether a function has a literal of output.Rows, or calls output.Text.
func printsForTerminals(function *ast.FuncDecl) bool {
	prints := false
	isOfOutput := func(expression ast.Expr, name string) bool {
		selector, ok := expression.(*ast.SelectorExpr)
		return ok && fmt.Sprint(selector.X) == "output" && selector.Sel.Name == name
	}
	ast.Inspect(function, func(node ast.Node) bool {
		switch node := node.(type) {
		case *ast.CompositeLit:
			prints = prints || isOfOutput(node.Type, "Rows")
		case *ast.CallExpr:
			prints = prints || isOfOutput(node.Fun, "Text")
		}
		return true
	})
	return prints
}
