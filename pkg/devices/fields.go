package devices

import (
	"cmp"
	"encoding"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"text/template/parse"

	corev1 "k8s.io/api/core/v1"

	"github.com/kwok-dra/kwok-dra/pkg/suggest"
)

// checkFields says what is wrong with a template that reads a field which what it is
// given never has, such as .Indx or .Node.metadata.labls. The types of the sample say
// which fields there are. Keys of labels, annotations and other maps are the node's own,
// so every key is fine. What has no known type, such as the result of a function,
// is not checked.
func checkFields(sample map[string]any, tree *parse.Tree) (problem string) {
	given := kind{fields: map[string]reflect.Type{}}
	for name, value := range sample {
		given.fields[name] = reflect.TypeOf(value)
	}
	r := &reader{assigned: map[string]bool{}}
	visit(tree.Root, func(node parse.Node) {
		if pipe, ok := node.(*parse.PipeNode); ok && pipe.IsAssign {
			for _, variable := range pipe.Decl {
				r.assigned[variable.Ident[0]] = true
			}
		}
	})
	r.list(tree.Root, given, map[string]kind{"$": given})
	return r.problem
}

// kind is what is known of a value: its type, or, of what a template is given,
// the fields. It is empty where nothing is known.
type kind struct {
	typ    reflect.Type
	fields map[string]reflect.Type
	// name is how a template reads the value, where it can be told.
	name string
	// keyed tells that it is what a map has for a key.
	keyed bool
}

// reader goes through a template and stops at the first field that cannot be.
type reader struct {
	// assigned are the variables whose value changes; nothing is known of them.
	assigned map[string]bool
	problem  string
}

// list goes through nodes that see dot. Variables that they declare end with them.
func (r *reader) list(list *parse.ListNode, dot kind, variables map[string]kind) {
	if list == nil {
		return
	}
	variables = maps.Clone(variables)
	for _, node := range list.Nodes {
		if action, ok := node.(*parse.ActionNode); ok {
			r.declare(action.Pipe, r.pipe(action.Pipe, dot, variables), variables)
		}
		if branch := branchOf(node); branch != nil {
			r.branch(branch, dot, variables)
		}
	}
}

func (r *reader) branch(branch *parse.BranchNode, dot kind, variables map[string]kind) {
	inner, inside := maps.Clone(variables), dot
	value := r.pipe(branch.Pipe, dot, inner)
	if branch.NodeType == parse.NodeRange {
		value = value.element()
	}
	if branch.NodeType != parse.NodeIf {
		inside = value
	}
	r.declare(branch.Pipe, value, inner)
	r.list(branch.List, inside, inner)
	r.list(branch.ElseList, dot, variables)
}

// declare declares the variables of a pipeline. Where a loop has two, the last is the
// element, and nothing is known of the first.
func (r *reader) declare(pipe *parse.PipeNode, value kind, variables map[string]kind) {
	for i, variable := range pipe.Decl {
		name := variable.Ident[0]
		variables[name] = kind{}
		if i == len(pipe.Decl)-1 && !r.assigned[name] {
			variables[name] = value
		}
	}
}

// pipe checks a pipeline. Only the value of one without functions is known.
func (r *reader) pipe(pipe *parse.PipeNode, dot kind, variables map[string]kind) kind {
	var value kind
	commands := pipe.Cmds
	if last := len(commands) - 1; commands[last] == callEach {
		commands = commands[:last]
	}
	for _, command := range commands {
		for _, argument := range command.Args {
			value = r.argument(argument, dot, variables)
		}
		if len(command.Args) > 1 || len(commands) > 1 {
			value = kind{}
		}
	}
	return value
}

func (r *reader) argument(node parse.Node, dot kind, variables map[string]kind) kind {
	switch n := node.(type) {
	case *parse.DotNode:
		return dot
	case *parse.FieldNode:
		return r.fields(dot, n.Ident)
	case *parse.VariableNode:
		return r.fields(variables[n.Ident[0]], n.Ident[1:])
	case *parse.ChainNode:
		return r.fields(r.argument(n.Node, dot, variables), n.Field)
	case *parse.PipeNode:
		return r.pipe(n, dot, variables)
	}
	return kind{}
}

// fields follows names from a value.
func (r *reader) fields(of kind, names []string) kind {
	for _, name := range names {
		var problem string
		of, problem = of.field(name)
		r.problem = cmp.Or(r.problem, problem)
	}
	return of
}

// field is the kind of a field, or why there is no such field.
func (k kind) field(name string) (kind, string) {
	fields, typ, read := k.fields, known(k.typ), k.name+"."+name
	if typ != nil && typ.Kind() == reflect.Struct {
		fields = map[string]reflect.Type{}
		addFields(fields, typ)
	}
	switch {
	case fields != nil:
		if typ, ok := fields[name]; ok {
			return kind{typ: typ, name: read}, ""
		}
		return kind{}, k.missing(name, slices.Sorted(maps.Keys(fields)))
	case typ == nil:
		return kind{}, ""
	case typ.Kind() == reflect.Map:
		return kind{typ: typ.Elem(), name: read, keyed: true}, ""
	case typ.Kind() == reflect.Slice:
		return kind{}, fmt.Sprintf("%s is a list, which has no field %s; use range or index", k.name, name)
	case k.keyed:
		return kind{}, fmt.Sprintf("%s has no field %s; read a key with dots by index, for example {{ index .Node.metadata.labels %q }}", k.name, name, corev1.LabelTopologyZone)
	}
	return kind{}, fmt.Sprintf("%s has no field %s", k.name, name)
}

// missing says that there is no such field, and which may be meant.
func (k kind) missing(name string, fields []string) string {
	problem := fmt.Sprintf("there is no %s.%s here", k.name, name)
	if nearest := suggest.Nearest(name, fields); nearest != "" {
		return fmt.Sprintf("%s; did you mean %s.%s?", problem, k.name, nearest)
	}
	for i := range fields {
		fields[i] = k.name + "." + fields[i]
	}
	return fmt.Sprintf("%s; there is %s", problem, listed(fields))
}

// element is the kind of what range yields.
func (k kind) element() kind {
	typ := known(k.typ)
	if typ == nil || typ.Kind() != reflect.Slice && typ.Kind() != reflect.Map {
		return kind{}
	}
	return kind{typ: typ.Elem(), name: k.name + "[]"}
}

var ownEncodings = []reflect.Type{reflect.TypeFor[json.Marshaler](), reflect.TypeFor[encoding.TextMarshaler]()}

// known is a type without pointers, or nil where it does not say which fields
// there are in JSON.
func known(typ reflect.Type) reflect.Type {
	for typ != nil && typ.Kind() == reflect.Pointer {
		typ = typ.Elem()
	}
	if typ == nil || typ.Kind() == reflect.Interface || slices.ContainsFunc(ownEncodings, reflect.PointerTo(typ).Implements) {
		return nil
	}
	return typ
}

// addFields adds the fields of a struct by their names in JSON.
func addFields(fields map[string]reflect.Type, typ reflect.Type) {
	for f := range typ.Fields() {
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		switch {
		case name == "" && f.Anonymous, options == "inline":
			addFields(fields, known(f.Type))
		case name != "" && name != "-":
			fields[name] = f.Type
		}
	}
}
