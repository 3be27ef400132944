package plan

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestPlanCallsNobody: nothing in the package takes a function that returns an error, since
// such a function asks someone: a plan returns a Need instead. The linter keeps out clients.
func TestPlanCallsNobody(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("*.go")
	require.NoError(t, err)
	functions := 0
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, 0)
		require.NoError(t, err)
		ast.Inspect(file, func(n ast.Node) bool {
			switch node := n.(type) {
			case *ast.FuncDecl: // its own result may be an error
				functions++
				for _, field := range node.Type.Params.List {
					requireNoError(t, name, field.Type)
				}
			case *ast.StructType:
				for _, field := range node.Fields.List {
					requireNoError(t, name, field.Type)
				}
			}
			return true
		})
	}
	require.NotZero(t, functions)
}

// requireNoError fails if a type has a function that returns an error.
func requireNoError(t *testing.T, file string, kind ast.Expr) {
	t.Helper()
	ast.Inspect(kind, func(n ast.Node) bool {
		if f, ok := n.(*ast.FuncType); ok && f.Results != nil {
			for _, result := range f.Results.List {
				name, isName := result.Type.(*ast.Ident)
				require.False(t, isName && name.Name == "error", "%s: a function that returns an error is passed in", file)
			}
		}
		return true
	})
}
