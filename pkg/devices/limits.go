package devices

import (
	"errors"
	"fmt"
	"reflect"
	"strings"
	"sync"
	"text/template/parse"
	"time"

	"sigs.k8s.io/kwok/pkg/utils/gotpl"
)

// Limits of rendering, so that a template that never ends, or yields more than there
// is memory, neither delays nor harms anything else.
const (
	// renderSteps bounds the rounds of loops and the values of actions, and
	// renderWeight the bytes and elements of these; each is for one rendering, and
	// grows with the number of values that it is to yield.
	renderSteps, stepsPerValue   = 10_000, 100
	renderWeight, weightPerValue = 4 << 20, 4 << 10
	renderTime                   = 5 * time.Second
	// deepest is how deep maps and lists may be nested. A map may hold itself.
	deepest = 200
)

var errTooMuch = errors.New("takes too much time or memory: loops have too many rounds, or values are too large")

// budget is what is left for one rendering.
type budget struct {
	steps, weight int
	deadline      time.Time
}

func (b *budget) reset(values int) {
	b.steps, b.weight = renderSteps+values*stepsPerValue, renderWeight+values*weightPerValue
	b.deadline = time.Now().Add(renderTime)
}

// tick is called in each round of a loop.
func (b *budget) tick() (string, error) {
	b.steps--
	if b.steps < 0 || b.steps%256 == 0 && time.Now().After(b.deadline) {
		return "", errTooMuch
	}
	return "", nil
}

// weigh is called with the value of each action.
func (b *budget) weigh(value any) (any, error) {
	if _, err := b.tick(); err != nil {
		return nil, err
	}
	return value, b.charge(value)
}

func (b *budget) charge(values ...any) error {
	for _, value := range values {
		b.weight = lighten(b.weight, reflect.ValueOf(value), deepest)
	}
	if b.weight < 0 {
		return errTooMuch
	}
	return nil
}

// lighten takes the weight of a value off what is left, and stops below zero.
func lighten(left int, value reflect.Value, depth int) int {
	left--
	switch {
	case left < 0 || depth == 0:
		return -1
	case !value.IsValid():
		return left
	}
	switch value.Kind() {
	case reflect.String:
		return left - value.Len()
	case reflect.Interface, reflect.Pointer:
		return lighten(left, value.Elem(), depth)
	case reflect.Slice, reflect.Array:
		for i := 0; i < value.Len() && left >= 0; i++ {
			left = lighten(left, value.Index(i), depth-1)
		}
	case reflect.Map:
		for entries := value.MapRange(); left >= 0 && entries.Next(); {
			left = lighten(lighten(left, entries.Key(), depth-1), entries.Value(), depth-1)
		}
	}
	return left
}

// renderer is kwok's renderer with limits.
type renderer struct {
	// idle are renderers that nobody uses now. Each has a budget of its own.
	idle sync.Pool
	// guarded maps texts to what is rendered in their place.
	guarded sync.Map
}

type limited struct {
	gotpl.Renderer
	budget *budget
}

func newRenderer() *renderer {
	return &renderer{idle: sync.Pool{New: func() any {
		b := &budget{}
		return &limited{gotpl.NewRenderer(functionsWithin(b)), b}
	}}}
}

// toText renders a template that is to yield that many values.
func (r *renderer) toText(source string, values int, data map[string]any) ([]byte, error) {
	one := r.idle.Get().(*limited)
	defer r.idle.Put(one)
	one.budget.reset(values)
	return one.ToText(r.guard(source), data)
}

// guard makes a template call tick in each round of its loops, and weigh with the
// values of its actions. kwok's renderer refuses one that cannot be parsed.
func (r *renderer) guard(source string) string {
	if known, is := r.guarded.Load(source); is {
		return known.(string)
	}
	guarded, err := guard(source)
	if err != nil {
		guarded = source
	}
	r.guarded.Store(source, guarded)
	return guarded
}

const root = "root"

func guard(source string) (string, error) {
	trees := map[string]*parse.Tree{}
	tree := parse.New(root)
	tree.Mode = parse.SkipFuncCheck
	if _, err := tree.Parse(source, "", "", trees); err != nil {
		return "", fmt.Errorf("parse template: %w", err)
	}
	var text strings.Builder
	for name, tree := range trees {
		guardList(tree.Root)
		if name != root {
			fmt.Fprintf(&text, "{{define %q}}%s{{end}}", name, tree.Root)
		}
	}
	if main := trees[root]; main != nil {
		text.WriteString(main.Root.String())
	}
	return text.String(), nil
}

func guardList(list *parse.ListNode) {
	if list == nil {
		return
	}
	for _, node := range list.Nodes {
		switch n := node.(type) {
		case *parse.ActionNode:
			n.Pipe.Cmds = append(n.Pipe.Cmds, callOf("weigh"))
		case *parse.IfNode:
			guardBranch(&n.BranchNode)
		case *parse.WithNode:
			guardBranch(&n.BranchNode)
		case *parse.RangeNode:
			guardBranch(&n.BranchNode)
			round := &parse.ActionNode{NodeType: parse.NodeAction, Pipe: &parse.PipeNode{NodeType: parse.NodePipe, Cmds: []*parse.CommandNode{callOf("tick")}}}
			n.List.Nodes = append([]parse.Node{round}, n.List.Nodes...)
		}
	}
}

func guardBranch(branch *parse.BranchNode) {
	guardList(branch.List)
	guardList(branch.ElseList)
}

func callOf(function string) *parse.CommandNode {
	return &parse.CommandNode{NodeType: parse.NodeCommand, Args: []parse.Node{parse.NewIdentifier(function)}}
}
