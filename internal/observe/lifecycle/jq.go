package lifecycle

import (
	"cmp"
	"errors"
	"fmt"
	"reflect"
	"regexp/syntax"
	"slices"
	"strconv"
	"strings"

	"github.com/itchyny/gojq"
)

// Selectors that kwok-dra evaluates are in a subset of jq, and those of Stages, which kwok evaluates,
// in any jq. There are two because gojq bounds nothing but steps: in full jq one step of
// "x" * 500000000 takes half a gigabyte of the process that serves all Nodes, while kwok accepts such
// a Stage, so that a check of Stages must accept it too.
//
// A selector of the subset may read, compare and test, and collect what it has read. That takes some
// bytes for each step, so the limit of steps also limits memory. What takes long in one step is
// replaced by more steps.
const (
	// maxJQLength limits an expression, in bytes.
	maxJQLength = 10_000
	// MaxPatternSize limits a regular expression, in instructions. It also holds in templates.
	MaxPatternSize = 1_000
)

// jqFunctions are the functions that selectors may call.
var jqFunctions = []string{
	"all", "any", "arrays", "booleans", "contains", "empty", "endswith", "first", "has", "isempty", "iterables",
	"last", "length", "map", "not", "nulls", "numbers", "objects", "scalars", "select", "startswith", "strings",
	"test", "to_entries", "tonumber", "type", "values",
}

// jqPrelude stands before each expression. It refuses texts too long for numbers. It makes a regular
// expression take steps by the length of the text and its own size, and to_entries and comparisons
// take some for each part of a value.
const jqPrelude = `def _tonumber: tonumber;
def tonumber: if type == "string" and length > 100 then error("no number") else _tonumber end;
def _rounds(size): (utf8bytelength * size / 2500 | floor) as $n | reduce range($n) as $_ (.; .);
def _test(re; size; short): if utf8bytelength > short then _rounds(size) else . end | _match(re; null; true);
def _test(re; flags; size; short): if utf8bytelength > short then _rounds(size) else . end | _match(re; flags; true);
def _to_entries: if type == "object" then reduce .[] as $_ (.; .) else . end | to_entries;
def _compared: if type == "object" or type == "array" then reduce .. as $_ (.; .) else . end;
`

// boundJQ refuses an expression that may make large values, and replaces what takes long in one step.
func boundJQ(source string) (string, error) {
	if len(source) > maxJQLength {
		return "", fmt.Errorf("is longer than %d characters", maxJQLength)
	}
	query, err := gojq.Parse(source)
	if err != nil {
		return "", fmt.Errorf("does not compile: %w", err)
	}
	c := &jqChecker{}
	c.walkNodes(reflect.ValueOf(query))
	if c.makesValues && c.comparesValues {
		c.refusal = cmp.Or(c.refusal, "a comparison of two values that are read does not go with lists and objects that are made; compare with a literal")
	}
	if c.refusal != "" {
		return "", errors.New(c.refusal)
	}
	return jqPrelude + query.String(), nil
}

// jqChecker walks an expression, keeps the first reason to refuse it, and replaces what takes long.
type jqChecker struct {
	refusal string
	// makesValues is true for an expression that makes lists or objects. Each may hold the same
	// value many times, so comparing two of them may take for ever.
	makesValues bool
	// comparesValues is true for an expression that compares without a literal.
	comparesValues bool
}

// walkNodes checks all nodes of an expression.
func (c *jqChecker) walkNodes(value reflect.Value) {
	switch value.Kind() {
	case reflect.Pointer:
		if !value.IsNil() && value.Interface() != compared {
			c.refusal = cmp.Or(c.refusal, c.checkNode(value.Interface()))
			c.walkNodes(value.Elem())
		}
	case reflect.Struct:
		for _, part := range value.Fields() {
			c.walkNodes(part)
		}
	case reflect.Slice:
		for i := range value.Len() {
			c.walkNodes(value.Index(i))
		}
	}
}

// checkNode returns the reason to refuse a node, or "".
func (c *jqChecker) checkNode(node any) string {
	switch n := node.(type) {
	case *gojq.Query:
		return c.checkOperator(n)
	case *gojq.Func:
		return c.checkFunction(n)
	case *gojq.Array, *gojq.Object, *gojq.Reduce, *gojq.Foreach:
		c.makesValues = true
	case *gojq.FuncDef:
		return "def is not supported"
	case *gojq.Import:
		return "import and include are not supported"
	case *gojq.Term:
		if n.Format != "" {
			return n.Format + " is not supported; compare the value itself"
		}
	case *gojq.String:
		if len(n.Queries) > 0 {
			return `strings with \( ) are not supported; compare the parts`
		}
	case *gojq.Index:
		if n.IsSlice {
			return "slices are not supported; use startswith, endswith or test"
		}
	}
	return ""
}

