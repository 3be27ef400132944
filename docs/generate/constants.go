package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"strconv"
	"strings"
)

// constant is a constant and what its comment says.
type constant struct {
	name, value string
	// on is what the first sentence of the comment says that it is on, and meaning the
	// rest; with a comment of one sentence only meaning is there.
	on, meaning string
}

// events lists the events.
func events(root string) (string, error) {
	rows, err := constantRows(root, "pkg/api/v1alpha1/event.go", func(c constant) []string {
		return []string{code(c.value), strings.TrimPrefix(strings.TrimPrefix(c.on, "on a "), "on "), c.meaning}
	}, "Reason")
	return table([]string{"event", "on", "meaning"}, rows), err
}

// names lists the labels, annotations and conditions.
func names(root string) (string, error) {
	rows, err := constantRows(root, "pkg/api/v1alpha1/names.go", func(c constant) []string {
		if !strings.Contains(c.value, "/") {
			return nil // the value of a label, or a reason
		}
		return []string{code(c.value), strings.TrimPrefix(strings.TrimPrefix(c.on, "a "), "an "), c.meaning}
	}, "")
	return table([]string{"name", "is a", "meaning"}, rows), err
}

// templateConditions lists the conditions in the status of templates with their
// reasons.
func templateConditions(root string) (string, error) {
	rows, err := constantRows(root, "internal/status/plan.go", func(c constant) []string {
		return []string{c.on, code(c.value), c.meaning}
	}, "reason")
	return table([]string{"condition", "reason", "meaning"}, rows), err
}

// constantRows makes a row of each string constant of a file with a prefix.
func constantRows(root, file string, row func(constant) []string, prefix string) ([][]string, error) {
	all, err := constants(filepath.Join(root, file))
	var rows [][]string
	for _, c := range all {
		if !strings.HasPrefix(c.name, prefix) {
			continue
		}
		if c.meaning == "" {
			return nil, fmt.Errorf("%s: constant %s needs a comment that says what it means", file, c.name)
		}
		if cells := row(c); cells != nil {
			rows = append(rows, cells)
		}
	}
	return rows, err
}

// constants reads the string constants of a file.
func constants(file string) ([]constant, error) {
	parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ParseComments)
	if err != nil {
		return nil, fmt.Errorf("parse constants: %w", err)
	}
	var all []constant
	for _, declaration := range parsed.Decls {
		group, ok := declaration.(*ast.GenDecl)
		if !ok || group.Tok != token.CONST {
			continue
		}
		for _, spec := range group.Specs {
			if c, ok := constantOf(group, spec.(*ast.ValueSpec)); ok {
				all = append(all, c)
			}
		}
	}
	return all, nil
}

// constantOf is a constant, if it is a string.
func constantOf(group *ast.GenDecl, spec *ast.ValueSpec) (constant, bool) {
	if len(spec.Values) != 1 {
		return constant{}, false
	}
	value, ok := text(spec.Values[0])
	comment := spec.Doc
	if comment == nil && !group.Lparen.IsValid() {
		comment = group.Doc
	}
	c := constant{name: spec.Names[0].Name, value: value}
	first, rest, more := strings.Cut(strings.TrimPrefix(oneLine(comment.Text()), c.name+" is "), ". ")
	if c.on, c.meaning = first, rest; !more {
		c.on, c.meaning = "", first
	}
	return c, ok
}

// text is the value of an expression of strings. The only name in one is that of
// the API group.
func text(expression ast.Expr) (string, bool) {
	switch e := expression.(type) {
	case *ast.BasicLit:
		value, err := strconv.Unquote(e.Value)
		return value, err == nil && e.Kind == token.STRING
	case *ast.Ident:
		return groupName, e.Name == "GroupName"
	case *ast.BinaryExpr:
		left, isLeft := text(e.X)
		right, isRight := text(e.Y)
		return left + right, isLeft && isRight
	}
	return "", false
}
