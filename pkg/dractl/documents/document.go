package documents

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"
)

// Document is one YAML or JSON document of a file.
type Document struct {
	// File is the name of the file, and Line the number of its line that Data
	// begins with.
	File string
	Line int
	Data []byte
}

// Where is the place of the document.
func (d *Document) Where() string {
	return fmt.Sprintf("%s:%d", d.File, d.Line)
}

// Split splits the text of a file into its documents. Those with nothing but
// comments are left out.
func Split(file string, data []byte) []Document {
	var all []Document
	current := Document{File: file, Line: 1}
	number := 0
	for line := range bytes.Lines(data) {
		number++
		if isSeparator(line) {
			all = appendUnlessEmpty(all, current)
			current = Document{File: file, Line: number + 1}
			continue
		}
		current.Data = append(current.Data, line...)
	}
	return appendUnlessEmpty(all, current)
}

// isSeparator reports whether a line is what kubectl takes for the end of a
// document.
func isSeparator(line []byte) bool {
	rest, ok := bytes.CutPrefix(line, []byte("---"))
	rest = bytes.TrimSpace(rest)
	return ok && (len(rest) == 0 || rest[0] == '#')
}

func appendUnlessEmpty(all []Document, d Document) []Document {
	for line := range bytes.Lines(d.Data) {
		trimmed := bytes.TrimSpace(line)
		if len(trimmed) > 0 && trimmed[0] != '#' {
			return append(all, d)
		}
	}
	return all
}

// Object is an object of a document, or an item of a list in it.
type Object struct {
	*unstructured.Unstructured

	// Where is the place of the document.
	Where string
}

// Objects decodes documents into objects, and lists into their items. The error
// names every document that is not an object.
func Objects(all []Document) ([]Object, error) {
	var objects []Object
	var errs []error
	for i := range all {
		decoded, err := all[i].objects()
		if err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", all[i].Where(), err))
		}
		objects = append(objects, decoded...)
	}
	return objects, errors.Join(errs...)
}

var errNoObject = errors.New("not an object with apiVersion and kind")

func (d *Document) objects() ([]Object, error) {
	data, err := yaml.YAMLToJSONStrict(d.Data)
	if err != nil {
		return nil, fmt.Errorf("invalid YAML: %s", strings.TrimPrefix(err.Error(), "error converting YAML to JSON: "))
	}
	decoded, err := runtime.Decode(unstructured.UnstructuredJSONScheme, data)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errNoObject, err)
	}
	if decoded.GetObjectKind().GroupVersionKind().Version == "" {
		return nil, errNoObject
	}
	list, isList := decoded.(*unstructured.UnstructuredList)
	if !isList {
		return []Object{{decoded.(*unstructured.Unstructured), d.Where()}}, nil
	}
	objects := make([]Object, len(list.Items))
	for i := range list.Items {
		objects[i] = Object{&list.Items[i], d.Where()}
	}
	return objects, nil
}

// Into converts an object into a typed one. Unknown fields are left out, as the
// API server would.
func (o Object) Into(typed any) error {
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, typed); err != nil {
		return fmt.Errorf("%s: %s %q: %w", o.Where, o.GetKind(), o.GetName(), o.wrongType(typed, err))
	}
	return nil
}

// wrongType names the field whose value is of another type, which the error of a
// conversion does not. Where it finds none it returns that error.
func (o Object) wrongType(typed any, err error) error {
	data, encodeErr := json.Marshal(o.Object)
	if encodeErr != nil {
		return err
	}
	if wrong, ok := errors.AsType[*json.UnmarshalTypeError](json.Unmarshal(data, typed)); ok {
		if wrong.Type.Kind() == reflect.String {
			return fmt.Errorf("%s: must be a string, not a %s: put it in quotes", wrong.Field, wrong.Value)
		}
		return fmt.Errorf("%s: must be of type %s, not %s", wrong.Field, wrong.Type, wrong.Value)
	}
	return err
}
