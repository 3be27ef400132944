package gotemplate

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"text/template/parse"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/kwok-dra/kwok-dra/internal/util/suggest"
	"github.com/kwok-dra/kwok-dra/pkg/api/v1alpha1"
)

// program is a parsed template whose loops call chargeRange and chargeRound.
type program struct {
	tree *parse.Tree
	// functions are the names of those that it calls, chargeRange and chargeRound among them.
	functions []string
}

// namedNotSupported refuses a template that has others in it.
const namedNotSupported = "is no valid template: define, block and template are not supported"

// Parse compiles the text, and refuses a template that is invalid or not supported. It adds the calls
// that charge for loops.
func (t *Text) Parse() field.ErrorList {
	if !v1alpha1.IsTemplate(t.Source) {
		return nil
	}
	name, trees := t.Path.String(), map[string]*parse.Tree{}
	p := &program{tree: parse.New(name)}
	p.tree.Mode = parse.SkipFuncCheck
	if _, err := p.tree.Parse(t.Source, "", "", trees); err != nil {
		return t.Refuse("is no valid template: line " + strings.TrimPrefix(err.Error(), "template: "+name+":"))
	}
	problem := ""
	if len(trees) != 1 || trees[name] != p.tree {
		problem = namedNotSupported
	}
	VisitNodes(p.tree.Root, func(node parse.Node) {
		switch n := node.(type) {
		case *parse.TemplateNode:
			problem = namedNotSupported
		case *parse.IdentifierNode:
			problem = cmp.Or(problem, checkFunction(n.Ident))
			p.functions = append(p.functions, n.Ident)
		case *parse.RangeNode:
			n.Pipe.Cmds = append(n.Pipe.Cmds, callChargeRange)
			steps := 1 // for the round, and for each comparison in its body
			VisitNodes(n.List, func(node parse.Node) {
				if name, ok := node.(*parse.IdentifierNode); ok && comparisons.Has(name.Ident) {
					steps++
				}
			})
			number := &parse.NumberNode{NodeType: parse.NodeNumber, IsInt: true, Int64: int64(steps), Text: strconv.Itoa(steps)}
			call := &parse.CommandNode{NodeType: parse.NodeCommand, Args: []parse.Node{parse.NewIdentifier(chargeRound), number}}
			pipe := &parse.PipeNode{NodeType: parse.NodePipe, Cmds: []*parse.CommandNode{call}}
			n.List.Nodes = slices.Insert(n.List.Nodes, 0, parse.Node(&parse.ActionNode{NodeType: parse.NodeAction, Pipe: pipe}))
			p.functions = append(p.functions, chargeRange, chargeRound)
		}
	})
	slices.Sort(p.functions)
	p.functions = slices.Compact(p.functions)
	t.program = p
	if problem != "" {
		return t.Refuse(problem)
	}
	return nil
}

var callChargeRange = &parse.CommandNode{NodeType: parse.NodeCommand, Args: []parse.Node{parse.NewIdentifier(chargeRange)}}

// VisitNodes visits a node after all that it is made of.
func VisitNodes(node parse.Node, visit func(parse.Node)) {
	switch n := node.(type) {
	case *parse.ListNode:
		if n == nil {
			return
		}
		for _, inner := range n.Nodes {
			VisitNodes(inner, visit)
		}
	case *parse.PipeNode:
		for _, command := range n.Cmds {
			for _, argument := range command.Args {
				VisitNodes(argument, visit)
			}
		}
	case *parse.ChainNode:
		VisitNodes(n.Node, visit)
	}
	if branch := BranchOf(node); branch != nil {
		VisitNodes(branch.Pipe, visit)
		VisitNodes(branch.List, visit)
		VisitNodes(branch.ElseList, visit)
	}
	visit(node)
}

// BranchOf returns what if, with and range have in common, and actions with them, which have a pipeline
// but no lists. It returns nil for other nodes.
func BranchOf(node parse.Node) *parse.BranchNode {
	switch n := node.(type) {
	case *parse.ActionNode:
		return &parse.BranchNode{NodeType: parse.NodeAction, Pipe: n.Pipe}
	case *parse.IfNode:
		return &n.BranchNode
	case *parse.WithNode:
		return &n.BranchNode
	case *parse.RangeNode:
		return &n.BranchNode
	}
	return nil
}

// checkFunction says why templates may not call a function, or returns "".
func checkFunction(name string) string {
	if _, isSupported := functionCosts[name]; isSupported {
		return ""
	}
	fix := "docs/reference/templates.md lists those that are"
	switch nearest := suggest.Nearest(name, functionNames); {
	case unstableFunctions.Has(name): // every reconciliation would rewrite every slice
		return "uses a function whose result differs from call to call; use uuid or values of .Node instead"
	case mutatingFunctions.Has(name):
		return fmt.Sprintf("is no valid template: function %q is not supported, since values do not change; make a new one with dict, pick, omit or append", name)
	case nearest != "":
		fix = "did you mean " + nearest + "?"
	}
	return fmt.Sprintf("is no valid template: function %q is not supported; %s", name, fix)
}
