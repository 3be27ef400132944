package adapters

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/validation/field"
	sigsjson "sigs.k8s.io/json"

	"github.com/kwok-dra/kwok-dra/pkg/api/v1alpha1"
	"github.com/kwok-dra/kwok-dra/pkg/suggest"
)

// problem is what is wrong with a field of a document.
type problem struct{ path, text string }

func (p problem) String() string {
	if p.path == "" {
		return p.text
	}
	return p.path + ": " + p.text
}

// problems are all that is wrong with a document. Of a field only the first is
// kept: others mostly follow from it.
type problems []problem

func (p *problems) add(path, text string) {
	if !slices.ContainsFunc(*p, func(known problem) bool { return known.path == path }) {
		*p = append(*p, problem{path, text})
	}
}

func (p *problems) addErrors(errs ...*field.Error) {
	for _, err := range errs {
		p.add(err.Field, err.ErrorBody())
	}
}

// forbid refuses fields that are given.
func (p *problems) forbid(given map[string]bool, path *field.Path, why string) {
	for _, name := range slices.Sorted(maps.Keys(given)) {
		if given[name] {
			p.addErrors(field.Forbidden(path.Child(name), why))
		}
	}
}

// takeName refuses a name that is taken. Taken maps names to their paths.
func (p *problems) takeName(taken map[string]*field.Path, name string, path *field.Path) bool {
	if other, is := taken[name]; is {
		duplicate := field.Duplicate(path, name)
		duplicate.Detail = fmt.Sprintf("%s is that already; rename one", other)
		p.addErrors(duplicate)
		return false
	}
	taken[name] = path
	return true
}

// err makes one error of all: a line, or a line for each where there are several.
func (p problems) err() error {
	switch len(p) {
	case 0:
		return nil
	case 1:
		return errors.New(p[0].String())
	}
	var text strings.Builder
	fmt.Fprintf(&text, "%d problems:", len(p))
	for _, one := range p {
		fmt.Fprintf(&text, "\n  %s", one)
	}
	return errors.New(text.String())
}

// decode reads an object of a document. Fields that it does not know are
// problems, and so are values of another form. It reports whether there were none.
func (p *problems) decode(data json.RawMessage, into any, path *field.Path) bool {
	if len(data) == 0 {
		return true
	}
	before := len(*p)
	unknown, err := sigsjson.UnmarshalStrict(data, into)
	for _, err := range unknown {
		p.addUnknown(err, into, path)
	}
	if err != nil {
		p.addMisfit(err, data, path)
	}
	return len(*p) == before
}

// decodeLoosely is decode for objects of which others own most of the fields.
func (p *problems) decodeLoosely(data json.RawMessage, into any, path *field.Path) bool {
	if err := sigsjson.UnmarshalCaseSensitivePreserveInts(data, into); err != nil {
		p.addMisfit(err, data, path)
		return false
	}
	return true
}

func (p *problems) addUnknown(err error, into any, path *field.Path) {
	var unknown sigsjson.FieldError
	if !errors.As(err, &unknown) {
		p.add(path.String(), err.Error())
		return
	}
	if _, is := into.(*v1alpha1.DeviceTemplate); is {
		into = &resourcev1.Device{} // which has fewer fields
	}
	name, text := unknown.FieldPath(), "Unknown field"
	if known := fieldNames(into); !strings.ContainsAny(name, ".[") {
		text += ": the fields here are " + strings.Join(known, ", ")
		if nearest := suggest.Nearest(name, known); nearest != "" {
			text = "Unknown field: did you mean " + nearest + "?"
		}
	}
	p.add(within(path, name), text)
}

// addMisfit reports a value of the wrong form. JSON libraries give up at the
// first.
func (p *problems) addMisfit(err error, data json.RawMessage, path *field.Path) {
	var misfit *json.UnmarshalTypeError
	if errors.Is(err, resource.ErrFormatWrong) {
		p.add(path.String(), "Invalid value: "+shown(data)+": must be a quantity, for example 80Gi")
		return
	}
	if !errors.As(err, &misfit) {
		p.add(path.String(), "Invalid value: "+shown(data)+": cannot be read: "+err.Error())
		return
	}
	value := misfit.Value
	var fields map[string]json.RawMessage
	if json.Unmarshal(data, &fields) == nil && fields[misfit.Field] != nil {
		value = shown(fields[misfit.Field])
	} else if misfit.Field == "" {
		value = shown(data)
	}
	p.add(within(path, misfit.Field), "Invalid value: "+value+": "+formOf(misfit.Type))
}

// formOf says what a value of a type must be.
func formOf(typ reflect.Type) string {
	switch typ.Kind() {
	case reflect.String:
		return "must be text; numbers and bools that are meant as text need quotes"
	case reflect.Bool:
		return "must be true or false, without quotes"
	case reflect.Int32, reflect.Int64:
		return fmt.Sprintf("must be an integer of %d bits, without quotes", typ.Bits())
	case reflect.Slice:
		return `must be a list: begin each item with "- "`
	}
	return "must be an object, with a value for each name"
}

// fieldNames are the names in JSON of the fields of a struct.
func fieldNames(pointer any) []string {
	var names []string
	for structField := range reflect.TypeOf(pointer).Elem().Fields() {
		if name, _, _ := strings.Cut(structField.Tag.Get("json"), ","); name != "" && name != "-" {
			names = append(names, name)
		}
	}
	return names
}

// within is the path of a field that a JSON library names.
func within(path *field.Path, name string) string {
	if path == nil || name == "" {
		return strings.TrimPrefix(path.String()+name, "<nil>")
	}
	return path.String() + "." + name
}

// maxShown is the most that an error shows of a value, in bytes.
const maxShown = 100

// shown is a value for an error.
func shown(data json.RawMessage) string {
	var value any
	var text strings.Builder
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	if json.Unmarshal(data, &value) != nil || encoder.Encode(value) != nil {
		return "?"
	}
	trimmed := strings.TrimSpace(text.String())
	if len(trimmed) > maxShown {
		return strings.ToValidUTF8(trimmed[:maxShown], "") + "..."
	}
	return trimmed
}
