package config

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"
	"regexp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	sigsjson "sigs.k8s.io/json"
	"sigs.k8s.io/yaml"

	"github.com/kwok-dra/kwok-dra/pkg/api/v1alpha1"
	"github.com/kwok-dra/kwok-dra/pkg/devices"
)

// Documents are the documents of one carrier, valid each by itself.
type Documents struct {
	templates      []sourced[*devices.Template]
	configurations []sourced[*v1alpha1.KwokDRAConfiguration]
	classes        []Class
	// changes says what of other people's documents is not taken as it is written.
	changes []string
	// owned tells that they are objects in the cluster, which own what is made from
	// them.
	owned bool
}

// merge adds the documents of another source of the same carrier.
func (d *Documents) merge(other *Documents) {
	d.templates = append(d.templates, other.templates...)
	d.configurations = append(d.configurations, other.configurations...)
	d.classes = append(d.classes, other.classes...)
	d.changes = append(d.changes, other.changes...)
}

// carriedBy notes the object that has the documents.
func (d *Documents) carriedBy(carrier *corev1.ObjectReference) {
	for i := range d.templates {
		d.templates[i].value.Origin.Carrier = carrier
	}
}

// sourced remembers where a document is from, for errors.
type sourced[T any] struct {
	value  T
	source string
}

// place is where the document is, for the errors of others.
func (s sourced[T]) place(kind, name string) string {
	if s.source == customResource {
		return s.source + " " + objectName(kind, name)
	}
	return s.source
}

// Decode reads all YAML or JSON documents of one source, a file or the key of a
// ConfigMap. The error names every problem, each with the source, the object,
// the field, the value and what would be valid.
func Decode(source string, data []byte) (*Documents, error) {
	documents := &Documents{}
	reader := utilyaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(data)))
	var errs []error
	for number := 1; ; number++ {
		document, err := reader.Read()
		if errors.Is(err, io.EOF) {
			return documents, errors.Join(errs...)
		}
		if err != nil {
			return nil, fmt.Errorf("%s: read document %d: %w", source, number, err)
		}
		if err := documents.add(fmt.Sprintf("%s, document %d", source, number), document); err != nil {
			errs = append(errs, err)
		}
	}
}

// afterEnd finds what follows a line of three dots, the end of a document. The
// YAML library would drop it without a word.
var afterEnd = regexp.MustCompile(`(?m)^\.\.\.\s*\n(\s*(#.*)?\n)*\s*[^#\s]`)

// add decodes one document. One with nothing but comments is skipped.
func (d *Documents) add(source string, document []byte) error {
	if afterEnd.Match(document) {
		return refuse(source, "", "", "there is text after the end of the document, the line ...: begin a document with the line ---")
	}
	value, problem := readYAML(document)
	if problem != nil {
		return &Refusal{Source: source, Object: named(value), Problems: []Problem{*problem}}
	}
	if value == nil {
		return nil
	}
	object, isObject := value.(map[string]any)
	apiVersion, kind := object["apiVersion"], object["kind"]
	switch {
	case !isObject:
		return refuse(source, "", "", "not an object with apiVersion and kind: %s", shown(value))
	case apiVersion == nil:
		return refuse(source, named(value), "apiVersion", "Required value: must be %s", v1alpha1.APIVersion)
	case isForeign(apiVersion, kind):
		return refuse(source, named(value), "kind", "%s", whatToDo(plain(kind)))
	case apiVersion != v1alpha1.APIVersion:
		return refuse(source, named(value), "apiVersion", "Unsupported value: %s: must be %s", shown(apiVersion), v1alpha1.APIVersion)
	case kind == v1alpha1.ResourcePoolTemplateKind:
		return d.addTemplate(source, object)
	case kind == v1alpha1.KwokDRAConfigurationKind:
		return d.addConfiguration(source, object)
	}
	return refuse(source, named(value), "kind", "%s", wrongKind(kind))
}

func wrongKind(kind any) string {
	kinds := []string{v1alpha1.ResourcePoolTemplateKind, v1alpha1.KwokDRAConfigurationKind}
	must := "must be " + strings.Join(kinds, " or ")
	if kind == nil {
		return "Required value: " + must
	}
	return fmt.Sprintf("Unsupported value: %s: %s%s", shown(kind), must, didYouMean(plain(kind), kinds))
}

func (d *Documents) addTemplate(source string, object map[string]any) error {
	template := &v1alpha1.ResourcePoolTemplate{}
	problems := decodeObject(object, template)
	template.SetDefaults()
	if !d.owned {
		template.UID = "" // of the object that the document was copied from
	}
	compiled, problems := examine(template, problems)
	if len(problems) > 0 {
		return &Refusal{Source: source, Object: objectName(v1alpha1.ResourcePoolTemplateKind, template.Name), Problems: problems}
	}
	if d.owned {
		compiled.Origin.Created = template.CreationTimestamp.Time
	}
	d.templates = append(d.templates, sourced[*devices.Template]{compiled, source})
	return nil
}

func (d *Documents) addConfiguration(source string, object map[string]any) error {
	document := &v1alpha1.KwokDRAConfiguration{}
	decoding := decodeObject(object, document)
	_, errs := newConfiguration(document)
	validation := problemsOf(append(document.Validate(), errs...))
	if problems := slices.Concat(decoding, independent(decoding, validation)); len(problems) > 0 {
		return &Refusal{Source: source, Object: objectName(v1alpha1.KwokDRAConfigurationKind, document.Name), Problems: problems}
	}
	d.configurations = append(d.configurations, sourced[*v1alpha1.KwokDRAConfiguration]{document, source})
	return nil
}

// readYAML makes a tree of JSON values of a document. With a problem of fields
// that are there twice, the tree is there all the same.
func readYAML(document []byte) (any, *Problem) {
	data, err := yaml.YAMLToJSONStrict(document)
	var problem *Problem
	if err != nil {
		problem = explain(err, document)
		if data, _ = yaml.YAMLToJSON(document); data == nil {
			return nil, problem
		}
	}
	var value any
	decoder := json.NewDecoder(bytes.NewReader(data))
	decoder.UseNumber()
	if err := decoder.Decode(&value); err != nil {
		return nil, &Problem{Text: "no valid JSON: " + err.Error()}
	}
	return restoreFloats(value, document), problem
}

// named names an object that may not be one, for the beginning of an error.
func named(value any) string {
	object, _ := value.(map[string]any)
	metadata, _ := object["metadata"].(map[string]any)
	if plain(object["kind"]) == "" || plain(metadata["name"]) == "" {
		return ""
	}
	return objectName(plain(object["kind"]), plain(metadata["name"]))
}

func objectName(kind, name string) string {
	return fmt.Sprintf("%s %q", kind, name)
}

// decodeObject decodes what fits, and says what does not: unknown fields, those
// in the wrong case, and values of the wrong form.
func decodeObject(object map[string]any, into any) []Problem {
	var l locator
	kept, err := json.Marshal(l.fit(object, reflect.TypeOf(into).Elem(), nil))
	if err == nil {
		var strict []error
		strict, err = sigsjson.UnmarshalStrict(kept, into)
		err = errors.Join(append(strict, err)...)
	}
	if err != nil && len(l.problems) == 0 {
		return []Problem{{Text: err.Error()}}
	}
	return l.problems
}