// compared calls _compared.
var compared = &gojq.Query{Term: &gojq.Term{Type: gojq.TermTypeFunc, Func: &gojq.Func{Name: "_compared"}}}

func (c *jqChecker) checkOperator(q *gojq.Query) string {
	switch q.Op {
	case 0, gojq.OpPipe, gojq.OpComma, gojq.OpAnd, gojq.OpOr, gojq.OpAlt:
	case gojq.OpEq, gojq.OpNe, gojq.OpGt, gojq.OpLt, gojq.OpGe, gojq.OpLe:
		if isLiteral(q.Left) || isLiteral(q.Right) {
			break
		}
		c.comparesValues = true
		for _, side := range []**gojq.Query{&q.Left, &q.Right} {
			*side = &gojq.Query{Term: &gojq.Term{Type: gojq.TermTypeQuery, Query: &gojq.Query{Left: *side, Op: gojq.OpPipe, Right: compared}}}
		}
	case gojq.OpAdd, gojq.OpSub, gojq.OpDiv, gojq.OpMod:
		if !isNumber(q.Left) && !isNumber(q.Right) {
			return fmt.Sprintf("%s is supported with a literal number only, as in length %s 1", q.Op, q.Op)
		}
	default:
		return fmt.Sprintf("%s is not supported; a selector reads and compares", q.Op)
	}
	return ""
}

func (c *jqChecker) checkFunction(f *gojq.Func) string {
	if !strings.HasPrefix(f.Name, "$") && !slices.Contains(jqFunctions, f.Name) {
		return fmt.Sprintf("function %s is not supported; there are %s", f.Name, strings.Join(jqFunctions, ", "))
	}
	switch f.Name {
	case "map":
		c.makesValues = true
	case "to_entries":
		c.makesValues = true
		f.Name = "_to_entries"
	case "contains", "test":
		for _, argument := range f.Args { // else each value might give another regular expression, of any size
			if argument.Term == nil || argument.Term.Type != gojq.TermTypeString {
				return f.Name + " is supported with a literal string only"
			}
		}
	}
	if f.Name != "test" || len(f.Args) == 0 {
		return ""
	}
	size := PatternSize(f.Args[0].Term.Str.Str)
	if size > MaxPatternSize {
		return fmt.Sprintf("the regular expression of test has %d instructions, and may have %d; make it shorter, or repeat less", size, MaxPatternSize)
	}
	f.Name = "_test"
	for _, number := range []int{size, 10_000 / max(1, size)} {
		f.Args = append(f.Args, &gojq.Query{Term: &gojq.Term{Type: gojq.TermTypeNumber, Number: strconv.Itoa(number)}})
	}
	return ""
}

// PatternSize is the number of instructions of a regular expression. It is 0 for an invalid one.
func PatternSize(pattern string) int {
	parsed, err := syntax.Parse(pattern, syntax.Perl)
	if err != nil {
		return 0
	}
	program, err := syntax.Compile(parsed.Simplify())
	if err != nil {
		return 0
	}
	return len(program.Inst)
}

// isLiteral reports whether a query is a literal value, or several.
func isLiteral(q *gojq.Query) bool {
	if q.Op == gojq.OpComma {
		return isLiteral(q.Left) && isLiteral(q.Right)
	}
	if q.Term == nil || len(q.Term.SuffixList) > 0 {
		return false
	}
	switch q.Term.Type {
	case gojq.TermTypeNull, gojq.TermTypeTrue, gojq.TermTypeFalse, gojq.TermTypeString:
		return true
	case gojq.TermTypeQuery:
		return isLiteral(q.Term.Query)
	}
	return isNumber(q)
}

func isNumber(q *gojq.Query) bool {
	if q.Term == nil || len(q.Term.SuffixList) > 0 {
		return false
	}
	return q.Term.Type == gojq.TermTypeNumber || q.Term.Type == gojq.TermTypeUnary && q.Term.Unary.Term.Type == gojq.TermTypeNumber
}
