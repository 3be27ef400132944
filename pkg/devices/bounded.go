package devices

import (
	"fmt"
	"maps"
	"math"
	"reflect"
	"strings"
	"text/template"

	"github.com/Masterminds/sprig/v3"
	"sigs.k8s.io/kwok/pkg/utils/gotpl"
	"sigs.k8s.io/yaml"
)

// extent is how large the result of a function may become, by its arguments: the
// values of numbers, and the weights of all else.
type extent func(arguments []float64) float64

func sum(arguments []float64) float64 {
	total := 0.0
	for _, argument := range arguments {
		total += argument
	}
	return total
}

func product(arguments []float64) float64 {
	total := 1.0
	for _, argument := range arguments {
		total *= max(1, argument)
	}
	return total
}

// times is the first argument times all the others.
func times(arguments []float64) float64 {
	if len(arguments) == 0 {
		return 0
	}
	return max(1, arguments[0]) * sum(arguments[1:])
}

// extents are those of the functions that make much of little. They are asked
// before they are called, since a single call could take all memory.
var extents = map[string]extent{
	"until": sum, "untilStep": sum, "seq": sum, "cat": sum, "quote": sum, "squote": sum, "toString": sum,
	"print": sum, "println": sum, "html": sum, "js": sum, "urlquery": sum,
	"merge": sum, "mergeOverwrite": sum, "mustMerge": sum, "mustMergeOverwrite": sum,
	"repeat": times, "indent": times, "nindent": times, "join": times, "printf": times,
	"replace": product, "wrapWith": product, "regexReplaceAll": product, "mustRegexReplaceAll": product,
	"regexReplaceAllLiteral": product, "mustRegexReplaceAllLiteral": product,
}

// functionsWithin are the functions, held to a budget.
func functionsWithin(b *budget) gotpl.FuncMap {
	known := sprig.TxtFuncMap()
	maps.Copy(known, map[string]any{
		"print": fmt.Sprint, "println": fmt.Sprintln, "printf": fmt.Sprintf,
		"html": template.HTMLEscaper, "js": template.JSEscaper, "urlquery": template.URLQueryEscaper,
	})
	within := maps.Clone(functions)
	for name, extent := range extents {
		within[name] = b.bound(known[name], extent)
	}
	within["tick"], within["weigh"], within["set"], within["YAML"] = b.tick, b.weigh, b.set, b.yaml
	within["derivePassword"] = func(...any) (string, error) { return "", errTooMuch }
	return within
}

// bound is a function that refuses to make more than the budget has.
func (b *budget) bound(function any, extent extent) any {
	f := reflect.ValueOf(function)
	kind := f.Type()
	var in []reflect.Type
	for argument := range kind.Ins() {
		in = append(in, argument)
	}
	out := []reflect.Type{kind.Out(0), reflect.TypeFor[error]()}
	return reflect.MakeFunc(reflect.FuncOf(in, out, kind.IsVariadic()), func(arguments []reflect.Value) []reflect.Value {
		results := []reflect.Value{reflect.Zero(out[0]), reflect.Zero(out[1])}
		err := b.allow(extent, arguments, kind.IsVariadic())
		if err == nil {
			copy(results, invoke(f, arguments))
			err = b.charge(results[0].Interface())
		}
		if err != nil {
			results[1] = reflect.ValueOf(err)
		}
		return results
	}).Interface()
}

func invoke(f reflect.Value, arguments []reflect.Value) []reflect.Value {
	if f.Type().IsVariadic() {
		return f.CallSlice(arguments)
	}
	return f.Call(arguments)
}

func (b *budget) allow(extent extent, arguments []reflect.Value, variadic bool) error {
	if last := len(arguments) - 1; variadic {
		rest := arguments[last]
		arguments = arguments[:last:last]
		for i := range rest.Len() {
			arguments = append(arguments, rest.Index(i))
		}
	}
	sizes := make([]float64, len(arguments))
	for i, argument := range arguments {
		sizes[i] = b.size(argument)
	}
	if extent(sizes) > float64(b.weight) {
		return errTooMuch
	}
	return nil
}

// size is the value of a number, and the weight of anything else.
func (b *budget) size(value reflect.Value) float64 {
	for value.IsValid() && value.Kind() == reflect.Interface {
		value = value.Elem()
	}
	switch {
	case !value.IsValid():
		return 0
	case value.CanInt():
		return math.Abs(float64(value.Int()))
	case value.CanUint():
		return float64(value.Uint())
	case value.CanFloat():
		return math.Abs(value.Float())
	case value.Kind() == reflect.String:
		return float64(value.Len())
	}
	left := lighten(b.weight, value, deepest)
	if left < 0 {
		return math.Inf(1)
	}
	return float64(b.weight - left)
}

// set stands in for sprig's set, and does not put a map into itself.
func (b *budget) set(object map[string]any, key string, value any) (map[string]any, error) {
	former, had := object[key]
	object[key] = value
	err := b.charge(object)
	if err == nil {
		return object, nil
	}
	delete(object, key)
	if had {
		object[key] = former
	}
	return nil, err
}

// yaml stands in for kwok's YAML.
func (b *budget) yaml(value any, indent ...int) (string, error) {
	if err := b.charge(value); err != nil {
		return "", err
	}
	encoded, err := yaml.Marshal(value)
	if err != nil {
		return "", fmt.Errorf("encode YAML: %w", err)
	}
	text := string(encoded)
	if len(indent) != 1 || indent[0] <= 0 {
		return text, nil
	}
	if 2*indent[0]*(1+strings.Count(text, "\n")) > b.weight {
		return "", errTooMuch
	}
	return strings.ReplaceAll("\n"+text, "\n", "\n"+strings.Repeat(" ", 2*indent[0])), nil
}
