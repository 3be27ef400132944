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

	"github.com/kwok-dra/kwok-dra/pkg/suggest"
)

// Decode decodes what fits, and returns what does not: unknown fields, those in
// the wrong case, and values of the wrong form. A type that implements
// encoding.TextUnmarshaler gets numbers and bools as they are written. Path is that
// of the document, or nil.
func (d Document) Decode(into any, path *field.Path) Problems {
	var problems Problems
	kept, err := json.Marshal(problems.fit(d.Value, reflect.TypeOf(into).Elem(), path))
	if err == nil {
		err = sigsjson.UnmarshalCaseSensitivePreserveInts(kept, into)
	}
	if err != nil && len(problems) == 0 {
		return Problems{{Path: pathOf(path), Text: err.Error()}}
	}
	return problems
}

// objectForm is a type that, written as an object, has the fields of another.
type objectForm interface{ ObjectForm() any }

// fit returns what of a value fits the type, and adds the problems with the rest.
// JSON libraries tell the first only, and mostly not where it is.
func (p *Problems) fit(value any, typ reflect.Type, path *field.Path) any {
	if typ.Kind() == reflect.Pointer {
		if value == nil {
			return nil
		}
		return p.fit(value, typ.Elem(), path)
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
			return p.fitFields(v, typ, path)
		case typ.Kind() == reflect.Map:
			return p.fitMap(v, typ.Elem(), path)
		}
	case []any:
		if typ.Kind() == reflect.Slice && !readsJSON(typ) {
			return p.fitList(v, typ.Elem(), path)
		}
	}
	return p.fitLeaf(value, typ, path)
}

func (p *Problems) fitFields(object map[string]any, typ reflect.Type, path *field.Path) any {
	known := fields(typ)
	kept := map[string]any{}
	for _, name := range slices.Sorted(maps.Keys(object)) {
		if fieldType, ok := known[name]; ok {
			kept[name] = p.fit(object[name], fieldType, path.Child(name))
			continue
		}
		*p = append(*p, unknownField(name, object[name], typ, path))
	}
	return kept
}

func (p *Problems) fitMap(object map[string]any, element reflect.Type, path *field.Path) any {
	kept := map[string]any{}
	for _, key := range slices.Sorted(maps.Keys(object)) {
		before := len(*p)
		value := p.fit(object[key], element, path.Key(key))
		if value != nil || len(*p) == before {
			kept[key] = value
		}
	}
	return kept
}

// fitList keeps the place of an item that does not fit, for the index of the others.
func (p *Problems) fitList(list []any, element reflect.Type, path *field.Path) any {
	kept := make([]any, len(list))
	for i := range list {
		kept[i] = p.fit(list[i], element, path.Index(i))
	}
	return kept
}

// fitLeaf tries to decode a value that has no parts, or not the right ones.
func (p *Problems) fitLeaf(value any, typ reflect.Type, path *field.Path) any {
	given := value
	if s, ok := value.(scalar); ok && s.written != "" && reflect.PointerTo(typ).Implements(textUnmarshaler) {
		given = s.written
	}
	err := decode(given, typ)
	if err == nil {
		return given
	}
	*p = append(*p, Problem{
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
		if _, err := suggest.ParseQuantity(plain(value)); err != nil {
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

// fields are the types of a struct's fields by their names in JSON.
func fields(typ reflect.Type) map[string]reflect.Type {
	all := map[string]reflect.Type{}
	for structField := range typ.Fields() {
		name, options, _ := strings.Cut(structField.Tag.Get("json"), ",")
		switch {
		case name == "-" || !structField.IsExported():
		case name == "" && structField.Type.Kind() == reflect.Struct && (structField.Anonymous || strings.Contains(options, "inline")):
			maps.Copy(all, fields(structField.Type))
		case name != "":
			all[name] = structField.Type
		}
	}
	return all
}

// fewFields is how many fields an error names.
const fewFields = 20

func unknownField(name string, value any, typ reflect.Type, path *field.Path) Problem {
	names := slices.Sorted(maps.Keys(fields(typ)))
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
