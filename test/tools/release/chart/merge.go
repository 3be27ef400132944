package chart

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"
)

// variant is what something is where a condition of the chart's values holds.
type variant[T any] struct {
	condition string
	value     T
}

// missing stands for what an object does not have.
type missing struct{}

// mergeVariants writes the template of a value: what it is by default, and what it is
// instead, or besides, where the condition of a variant holds. Each place may differ
// in one variant only; lists may grow in several.
func mergeVariants(value any, variants []variant[any], indent int) (string, error) {
	differing := slices.DeleteFunc(slices.Clone(variants), func(v variant[any]) bool { return reflect.DeepEqual(v.value, value) })
	if len(differing) == 0 {
		return writeBlock(value, indent)
	}
	switch value := value.(type) {
	case map[string]any:
		if all, ok := variantsOfType[map[string]any](differing); ok {
			return mergeMaps(value, all, indent)
		}
	case []any:
		if all, ok := variantsOfType[[]any](differing); ok {
			return mergeLists(value, all, indent)
		}
	}
	return writeChoice(value, differing, indent)
}

// variantsOfType are the variants with values of a type, if all are of it.
func variantsOfType[T any](variants []variant[any]) ([]variant[T], bool) {
	var all []variant[T]
	for _, v := range variants {
		value, ok := v.value.(T)
		if !ok {
			return nil, false
		}
		all = append(all, variant[T]{v.condition, value})
	}
	return all, true
}

// writeChoice writes the one value or the other, of which one may be missing.
func writeChoice(value any, differing []variant[any], indent int) (string, error) {
	if len(differing) > 1 {
		return "", fmt.Errorf("differs for both %s and %s", differing[0].condition, differing[1].condition)
	}
	instead, err := writeBlock(differing[0].value, indent)
	if err != nil {
		return "", err
	}
	usual, err := writeBlock(value, indent)
	switch condition := differing[0].condition; {
	case usual == "":
		return "{{- if " + condition + " }}\n" + instead + "{{- end }}\n", err
	case instead == "":
		return "{{- if not (" + condition + ") }}\n" + usual + "{{- end }}\n", err
	default:
		return "{{- if " + condition + " }}\n" + instead + "{{- else }}\n" + usual + "{{- end }}\n", err
	}
}

// mergeMaps writes the keys of all in the order of the alphabet.
func mergeMaps(value map[string]any, variants []variant[map[string]any], indent int) (string, error) {
	keys := slices.Collect(maps.Keys(value))
	for _, v := range variants {
		keys = slices.AppendSeq(keys, maps.Keys(v.value))
	}
	slices.Sort(keys)
	var all strings.Builder
	for _, key := range slices.Compact(keys) {
		var below []variant[any]
		for _, v := range variants {
			below = append(below, variant[any]{v.condition, fieldOf(v.value, key)})
		}
		text, err := mergeField(key, fieldOf(value, key), below, indent)
		if err != nil {
			return "", fmt.Errorf("field %s: %w", key, err)
		}
		all.WriteString(text)
	}
	return all.String(), nil
}

// fieldOf is a field with its key, or missing.
func fieldOf(object map[string]any, key string) any {
	value, has := object[key]
	if !has {
		return missing{}
	}
	return map[string]any{key: value}
}

// mergeField goes into a field that all have, and chooses otherwise.
func mergeField(key string, value any, variants []variant[any], indent int) (string, error) {
	var below []variant[any]
	for _, v := range append(variants, variant[any]{"", value}) {
		with, has := v.value.(map[string]any)
		if !has || !isComposite(with[key]) {
			differing := slices.DeleteFunc(variants, func(v variant[any]) bool { return reflect.DeepEqual(v.value, value) })
			if len(differing) == 0 {
				return writeBlock(value, indent)
			}
			if lists, ok := listsOf(key, append(differing, variant[any]{"", value})); ok && len(lists) > 2 && len(lists[len(lists)-1].value) == 0 {
				return newList(key, lists[:len(lists)-1], indent)
			}
			return writeChoice(value, differing, indent)
		}
		below = append(below, variant[any]{v.condition, with[key]})
	}
	last := len(below) - 1
	text, err := mergeVariants(below[last].value, below[:last], indent+2)
	return strings.Repeat(" ", indent) + key + ":\n" + text, err
}

