package config

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"regexp"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/json"
	"sigs.k8s.io/yaml"

	"github.com/kwok-dra/kwok-dra/pkg/api/v1alpha1"
	"github.com/kwok-dra/kwok-dra/pkg/devices"
)

// Documents are the documents of one carrier, valid each by itself.
type Documents struct {
	templates      []sourced[*devices.Template]
	configurations []sourced[*v1alpha1.KwokDRAConfiguration]
}

// merge adds the documents of another source of the same carrier.
func (d *Documents) merge(other *Documents) {
	d.templates = append(d.templates, other.templates...)
	d.configurations = append(d.configurations, other.configurations...)
}

// sourced remembers where a document is from, for errors.
type sourced[T any] struct {
	value  T
	source string
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
		return fmt.Errorf("%s: there is text after the end of the document, the line ...: begin a document with the line ---", source)
	}
	data, err := yaml.YAMLToJSONStrict(document)
	if err != nil {
		return fmt.Errorf("%s: %w", source, err)
	}
	if string(data) == "null" {
		return nil
	}
	var typed metav1.TypeMeta
	if err := json.UnmarshalCaseSensitivePreserveInts(data, &typed); err != nil {
		return fmt.Errorf("%s: not an object with apiVersion and kind: %w", source, err)
	}
	if typed.APIVersion != v1alpha1.APIVersion {
		return fmt.Errorf("%s: apiVersion: unsupported value %q: must be %q", source, typed.APIVersion, v1alpha1.APIVersion)
	}
	switch typed.Kind {
	case v1alpha1.ResourcePoolTemplateKind:
		return d.addTemplate(source, data)
	case v1alpha1.KwokDRAConfigurationKind:
		return d.addConfiguration(source, data)
	}
	return fmt.Errorf("%s: kind: unsupported value %q: must be %s or %s", source, typed.Kind,
		v1alpha1.ResourcePoolTemplateKind, v1alpha1.KwokDRAConfigurationKind)
}

func (d *Documents) addTemplate(source string, data []byte) error {
	template := &v1alpha1.ResourcePoolTemplate{}
	if err := decodeStrict(data, template); err != nil {
		return fmt.Errorf("%s: %s %q: %w", source, v1alpha1.ResourcePoolTemplateKind, template.Name, err)
	}
	template.SetDefaults()
	compiled, errs := devices.Compile(template)
	if len(errs) > 0 {
		return fmt.Errorf("%s: %s %q: %w", source, v1alpha1.ResourcePoolTemplateKind, template.Name, errs.ToAggregate())
	}
	d.templates = append(d.templates, sourced[*devices.Template]{compiled, source})
	return nil
}

func (d *Documents) addConfiguration(source string, data []byte) error {
	document := &v1alpha1.KwokDRAConfiguration{}
	if err := decodeStrict(data, document); err != nil {
		return fmt.Errorf("%s: %s %q: %w", source, v1alpha1.KwokDRAConfigurationKind, document.Name, err)
	}
	_, errs := newConfiguration(document)
	errs = append(document.Validate(), errs...)
	if len(errs) > 0 {
		return fmt.Errorf("%s: %s %q: %w", source, v1alpha1.KwokDRAConfigurationKind, document.Name, errs.ToAggregate())
	}
	d.configurations = append(d.configurations, sourced[*v1alpha1.KwokDRAConfiguration]{document, source})
	return nil
}

// decodeStrict refuses unknown and doubled fields and those in the wrong case.
func decodeStrict(data []byte, into any) error {
	strict, err := json.UnmarshalStrict(data, into)
	return errors.Join(append([]error{err}, strict...)...)
}
