package strict

import (
	"encoding"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	sigsjson "sigs.k8s.io/json"

	"github.com/kwok-dra/kwok-dra/pkg/quantity"
	"github.com/kwok-dra/kwok-dra/pkg/suggest"
)

// fitter finds what in a tree of JSON values does not fit a Go type. JSON
// libraries tell the first misfit only, and mostly not where it is.
type fitter struct {
	problems Problems
}

// objectForm is a type that, written as an object, has the fields of another.
type objectForm interface{ ObjectForm() any }

// fit returns what of a value fits the type. It reports the rest, and leaves it
// out.
func (f *fitter) fit(value any, typ reflect.Type, path *field.Path) any {
	if typ.Kind() == reflect.Pointer {
		if value == nil {
			return nil
		}
		return f.fit(value, typ.Elem(), path)
	}
	switch v := value.(type) {
	case nil:
		if !readsJSON(typ) {
			return nil
		}
	case map[string]any:
		if form, has := reflect.TypeAssert[objectForm](reflect.Zero(typ)); has {
			typ = reflect.TypeOf(form.ObjectForm())
		}
		switch {
		case typ.Kind() == reflect.Struct && !readsJSON(typ):
			return f.fitFields(v, typ, path)
		case typ.Kind() == reflect.Map:
			return f.fitMap(v, typ.Elem(), path)
		}
	case []any:
		if typ.Kind() == reflect.Slice && !readsJSON(typ) {
			return f.fitList(v, typ.Elem(), path)
		}
	}
	return f.fitLeaf(value, typ, path)
}

func (f *fitter) fitFields(object map[string]any, typ reflect.Type, path *field.Path) any {
	known := Fields(typ)
	kept := map[string]any{}
	for _, name := range slices.Sorted(maps.Keys(object)) {
		if fieldType, ok := known[name]; ok {
			kept[name] = f.fit(object[name], fieldType, path.Child(name))
			continue
		}
		f.problems = append(f.problems, unknownField(name, object[name], typ, path))
	}
	return kept
}

func (f *fitter) fitMap(object map[string]any, element reflect.Type, path *field.Path) any {
	kept := map[string]any{}
	for _, key := range slices.Sorted(maps.Keys(object)) {
		before := len(f.problems)
		value := f.fit(object[key], element, path.Key(key))
		if value != nil || len(f.problems) == before {
			kept[key] = value
		}
	}
	return kept
}

// fitList keeps the place of an item that does not fit, so that others keep
// their index.
func (f *fitter) fitList(list []any, element reflect.Type, path *field.Path) any {
	kept := make([]any, len(list))
	for i := range list {
		kept[i] = f.fit(list[i], element, path.Index(i))
	}
	return kept
}

// fitLeaf tries to decode a value that has no parts, or not the right ones.
func (f *fitter) fitLeaf(value any, typ reflect.Type, path *field.Path) any {
	given := value
	if s, ok := value.(scalar); ok && s.written != "" && reflect.PointerTo(typ).Implements(textUnmarshaler) {
		given = s.written
	}
	err := decode(given, typ)
	if err == nil {
		return given
	}
	f.problems = append(f.problems, Problem{
		Path: pathOf(path),
		Text: fmt.Sprintf("Invalid value: %s: %s", Shown(value), expected(value, typ, err)),
	})
	return nil
}

var (
	unmarshaler     = reflect.TypeFor[json.Unmarshaler]()
	textUnmarshaler = reflect.TypeFor[encoding.TextUnmarshaler]()
)

// readsJSON reports whether a type reads JSON in its own way.
func readsJSON(typ reflect.Type) bool { return reflect.PointerTo(typ).Implements(unmarshaler) }

// decode tries to decode a value.
func decode(value any, typ reflect.Type) error {
	if typ == quantityType {
		if _, err := quantity.Parse(plain(value)); err != nil {
			return err
		}
	}
	data, err := json.Marshal(value)
	if err != nil {
		return err
	}
	return sigsjson.UnmarshalCaseSensitivePreserveInts(data, reflect.New(typ).Interface())
}

func decodes(value any, typ reflect.Type) bool { return decode(value, typ) == nil }

// Fields are the types of a struct's fields by their names in JSON.
func Fields(typ reflect.Type) map[string]reflect.Type {
	fields := map[string]reflect.Type{}
	for structField := range typ.Fields() {
		name, options, _ := strings.Cut(structField.Tag.Get("json"), ",")
		switch {
		case name == "-" || !structField.IsExported():
		case name == "" && structField.Type.Kind() == reflect.Struct && (structField.Anonymous || strings.Contains(options, "inline")):
			maps.Copy(fields, Fields(structField.Type))
		case name != "":
			fields[name] = structField.Type
		}
	}
	return fields
}

// fewFields is how many fields an error names.
const fewFields = 20

func unknownField(name string, value any, typ reflect.Type, path *field.Path) Problem {
	names := slices.Sorted(maps.Keys(Fields(typ)))
	p := Problem{Path: path.Child(name).String(), Text: "Unknown field", Unknown: true}
	nearest := suggest.Nearest(name, names)
	label, isText := value.(string)
	switch {
	case isText && typ == reflect.TypeFor[corev1.NodeSelector]():
		p.Text += fmt.Sprintf(": select labels by nodeSelectorTerms: [{matchExpressions: [{key: %s, operator: In, values: [%s]}]}]", name, label)
		p.meant = path.Child("nodeSelectorTerms").String()
	case nearest != "":
		p.Text += ": did you mean " + nearest + "?"
		p.meant = path.Child(nearest).String()
	case len(names) == 1:
		p.Text += ": the only field here is " + names[0]
	case len(names) <= fewFields:
		p.Text += ": the fields here are " + strings.Join(names, ", ")
	}
	return p
}
