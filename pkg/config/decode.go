package config

import (
	"errors"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/kwok-dra/kwok-dra/pkg/api/defaults"
	"github.com/kwok-dra/kwok-dra/pkg/api/v1alpha1"
	"github.com/kwok-dra/kwok-dra/pkg/api/validation"
	"github.com/kwok-dra/kwok-dra/pkg/devices"
	"github.com/kwok-dra/kwok-dra/pkg/strict"
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
	texts, err := strict.Split(data)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", source, err)
	}
	documents := &Documents{}
	var errs []error
	for i, text := range texts {
		errs = append(errs, documents.add(fmt.Sprintf("%s, document %d", source, i+1), text))
	}
	return documents, errors.Join(errs...)
}

// add decodes one document. One with nothing but comments is skipped.
func (d *Documents) add(source string, text []byte) error {
	document, problems := strict.Parse(text)
	object, isObject := document.Value.(map[string]any)
	apiVersion, kind := object["apiVersion"], object["kind"]
	name := named(object)
	switch {
	case len(problems) > 0:
		return &Refusal{Source: source, Object: name, Problems: problems}
	case document.Value == nil:
		return nil
	case !isObject:
		return refuse(source, "", "", "not an object with apiVersion and kind: %s", strict.Shown(document.Value))
	case apiVersion == nil:
		return refuse(source, name, "apiVersion", "Required value: must be %s", v1alpha1.APIVersion)
	case isForeign(apiVersion, kind):
		return refuse(source, name, "kind", "%s", whatToDo(kind.(string)))
	case apiVersion != v1alpha1.APIVersion:
		return refuse(source, name, "apiVersion", "Unsupported value: %s: must be %s", strict.Shown(apiVersion), v1alpha1.APIVersion)
	case kind == v1alpha1.ResourcePoolTemplateKind:
		return d.addTemplate(source, document)
	case kind == v1alpha1.KwokDRAConfigurationKind:
		return d.addConfiguration(source, document)
	}
	return refuse(source, name, "kind", "%s", wrongKind(kind))
}

func wrongKind(kind any) string {
	must := "must be " + strings.Join(ownKindNames, " or ")
	if kind == nil {
		return "Required value: " + must
	}
	word, _ := kind.(string)
	return fmt.Sprintf("Unsupported value: %s: %s%s", strict.Shown(kind), must, didYouMean(word, ownKindNames))
}

func (d *Documents) addTemplate(source string, document strict.Document) error {
	template := &v1alpha1.ResourcePoolTemplate{}
	problems := document.Decode(template, nil)
	for i, p := range problems {
		if use := instead[p.Path]; p.Unknown && use != "" {
			problems[i].Text = "Unknown field: " + use
		}
	}
	defaults.SetResourcePoolTemplate(template)
	if !d.owned {
		template.UID = "" // of the object that the document was copied from
	}
	compiled, errs := devices.Compile(template)
	if problems = append(problems, independent(problems, errs)...); len(problems) > 0 {
		return &Refusal{Source: source, Object: objectName(v1alpha1.ResourcePoolTemplateKind, template.Name), Problems: problems}
	}
	if d.owned {
		compiled.Origin.Created = template.CreationTimestamp.Time
	}
	d.templates = append(d.templates, sourced[*devices.Template]{compiled, source})
	return nil
}

// instead are fields of ResourceSlices that have another form in a template.
var instead = map[string]string{
	"spec.pool":                   "use poolName; generation and resourceSliceCount are made up for you",
	"spec.nodeName":               "use nodeSelector; each node that it selects has a pool of its own",
	"spec.allNodes":               "use sharedWith: {allNodes: true}",
	"spec.perDeviceNodeSelection": "use sharedWith: {perDeviceNodeSelection: true}",
}

func (d *Documents) addConfiguration(source string, document strict.Document) error {
	configuration := &v1alpha1.KwokDRAConfiguration{}
	problems := document.Decode(configuration, nil)
	_, errs := newConfiguration(configuration)
	if problems = append(problems, independent(problems, append(validation.ValidateKwokDRAConfiguration(configuration), errs...))...); len(problems) > 0 {
		return &Refusal{Source: source, Object: objectName(v1alpha1.KwokDRAConfigurationKind, configuration.Name), Problems: problems}
	}
	d.configurations = append(d.configurations, sourced[*v1alpha1.KwokDRAConfiguration]{configuration, source})
	return nil
}

// named names an object as far as that is known, for the beginning of an error.
func named(object map[string]any) string {
	kind, _ := object["kind"].(string)
	metadata, _ := object["metadata"].(map[string]any)
	name, _ := metadata["name"].(string)
	if kind == "" || name == "" {
		return ""
	}
	return objectName(kind, name)
}

func objectName(kind, name string) string {
	return fmt.Sprintf("%s %q", kind, name)
}
