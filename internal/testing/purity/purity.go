// Package purity holds packages of plans to what they promise: they call nobody.
package purity

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// RequirePlans fails if the package of the test is given a function that can fail, as a read of
// the API server can, or looks at the clock: a plan returns what it lacks as a Need. Methods of
// interfaces may fail: their answers come from what they were made of. The linter keeps out
// clients.
func RequirePlans(t *testing.T) {
	t.Helper()
	sources, err := filepath.Glob("*.go")
	require.NoError(t, err)
	files := token.NewFileSet()
	looked := 0
	for _, source := range sources {
		if strings.HasSuffix(source, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(files, source, nil, 0)
		require.NoError(t, err)
		looked++
		ast.Inspect(file, func(node ast.Node) bool {
			switch node := node.(type) {
			case *ast.InterfaceType:
				return false
			case *ast.Field: // of a struct or of parameters
				function, ok := node.Type.(*ast.FuncType)
				require.False(t, ok && canFail(function), "%s: a plan is given a function that can fail", files.Position(node.Pos()))
			case *ast.SelectorExpr:
				of, _ := node.X.(*ast.Ident)
				require.False(t, of != nil && of.Name == "time" && (node.Sel.Name == "Now" || node.Sel.Name == "Since"), "%s: a plan looks at the clock", files.Position(node.Pos()))
			}
			return true
		})
	}
	require.NotZero(t, looked)
}

func canFail(function *ast.FuncType) bool {
	if function.Results == nil {
		return false
	}
	for _, result := range function.Results.List {
		if name, ok := result.Type.(*ast.Ident); ok && name.Name == "error" {
			return true
		}
	}
	return false
}
