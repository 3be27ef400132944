package config

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"
	sigsjson "sigs.k8s.io/json"

	"github.com/kwok-dra/kwok-dra/pkg/suggest"
)

// locator finds what in a tree of JSON values does not fit a Go type. JSON
// libraries tell the first misfit only, and mostly not where it is.
type locator struct {
	problems []Problem
}

// unmarshaler is a type that reads JSON in its own way.
var unmarshaler = reflect.TypeFor[json.Unmarshaler]()

// objectForm is a type that, written as an object, has the fields of another.
type objectForm interface{ ObjectForm() any }

// fit returns what of a value fits the type. It reports the rest, and leaves it
// out.
func (l *locator) fit(value any, typ reflect.Type, path *field.Path) any {
	if value == nil {
		return nil
	}
	if typ.Kind() == reflect.Pointer {
		return l.fit(value, typ.Elem(), path)
	}
	object, isObject := value.(map[string]any)
	if reflect.PointerTo(typ).Implements(unmarshaler) {
		if form, has := reflect.TypeAssert[objectForm](reflect.Zero(typ)); has && isObject {
			return l.fitFields(object, reflect.TypeOf(form.ObjectForm()), path)
		}
		return l.fitLeaf(value, typ, path)
	}
	switch typ.Kind() {
	case reflect.Struct:
		if isObject {
			return l.fitFields(object, typ, path)
		}
	case reflect.Map:
		if isObject {
			return l.fitMap(object, typ.Elem(), path)
		}
	case reflect.Slice:
		if list, is := value.([]any); is {
			return l.fitList(list, typ.Elem(), path)
		}
	case reflect.Interface:
		return value
	}
	return l.fitLeaf(value, typ, path)
}

func (l *locator) fitFields(object map[string]any, typ reflect.Type, path *field.Path) any {
	known := map[string]reflect.Type{}
	addFields(known, typ)
	kept := map[string]any{}
	for _, name := range slices.Sorted(maps.Keys(object)) {
		if fieldType, is := known[name]; is {
			kept[name] = l.fit(object[name], fieldType, child(path, name))
			continue
		}
		l.problems = append(l.problems, unknownField(name, object[name], known, path))
	}
	return kept
}

func (l *locator) fitMap(object map[string]any, element reflect.Type, path *field.Path) any {
	kept := map[string]any{}
	for _, key := range slices.Sorted(maps.Keys(object)) {
		before := len(l.problems)
		value := l.fit(object[key], element, path.Key(key))
		if value != nil || len(l.problems) == before {
			kept[key] = value
		}
	}
	return kept
}

// fitList keeps the place of an item that does not fit, so that others keep
// their index.
func (l *locator) fitList(list []any, element reflect.Type, path *field.Path) any {
	kept := make([]any, len(list))
	for i := range list {
		kept[i] = l.fit(list[i], element, path.Index(i))
	}
	return kept
}

// fitLeaf tries to decode a value that has no parts, or not the right ones.
func (l *locator) fitLeaf(value any, typ reflect.Type, path *field.Path) any {
	if decodes(value, typ) {
		return value
	}
	l.problems = append(l.problems, Problem{
		Path: path.String(),
		Text: fmt.Sprintf("Invalid value: %s: %s", shown(value), expected(value, typ)),
	})
	return nil
}

func decodes(value any, typ reflect.Type) bool {
	if typ == quantityType && !isQuantity(value) {
		return false
	}
	data, err := json.Marshal(value)
	return err == nil && sigsjson.UnmarshalCaseSensitivePreserveInts(data, reflect.New(typ).Interface()) == nil
}

// addFields adds the types of a struct's fields by their names in JSON.
func addFields(known map[string]reflect.Type, typ reflect.Type) {
	for structField := range typ.Fields() {
		name, options, _ := strings.Cut(structField.Tag.Get("json"), ",")
		switch {
		case name == "-" || !structField.IsExported():
		case name == "" && (structField.Anonymous || strings.Contains(options, "inline")):
			addFields(known, structField.Type)
		case name != "":
			known[name] = structField.Type
		}
	}
}

// fewFields is how many fields an error names.
const fewFields = 20

func unknownField(name string, value any, known map[string]reflect.Type, path *field.Path) Problem {
	names := slices.Sorted(maps.Keys(known))
	p := Problem{Path: child(path, name).String(), Text: "Unknown field"}
	nearest := suggest.Nearest(name, names)
	label, isText := value.(string)
	switch hint := instead[p.Path]; {
	case hint != "":
		p.Text += ": " + hint
	case isText && slices.Equal(names, []string{"nodeSelectorTerms"}):
		p.Text += fmt.Sprintf(": select labels by nodeSelectorTerms: [{matchExpressions: [{key: %s, operator: In, values: [%s]}]}]", name, label)
	case nearest != "":
		p.Text += ": did you mean " + nearest + "?"
		p.meant = child(path, nearest).String()
	case len(names) == 1:
		p.Text += ": the only field here is " + names[0]
	case len(names) <= fewFields:
		p.Text += ": the fields here are " + strings.Join(names, ", ")
	}
	return p
}

// instead are fields of ResourceSlices that have another form in a template.
var instead = map[string]string{
	"spec.pool":                   "use poolName; generation and resourceSliceCount are made up for you",
	"spec.nodeName":               "use nodeSelector; each node that it selects has a pool of its own",
	"spec.allNodes":               "use sharedWith: {allNodes: true}",
	"spec.perDeviceNodeSelection": "use sharedWith: {perDeviceNodeSelection: true}",
}

// didYouMean proposes the known word that a word is most like.
func didYouMean(word string, known []string) string {
	if nearest := suggest.Nearest(word, known); nearest != "" {
		return "; did you mean " + nearest + "?"
	}
	return ""
}

func child(path *field.Path, name string) *field.Path {
	if path == nil {
		return field.NewPath(name)
	}
	return path.Child(name)
}

// maxShown is the most that an error shows of a value, in bytes.
const maxShown = 100

// shown is a value as JSON, for an error.
func shown(value any) string {
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(value); err != nil {
		return "?"
	}
	trimmed := strings.TrimSpace(text.String())
	if len(trimmed) > maxShown {
		return strings.ToValidUTF8(trimmed[:maxShown], "") + "..."
	}
	return trimmed
}
