package devices

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"text/template"
	"text/template/parse"

	"github.com/kwok-dra/kwok-dra/pkg/suggest"
)

// program is Go templates that are rendered for the same objects, within limits.
type program struct {
	trees []*parse.Tree
	// idle are renderings that nobody uses now. Each has a budget of its own.
	idle sync.Pool
}

// rendering renders values for one object.
type rendering struct {
	budget    budget
	templates []*template.Template
}

// add adds a template under a name, and returns its number.
func (p *program) add(name, source string) (int, error) {
	tree, err := parseTemplate(name, source)
	if err != nil {
		return 0, err
	}
	p.trees = append(p.trees, tree)
	return len(p.trees) - 1, nil
}

// begin begins to render that many values for an object. The caller ends it.
func (p *program) begin(values int) *rendering {
	r, is := p.idle.Get().(*rendering)
	if !is {
		r = newRendering(p.trees)
	}
	r.budget.reset(values)
	return r
}

func (p *program) end(r *rendering) {
	r.budget.output.Reset()
	p.idle.Put(r)
}

func newRendering(trees []*parse.Tree) *rendering {
	r := &rendering{}
	functions := functionsWithin(&r.budget)
	for _, tree := range trees {
		made, _ := template.New(tree.Name).Funcs(functions).AddParseTree(tree.Name, tree)
		r.templates = append(r.templates, made)
	}
	return r
}

// value renders the template with the number.
func (r *rendering) value(number int, data any) (string, error) {
	r.budget.next()
	if err := r.templates[number].Execute(&r.budget, data); err != nil {
		return "", err
	}
	text := r.budget.output.String()
	if strings.Contains(text, "\x00") {
		return "", errNUL
	}
	return text, nil
}

// asJSON is a value as templates see it: what its JSON says, with numbers as they
// are written.
func asJSON(value any) (any, error) {
	encoded, is := value.(json.RawMessage)
	if !is {
		var err error
		if encoded, err = json.Marshal(value); err != nil {
			return nil, fmt.Errorf("encode for templates: %w", err)
		}
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
	data := map[string]any{}
	for name, value := range values {
		if number, is := value.(int); is {
			data[name] = number
			continue
		}
		decoded, err := asJSON(value)
		if err != nil {
			return nil, err
		}
		data[name] = decoded
	}
	return data, nil
}

var (
	errNamed = errors.New("define, block and template are not supported")
	errNUL   = errors.New("a value rendered a NUL character")
)

// parseTemplate parses a template, has its loops call round, and refuses what is
// not supported.
func parseTemplate(name, source string) (*parse.Tree, error) {
	trees := map[string]*parse.Tree{}
	tree := parse.New(name)
	tree.Mode = parse.SkipFuncCheck
	if _, err := tree.Parse(source, "", "", trees); err != nil {
		return nil, errors.New("line " + strings.TrimPrefix(err.Error(), "template: "+name+":"))
	}
	if len(trees) != 1 || trees[name] != tree {
		return nil, errNamed
	}
	var unsupported error
	visit(tree.Root, func(node parse.Node) {
		switch n := node.(type) {
		case *parse.TemplateNode:
			unsupported = errNamed
		case *parse.IdentifierNode:
			if unsupported == nil {
				unsupported = checkFunction(n.Ident)
			}
		case *parse.RangeNode:
			n.List.Nodes = append([]parse.Node{callRound}, n.List.Nodes...)
		}
	})
	return tree, unsupported
}

// callRound calls round.
var callRound = &parse.ActionNode{NodeType: parse.NodeAction, Pipe: &parse.PipeNode{NodeType: parse.NodePipe, Cmds: []*parse.CommandNode{
	{NodeType: parse.NodeCommand, Args: []parse.Node{parse.NewIdentifier(round)}},
}}}

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
	switch _, is := functions[name]; {
	case is:
		return nil
	case isUnstable[name]:
		return errUnstable
	case changesValues[name]:
		return fmt.Errorf("function %q is not supported, since values do not change; make a new one with dict, pick, omit or append", name)
	}
	if nearest := suggest.Nearest(name, supported); nearest != "" {
		return fmt.Errorf("function %q is not supported; did you mean %s?", name, nearest)
	}
	return fmt.Errorf("function %q is not supported; docs/reference/templates.md lists those that are", name)
}
