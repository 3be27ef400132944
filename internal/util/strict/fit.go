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

	"github.com/kwok-dra/kwok-dra/internal/util/suggest"
)

// Decode decodes whatever fits, and returns the rest as problems: unknown fields, fields in the
// wrong case, and values of the wrong form. A type that implements encoding.TextUnmarshaler gets
// numbers and bools as the document has them. Path is the path of the document, or nil.
func (d Document) Decode(into any, path *field.Path) Problems {
	var problems Problems
	kept, err := json.Marshal(problems.fitValue(d.Value, reflect.TypeOf(into).Elem(), path))
	if err == nil {
		err = sigsjson.UnmarshalCaseSensitivePreserveInts(kept, into)
	}
	if err != nil && len(problems) == 0 {
		return Problems{{Path: pathText(path), Text: err.Error()}}
	}
	return problems
}

// objectForm is a type that may be written as an object with the fields of another type.
type objectForm interface{ ObjectForm() any }

// fitValue returns the part of a value that fits the type, and adds a problem for each other
// part. JSON libraries report only the first problem, and mostly not its path.
func (p *Problems) fitValue(value any, typ reflect.Type, path *field.Path) any {
	if typ.Kind() == reflect.Pointer && value != nil {
		return p.fitValue(value, typ.Elem(), path)
	}
	object, isObject := value.(map[string]any)
	if form, has := reflect.TypeAssert[objectForm](reflect.Zero(typ)); has && isObject {
		typ = reflect.TypeOf(form.ObjectForm())
	}
	list, isList := value.([]any)
	decodesItself := reflect.PointerTo(typ).Implements(unmarshaler)
	switch {
	case value == nil && !decodesItself:
		return nil
	case isObject && (typ.Kind() == reflect.Struct && !decodesItself || typ.Kind() == reflect.Map):
		return p.fitFields(object, typ, path)
	case isList && typ.Kind() == reflect.Slice && !decodesItself:
		kept := make([]any, len(list)) // an item that does not fit is nil, so that the others keep their indexes
		for i := range list {
			kept[i] = p.fitValue(list[i], typ.Elem(), path.Index(i))
		}
		return kept
	}
	given := value
	if s, ok := value.(scalar); ok && s.written != "" && reflect.PointerTo(typ).Implements(textUnmarshaler) {
		given = s.written
	}
	if err := decodeValue(given, typ); err != nil {
		*p = append(*p, Problem{Path: pathText(path), Text: fmt.Sprintf("Invalid value: %s: %s", Shown(value), describeExpected(value, typ, err))})
		return nil
	}
	return given
}

// fitFields is fitValue for the fields of a struct, or the values of a map.
func (p *Problems) fitFields(object map[string]any, typ reflect.Type, path *field.Path) any {
	kept := map[string]any{}
	isStruct := typ.Kind() == reflect.Struct
	var known map[string]reflect.Type
	if isStruct {
		_, known = JSONFields(typ)
	}
	for _, name := range slices.Sorted(maps.Keys(object)) {
		before, fieldType, at := len(*p), known[name], path.Child(name)
		switch {
		case !isStruct:
			fieldType, at = typ.Elem(), path.Key(name)
		case fieldType == nil:
			*p = append(*p, unknownField(name, object[name], typ, path))
			continue
		}
		if value := p.fitValue(object[name], fieldType, at); value != nil || len(*p) == before {
			kept[name] = value
		}
	}
	return kept
}

var (
	unmarshaler     = reflect.TypeFor[json.Unmarshaler]()
	textUnmarshaler = reflect.TypeFor[encoding.TextUnmarshaler]()
)

// decodeValue tries to decode a value into a type.
func decodeValue(value any, typ reflect.Type) error {
	if typ == quantityType {
		if _, err := suggest.ParseQuantity(asPlainText(value)); err != nil {
			return err
		}
	}
	data, err := json.Marshal(value)
	if err != nil {
		return err
	}
	return sigsjson.UnmarshalCaseSensitivePreserveInts(data, reflect.New(typ).Interface())
}

// JSONFields returns the names of a struct's fields in JSON, in their order, and their types.
func JSONFields(typ reflect.Type) (names []string, types map[string]reflect.Type) {
	types = map[string]reflect.Type{}
	for structField := range typ.Fields() {
		name, options, _ := strings.Cut(structField.Tag.Get("json"), ",")
		switch {
		case name == "-" || !structField.IsExported():
		case name == "" && structField.Type.Kind() == reflect.Struct && (structField.Anonymous || strings.Contains(options, "inline")):
			inner, innerTypes := JSONFields(structField.Type)
			names = append(names, inner...)
			maps.Copy(types, innerTypes)
		case name != "":
			names, types[name] = append(names, name), structField.Type
		}
	}
	return names, types
}

// maxNamedFields is the largest number of fields that an error lists.
const maxNamedFields = 20

func unknownField(name string, value any, typ reflect.Type, path *field.Path) Problem {
	names, _ := JSONFields(typ)
	slices.Sort(names)
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
	case len(names) <= maxNamedFields:
		p.Text += ": the fields here are " + strings.Join(names, ", ")
	}
	return p
}
