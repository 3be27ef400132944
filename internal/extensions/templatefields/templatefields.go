package templatefields

import (
	"cmp"
	"encoding"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"text/template/parse"

	corev1 "k8s.io/api/core/v1"

	"github.com/kwok-dra/kwok-dra/internal/devices/gotemplate"
	"github.com/kwok-dra/kwok-dra/internal/util/strict"
	"github.com/kwok-dra/kwok-dra/internal/util/suggest"
)

func init() { gotemplate.RegisterCheck(checkFields) }

// checkFields describes a field that the template reads and that data like the sample never have,
// such as .Indx or .Node.metadata.labls, or returns "". The types of the sample say which fields
// there are. Labels, annotations and other maps may have any key. A value of unknown type, such as
// the result of a function, is not checked.
func checkFields(source string, sample map[string]any) (problem string) {
	tree := parse.New("template")
	tree.Mode = parse.SkipFuncCheck
	if _, err := tree.Parse(source, "", "", map[string]*parse.Tree{}); err != nil {
		return err.Error()
	}
	given := knownType{fields: map[string]reflect.Type{}}
	for name, value := range sample {
		given.fields[name] = reflect.TypeOf(value)
	}
	c := &fieldChecker{assigned: map[string]bool{}}
	gotemplate.VisitNodes(tree.Root, func(node parse.Node) {
		if pipe, ok := node.(*parse.PipeNode); ok && pipe.IsAssign {
			for _, variable := range pipe.Decl {
				c.assigned[variable.Ident[0]] = true
			}
		}
	})
	c.checkList(tree.Root, given, map[string]knownType{"$": given})
	return c.problem
}

// knownType is what the sample says of a value: its type, or the fields of the data. It is empty
// for a value of unknown type.
type knownType struct {
	typ    reflect.Type
	fields map[string]reflect.Type
	// name is how a template reads the value, if that is known.
	name string
	// isKeyed is true for a value of a map.
	isKeyed bool
}

// fieldChecker walks a template and keeps the first problem.
type fieldChecker struct {
	// assigned are the variables that are assigned to. Their types are unknown.
	assigned map[string]bool
	problem  string
}

// checkList checks nodes that see dot. Variables that they declare end with them.
func (c *fieldChecker) checkList(list *parse.ListNode, dot knownType, variables map[string]knownType) {
	if list == nil {
		return
	}
	variables = maps.Clone(variables)
	for _, node := range list.Nodes {
		branch := gotemplate.BranchOf(node)
		if branch == nil {
			continue
		}
		inner, inside := variables, dot
		if branch.NodeType != parse.NodeAction {
			inner = maps.Clone(variables)
		}
		value := c.checkPipeline(branch.Pipe, dot, inner)
		if branch.NodeType == parse.NodeRange {
			value = value.elementType()
		}
		if branch.NodeType != parse.NodeIf {
			inside = value
		}
		// The last of two variables of a loop is the element; the type of the first is unknown.
		for i, variable := range branch.Pipe.Decl {
			name := variable.Ident[0]
			inner[name] = knownType{}
			if i == len(branch.Pipe.Decl)-1 && !c.assigned[name] {
				inner[name] = value
			}
		}
		c.checkList(branch.List, inside, inner)
		c.checkList(branch.ElseList, dot, variables)
	}
}

// elementType is the type of the elements of a list or map. It is unknown for anything else.
func (t knownType) elementType() knownType {
	if typ := typeInJSON(t.typ); typ != nil && (typ.Kind() == reflect.Slice || typ.Kind() == reflect.Map) {
		return knownType{typ: typ.Elem(), name: t.name + "[]"}
	}
	return knownType{}
}

// checkPipeline returns the type of a pipeline. It is unknown if the pipeline calls functions.
func (c *fieldChecker) checkPipeline(pipe *parse.PipeNode, dot knownType, variables map[string]knownType) knownType {
	var value knownType
	for _, command := range pipe.Cmds {
		for _, argument := range command.Args {
			value = c.checkArgument(argument, dot, variables)
		}
		if len(command.Args) > 1 || len(pipe.Cmds) > 1 {
			value = knownType{}
		}
	}
	return value
}

func (c *fieldChecker) checkArgument(node parse.Node, dot knownType, variables map[string]knownType) knownType {
	switch n := node.(type) {
	case *parse.DotNode:
		return dot
	case *parse.FieldNode:
		return c.followFields(dot, n.Ident)
	case *parse.VariableNode:
		return c.followFields(variables[n.Ident[0]], n.Ident[1:])
	case *parse.ChainNode:
		return c.followFields(c.checkArgument(n.Node, dot, variables), n.Field)
	case *parse.PipeNode:
		return c.checkPipeline(n, dot, variables)
	}
	return knownType{}
}

// followFields returns the type that a chain of field names leads to. It is unknown beyond a field
// that does not exist.
func (c *fieldChecker) followFields(of knownType, names []string) knownType {
	for _, name := range names {
		owner, fields, typ, problem := of, of.fields, typeInJSON(of.typ), ""
		of = knownType{name: owner.name + "." + name}
		if typ != nil && typ.Kind() == reflect.Struct {
			_, fields = strict.JSONFields(typ)
		}
		fieldType, isField := fields[name]
		switch {
		case isField:
			of.typ = fieldType
		case fields != nil:
			others := slices.Sorted(maps.Keys(fields))
			if nearest := suggest.Nearest(name, others); nearest != "" {
				problem = fmt.Sprintf("there is no %s here; did you mean %s.%s?", of.name, owner.name, nearest)
				break
			}
			for i := range others {
				others[i] = owner.name + "." + others[i]
			}
			problem = fmt.Sprintf("there is no %s here; there is %s", of.name, gotemplate.ListSome(others))
		case typ == nil:
		case typ.Kind() == reflect.Map:
			of.typ, of.isKeyed = typ.Elem(), true
		case typ.Kind() == reflect.Slice:
			problem = fmt.Sprintf("%s is a list, which has no field %s; use range or index", owner.name, name)
		case owner.isKeyed:
			problem = fmt.Sprintf("%s has no field %s; read a key with dots by index, for example {{ index .Node.metadata.labels %q }}", owner.name, name, corev1.LabelTopologyZone)
		default:
			problem = fmt.Sprintf("%s has no field %s", owner.name, name)
		}
		c.problem = cmp.Or(c.problem, problem)
	}
	return of
}

var ownEncodings = []reflect.Type{reflect.TypeFor[json.Marshaler](), reflect.TypeFor[encoding.TextMarshaler]()}

// typeInJSON returns a type without pointers, or nil if it does not tell the fields in JSON.
func typeInJSON(typ reflect.Type) reflect.Type {
	for typ != nil && typ.Kind() == reflect.Pointer {
		typ = typ.Elem()
	}
	if typ == nil || typ.Kind() == reflect.Interface || slices.ContainsFunc(ownEncodings, reflect.PointerTo(typ).Implements) {
		return nil
	}
	return typ
}
