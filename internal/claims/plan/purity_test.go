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

// TestPlansCallNobody: no view has a function that can fail, as a read of the API server does, and no plan looks at the
// clock. What a plan lacks, it returns as a Need.
func TestPlansCallNobody(t *testing.T) {
	t.Parallel()
	sources, err := filepath.Glob("*.go")
	require.NoError(t, err)
	files := token.NewFileSet()
	functions := 0
	for _, source := range sources {
		if strings.HasSuffix(source, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(files, source, nil, 0)
		require.NoError(t, err)
		functions += requireCallsNobody(t, files, file)
	}
	require.Positive(t, functions, "PodClaims.Users is one")
}

// requireCallsNobody returns how many functions views have.
func requireCallsNobody(t *testing.T, files *token.FileSet, file *ast.File) (functions int) {
	t.Helper()
	ast.Inspect(file, func(node ast.Node) bool {
		switch node := node.(type) {
		case *ast.InterfaceType: // a Driver answers from what it was made of
			return false
		case *ast.Field:
			function, ok := node.Type.(*ast.FuncType)
			if !ok {
				return true
			}
			functions++
			for _, result := range function.Results.List {
				name, _ := result.Type.(*ast.Ident)
				require.False(t, name != nil && name.Name == "error", "%s: a plan gets a function that can fail", files.Position(node.Pos()))
			}
		case *ast.SelectorExpr:
			of, _ := node.X.(*ast.Ident)
			require.False(t, of != nil && of.Name == "time" && (node.Sel.Name == "Now" || node.Sel.Name == "Since"), "%s: a plan looks at the clock", files.Position(node.Pos()))
		}
		return true
	})
	return functions
}
