package devices

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"text/template"
	"text/template/parse"

	"github.com/kwok-dra/kwok-dra/pkg/lifecycle"
	"github.com/kwok-dra/kwok-dra/pkg/suggest"
)

// program is a Go template that is rendered within limits.
type program struct {
	tree *parse.Tree
	// calls are the names of the functions that it calls.
	calls []string
}

// newProgram makes a program of a template that has a name in errors. It has loops call each,
// and round, and once more for each comparison in them, and refuses what is not supported.
func newProgram(name, source string) (*program, error) {
	p := &program{tree: parse.New(name)}
	p.tree.Mode = parse.SkipFuncCheck
	trees := map[string]*parse.Tree{}
	if _, err := p.tree.Parse(source, "", "", trees); err != nil {
		return nil, errors.New("line " + strings.TrimPrefix(err.Error(), "template: "+name+":"))
	}
	if len(trees) != 1 || trees[name] != p.tree {
		return nil, errNamed
	}
	var unsupported error
	visit(p.tree.Root, func(node parse.Node) {
		switch n := node.(type) {
		case *parse.TemplateNode:
			unsupported = errNamed
		case *parse.IdentifierNode:
			unsupported = cmp.Or(unsupported, checkFunction(n.Ident))
			if !slices.Contains(p.calls, n.Ident) {
				p.calls = append(p.calls, n.Ident)
			}
		case *parse.RangeNode:
			n.Pipe.Cmds = append(n.Pipe.Cmds, callEach)
			steps := 1 + comparisons(n.List)
			n.List.Nodes = slices.Insert(n.List.Nodes, 0, slices.Repeat([]parse.Node{callRound}, steps)...)
		}
	})
	return p, unsupported
}

// rendering renders values for one object, within one budget.
type rendering struct {
	// node is nil where the values are for none, and pod where there is no driver Pod.
	node   *lifecycle.Object
	pod    func() (any, error)
	budget budget
	// templates are those of the programs that were rendered.
	templates map[*program]*template.Template
}

// newRendering is for that many values.
func newRendering(values int) *rendering {
	return &rendering{templates: map[*program]*template.Template{}, budget: budget{
		all:     renderBudget + min(float64(values)*budgetPerValue, mostPerValues),
		outputs: outputBudget + float64(values)*outputPerValue,
	}}
}

// value renders a program.
func (r *rendering) value(p *program, data any) (string, error) {
	made := r.templates[p]
	if made == nil {
		made, _ = template.New(p.tree.Name).Funcs(functionsWithin(&r.budget, p.calls)).AddParseTree(p.tree.Name, p.tree)
		r.templates[p] = made
	}
	r.budget.value = valueBudget
	r.budget.output.Reset()
	if err := made.Execute(&r.budget, data); err != nil {
		return "", err
	}
	text := r.budget.output.String()
	if strings.Contains(text, "\x00") {
		return "", errors.New("a value rendered a NUL character")
	}
	return text, nil
}

// asJSON is a value as templates see it: what its JSON says, with numbers as they
// are written.
func asJSON(value any) (any, error) {
	encoded, err := json.Marshal(value)
	if err != nil {
		return nil, fmt.Errorf("encode for templates: %w", err)
	}
	var decoded any
	decoder := json.NewDecoder(bytes.NewReader(encoded))
	decoder.UseNumber()
	if err := decoder.Decode(&decoded); err != nil {
		return nil, fmt.Errorf("decode for templates: %w", err)
	}
	return decoded, nil
}

// asData is what templates see of values by name.
func asData(values map[string]any) (map[string]any, error) {
	data := maps.Clone(values)
	for name, value := range values {
		if _, isNumber := value.(int); isNumber {
			continue
		}
		var err error
		if data[name], err = asJSON(value); err != nil {
			return nil, err
		}
	}
	return data, nil
}

var errNamed = errors.New("define, block and template are not supported")

// callEach calls each.
var callEach = &parse.CommandNode{NodeType: parse.NodeCommand, Args: []parse.Node{parse.NewIdentifier(each)}}

// callRound calls round.
var callRound parse.Node = &parse.ActionNode{NodeType: parse.NodeAction, Pipe: &parse.PipeNode{NodeType: parse.NodePipe, Cmds: []*parse.CommandNode{
	{NodeType: parse.NodeCommand, Args: []parse.Node{parse.NewIdentifier(round)}},
}}}

// comparisons counts those in the body of a loop.
func comparisons(body *parse.ListNode) (total int) {
	visit(body, func(node parse.Node) {
		if name, ok := node.(*parse.IdentifierNode); ok && compare.Has(name.Ident) {
			total++
		}
	})
	return total
}

// visit calls f for a node after all that it is made of.
func visit(node parse.Node, f func(parse.Node)) {
	switch n := node.(type) {
	case *parse.ListNode:
		if n == nil {
			return
		}
		for _, inner := range n.Nodes {
			visit(inner, f)
		}
	case *parse.ActionNode:
		visit(n.Pipe, f)
	case *parse.PipeNode:
		for _, command := range n.Cmds {
			for _, argument := range command.Args {
				visit(argument, f)
			}
		}
	case *parse.ChainNode:
		visit(n.Node, f)
	}
	if branch := branchOf(node); branch != nil {
		visit(branch.Pipe, f)
		visit(branch.List, f)
		visit(branch.ElseList, f)
	}
	f(node)
}

// branchOf is what if, with and range have in common, or nil for anything else.
func branchOf(node parse.Node) *parse.BranchNode {
	switch n := node.(type) {
	case *parse.IfNode:
		return &n.BranchNode
	case *parse.WithNode:
		return &n.BranchNode
	case *parse.RangeNode:
		return &n.BranchNode
	}
	return nil
}

// checkFunction refuses a function that templates may not call.
func checkFunction(name string) error {
	switch _, ok := functions[name]; {
	case ok:
		return nil
	case isUnstable.Has(name):
		return errUnstable
	case changesValues.Has(name):
		return fmt.Errorf("function %q is not supported, since values do not change; make a new one with dict, pick, omit or append", name)
	}
	if nearest := suggest.Nearest(name, supported); nearest != "" {
		return fmt.Errorf("function %q is not supported; did you mean %s?", name, nearest)
	}
	return fmt.Errorf("function %q is not supported; docs/reference/templates.md lists those that are", name)
}