// listsOf are the lists that variants have in a field, if all have one.
func listsOf(key string, variants []variant[any]) ([]variant[[]any], bool) {
	var fields []variant[any]
	for _, v := range variants {
		with, has := v.value.(map[string]any)
		if !has {
			return nil, false
		}
		fields = append(fields, variant[any]{v.condition, with[key]})
	}
	return variantsOfType[[]any](fields)
}

// newList writes a list that is empty by default, and to which several variants add.
func newList(key string, variants []variant[[]any], indent int) (string, error) {
	var all strings.Builder
	if err := writeAdditions(&all, variants, indent+2); err != nil {
		return "", err
	}
	var conditions []string
	for _, v := range variants {
		conditions = append(conditions, "("+v.condition+")")
	}
	return "{{- if or " + strings.Join(conditions, " ") + " }}\n" + strings.Repeat(" ", indent) + key + ":\n" + all.String() + "{{- else }}\n" + strings.Repeat(" ", indent) + key + ": []\n{{- end }}\n", nil
}

// isComposite reports whether a value has parts.
func isComposite(value any) bool {
	switch value := value.(type) {
	case map[string]any:
		return len(value) > 0
	case []any:
		return len(value) > 0
	}
	return false
}

// mergeLists goes into lists of one length. Of others, each variant adds something
// somewhere.
func mergeLists(value []any, variants []variant[[]any], indent int) (string, error) {
	additions := map[int][]variant[[]any]{}
	elements := make([][]variant[any], len(value))
	for _, v := range variants {
		at := commonPrefix(value, v.value)
		switch more := len(v.value) - len(value); {
		case more == 0:
			for i := range value {
				elements[i] = append(elements[i], variant[any]{v.condition, v.value[i]})
			}
		case more > 0 && reflect.DeepEqual(value[at:], v.value[at+more:]):
			additions[at] = append(additions[at], variant[[]any]{v.condition, v.value[at : at+more]})
		default:
			return "", fmt.Errorf("for %s the list has lost something", v.condition)
		}
	}
	var all strings.Builder
	for i := range len(value) + 1 {
		if err := writeAdditions(&all, additions[i], indent); err != nil {
			return "", err
		}
		if i == len(value) {
			break
		}
		text, err := mergeElement(value[i], elements[i], indent)
		if err != nil {
			return "", fmt.Errorf("element %d: %w", i, err)
		}
		all.WriteString(text)
	}
	return all.String(), nil
}

func writeAdditions(all *strings.Builder, additions []variant[[]any], indent int) error {
	for _, added := range additions {
		text, err := writeBlock(added.value, indent)
		if err != nil {
			return err
		}
		all.WriteString("{{- if " + added.condition + " }}\n" + text + "{{- end }}\n")
	}
	return nil
}

// commonPrefix is how many elements two lists have in common at their starts.
func commonPrefix(a, b []any) int {
	n := 0
	for n < len(a) && n < len(b) && reflect.DeepEqual(a[n], b[n]) {
		n++
	}
	return n
}

// mergeElement writes the element of a list, whose first line may be a directive:
// so the dash has a line of its own.
func mergeElement(value any, variants []variant[any], indent int) (string, error) {
	differing := slices.DeleteFunc(slices.Clone(variants), func(v variant[any]) bool { return reflect.DeepEqual(v.value, value) })
	if len(differing) == 0 {
		return writeBlock([]any{value}, indent)
	}
	text, err := mergeVariants(value, differing, indent+2)
	return strings.Repeat(" ", indent) + "-\n" + text, err
}

// writeBlock writes a value as lines of YAML; nothing for what is missing.
func writeBlock(value any, indent int) (string, error) {
	if _, ok := value.(missing); ok {
		return "", nil
	}
	text, err := yaml.Marshal(value)
	if err != nil {
		return "", err
	}
	var all strings.Builder
	for line := range strings.Lines(string(text)) {
		if line != "\n" {
			all.WriteString(strings.Repeat(" ", indent))
		}
		all.WriteString(line)
	}
	return all.String(), nil
}
