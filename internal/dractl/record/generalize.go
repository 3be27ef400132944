package record

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
)

// generalizer makes one value of those of several prepared devices: strings in it become
// templates.
type generalizer struct {
	symbols []symbol
	notes   []string
}

// bare is a template that yields a number or a bool, not a string.
type bare string

// generalizeValue makes one of what is at a path in all of them.
func (g *generalizer) generalizeValue(path string, values []any) any {
	switch first := values[0].(type) {
	case map[string]any:
		if !areAlike(values, func(v any) any { object, _ := v.(map[string]any); return slices.Sorted(maps.Keys(object)) }) {
			break
		}
		object := map[string]any{}
		for _, key := range slices.Sorted(maps.Keys(first)) {
			object[key] = g.generalizeValue(path+"."+key, mapValues(values, func(v any) any { return v.(map[string]any)[key] }))
		}
		return object
	case []any:
		if !areAlike(values, func(v any) any { list, _ := v.([]any); return len(list) }) {
			break
		}
		list := make([]any, len(first))
		for i := range first {
			list[i] = g.generalizeValue(fmt.Sprintf("%s[%d]", path, i), mapValues(values, func(v any) any { return v.([]any)[i] }))
		}
		return list
	case string:
		if areAlike(values, func(v any) any { _, ok := v.(string); return ok }) {
			return g.generalizeText(path, formatValues(values))
		}
	default:
		if expression := findWholeSymbol(g.symbols, path[strings.LastIndex(path, ".")+1:], formatValues(values)); expression != "" && values[0] != nil {
			return bare(actionBegin + expression + actionEnd)
		}
	}
	return g.keepFirst(path, values)
}

// generalizeText makes a template of texts.
func (g *generalizer) generalizeText(path string, all []string) string {
	if expression := findWholeSymbol(g.symbols, path[strings.LastIndex(path, ".")+1:], all); expression != "" {
		return actionBegin + expression + actionEnd
	}
	if !strings.Contains(all[0], "{{") {
		// Longer values are tried before those that they may contain.
		symbols := slices.Clone(g.symbols)
		slices.SortStableFunc(symbols, func(a, b symbol) int { return len(b.value) - len(a.value) })
		search := &alignment{all, symbols, map[string]bool{}}
		if made, ok := search.alignFrom(make([]int, len(all))); ok {
			return made
		}
	}
	kept := all[0]
	if slices.ContainsFunc(all, func(text string) bool { return text != kept }) {
		g.noteDifference(path, all)
	}
	return strings.ReplaceAll(kept, "{{", "{{ `{{` }}")
}

// keepFirst returns the first value, and adds a note if others differ.
func (g *generalizer) keepFirst(path string, values []any) any {
	if !areAlike(values, func(v any) any { return v }) {
		g.noteDifference(path, formatValues(values))
	}
	return escapeStrings(values[0])
}

func (g *generalizer) noteDifference(path string, all []string) {
	other := all[max(0, slices.IndexFunc(all, func(text string) bool { return text != all[0] }))]
	g.notes = append(g.notes, fmt.Sprintf("%s: %q and %q differ, and nothing that templates can read explains it: the first is kept", path, all[0], other))
}

// escapeStrings returns a value whose strings stand for themselves in a template.
func escapeStrings(value any) any {
	switch v := value.(type) {
	case string:
		return strings.ReplaceAll(v, "{{", "{{ `{{` }}")
	case []any:
		return mapValues(v, escapeStrings)
	case map[string]any:
		object := map[string]any{}
		for key, inner := range v {
			object[key] = escapeStrings(inner)
		}
		return object
	}
	return value
}

func mapValues(values []any, of func(any) any) []any {
	all := make([]any, len(values))
	for i := range values {
		all[i] = of(values[i])
	}
	return all
}

func formatValues(values []any) []string {
	all := make([]string, len(values))
	for i := range values {
		all[i] = fmt.Sprint(values[i])
	}
	return all
}

func areAlike(values []any, of func(any) any) bool {
	return !slices.ContainsFunc(values, func(v any) bool { return !reflect.DeepEqual(of(v), of(values[0])) })
}

// Marks around a template that yields no string, in the JSON of one.
const bareBegin, bareEnd = "\uE000", "\uE001"

// markBareTemplates turns such templates into marked strings, and reports whether there are any.
func markBareTemplates(value any) (any, bool) {
	found := false
	inner := func(v any) any {
		made, has := markBareTemplates(v)
		found = found || has
		return made
	}
	switch v := value.(type) {
	case bare:
		return bareBegin + string(v) + bareEnd, true
	case []any:
		list := mapValues(v, inner)
		return list, found
	case map[string]any:
		object := map[string]any{}
		for key := range v {
			object[key] = inner(v[key])
		}
		return object, found
	}
	return value, false
}

// encodeTemplate returns the JSON of data. With a template that yields no string, it is a JSON string that is
// the template of all the data.
func encodeTemplate(value any) ([]byte, error) {
	value, isTemplate := markBareTemplates(value)
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	if err := encoder.Encode(value); err != nil {
		return nil, err
	}
	if !isTemplate {
		return out.Bytes(), nil
	}
	return json.Marshal(strings.NewReplacer(`"`+bareBegin, "", bareEnd+`"`, "").Replace(out.String()))
}
