package documents

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utiljson "k8s.io/apimachinery/pkg/util/json"

	"github.com/kwok-dra/kwok-dra/internal/util/strict"
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
	for _, text := range strict.Split(data) {
		if !text.IsEmpty() {
			all = append(all, Document{File: file, Line: text.Line, Data: text.Data})
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
		decoded, err := all[i].decodeObjects()
		if err != nil {
			errs = append(errs, err)
		}
		objects = append(objects, decoded...)
	}
	return objects, errors.Join(errs...)
}

var errNoObject = errors.New("not an object with apiVersion and kind")

func (d *Document) decodeObjects() ([]Object, error) {
	document, problems := strict.Parse(d.Data)
	if len(problems) > 0 {
		return nil, fmt.Errorf("%s:%d: %s", d.File, d.Line+max(problems[0].Line, 1)-1, problems[0].Text)
	}
	items, isList := document.Items()
	if !isList {
		items = []strict.Document{document}
	}
	objects := make([]Object, 0, len(items))
	for _, item := range items {
		object := Object{&unstructured.Unstructured{}, d.Where()}
		encoded, err := json.Marshal(item.Value)
		if err == nil {
			err = utiljson.Unmarshal(encoded, &object.Object) // keeps integers whole
		}
		if err != nil || object.GetAPIVersion() == "" || object.GetKind() == "" {
			return nil, fmt.Errorf("%s: %w: %s", d.Where(), errNoObject, strict.Shown(item.Value))
		}
		objects = append(objects, object)
	}
	return objects, nil
}

// Once finds objects that are given twice.
type Once map[string]string

// Add refuses an object of the kind and the name of an earlier one. Objects without a
// namespace are in the given one.
func (o Once) Add(object Object, namespace string) error {
	if object.GetName() == "" {
		return nil
	}
	key := fmt.Sprintf("%s %s/%s", object.GroupVersionKind().GroupKind(), cmp.Or(object.GetNamespace(), namespace), object.GetName())
	if earlier, taken := o[key]; taken {
		return object.newError("also in %s: give it once", earlier)
	}
	o[key] = object.Where
	return nil
}

// describeWrongType names the field whose value has the wrong type, since the error of a conversion does not.
// It returns that error if it finds no such field.
func (o Object) describeWrongType(typed any, err error) error {
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
