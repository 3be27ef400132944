package config

import (
	"context"
	"errors"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/klog/v2"

	"github.com/kwok-dra/kwok-dra/pkg/api/defaults"
	"github.com/kwok-dra/kwok-dra/pkg/api/v1alpha1"
	"github.com/kwok-dra/kwok-dra/pkg/api/validation"
	"github.com/kwok-dra/kwok-dra/pkg/devices"
	"github.com/kwok-dra/kwok-dra/pkg/strict"
	"github.com/kwok-dra/kwok-dra/pkg/untrusted"
)

// Documents are the documents of one carrier, valid each by itself.
type Documents struct {
	templates      []sourced[*devices.Template]
	configurations []sourced[*v1alpha1.KwokDRAConfiguration]
	classes        []Class
	// changes says, for an event, what is not taken as it is written.
	changes string
	// carrier is the object that has the documents that are added, if there is one.
	carrier *corev1.ObjectReference
	// total is what the templates make.
	total devices.Total
}

// sourced remembers where a document is from, for errors.
type sourced[T any] struct {
	place
	value T
}

// templateNames are those of the documents' templates. There may be no documents.
func (d *Documents) templateNames() (names []string) {
	if d == nil {
		return nil
	}
	for _, t := range d.templates {
		names = append(names, t.value.Name)
	}
	return names
}

// Ambiguous are warnings of what templates have under two names.
func (d *Documents) Ambiguous() (warnings strict.Problems) {
	for _, t := range d.templates {
		warnings = append(warnings, t.value.Ambiguous()...)
	}
	return warnings
}

// FilesCarrier is the carrier of the configuration files.
const FilesCarrier = "files"

// maxFile is what a configuration file may have, and a hundred times what the largest fleet needs.
const maxFile = 64 << 20

// ReadFiles reads the documents of all files, and warns of a file that has none.
// The error names every problem of every file.
func ReadFiles(ctx context.Context, paths []string) (*Documents, error) {
	documents := &Documents{}
	var errs []error
	for _, path := range paths {
		data, err := untrusted.ReadNamed(path, maxFile)
		if err != nil {
			errs = append(errs, fmt.Errorf("read configuration: %w", err))
			continue
		}
		before := len(documents.templates) + len(documents.configurations)
		err = documents.read(path, data)
		if err == nil && len(documents.templates)+len(documents.configurations) == before {
			klog.FromContext(ctx).Error(nil, "A configuration file has no documents, so it configures nothing", "file", path)
		}
		errs = append(errs, err)
	}
	return documents, errors.Join(errs...)
}

// Decode reads all YAML or JSON documents of one source, a file or the key of a
// ConfigMap. The error names every problem, each with the source, the object,
// the field, the value and what would be valid.
func Decode(source string, data []byte) (*Documents, error) {
	documents := &Documents{}
	return documents, documents.read(source, data)
}

// read adds the documents of a source.
func (d *Documents) read(source string, data []byte) error {
	var errs []error
	for i, text := range strict.Split(data) {
		errs = append(errs, d.add(fmt.Sprintf("%s, document %d", source, i+1), text.Data))
	}
	return errors.Join(errs...)
}

// add decodes one document. One with nothing but comments is skipped.
func (d *Documents) add(source string, text []byte) error {
	document, problems := strict.Parse(text)
	if len(problems) > 0 {
		object, _ := document.Value.(map[string]any)
		return place{source, named(object)}.refuseFor(problems)
	}
	items, isList := document.Items()
	if !isList {
		return d.addObject(source, document)
	}
	var errs []error
	for i, item := range items {
		errs = append(errs, d.addObject(fmt.Sprintf("%s, item %d", source, i+1), item))
	}
	return errors.Join(errs...)
}

// addObject adds the object of a document, or of an item of a list.
func (d *Documents) addObject(source string, document strict.Document) error {
	object, isObject := document.Value.(map[string]any)
	apiVersion, kind := object["apiVersion"], object["kind"]
	at := place{source, named(object)}
	delete(object, "status") // another version may have written fields that this one does not know
	switch {
	case document.Value == nil:
		return nil
	case !isObject:
		return at.refuse("", "not an object with apiVersion and kind: %s", strict.Shown(document.Value))
	case apiVersion == nil:
		return at.refuse("apiVersion", "Required value: must be %s", v1alpha1.APIVersion)
	case isForeign(apiVersion, kind):
		return at.refuse("kind", "%s", whatToDo(kind.(string)))
	case apiVersion != v1alpha1.APIVersion:
		return at.refuse("apiVersion", "Unsupported value: %s: must be %s", strict.Shown(apiVersion), v1alpha1.APIVersion)
	case kind == v1alpha1.ResourcePoolTemplateKind:
		return d.addTemplate(source, document)
	case kind == v1alpha1.KwokDRAConfigurationKind:
		return d.addConfiguration(source, document)
	}
	return at.refuse("kind", "%s", wrongKind(kind))
}

// isForeign reports whether an object is of a kind of someone else's, rather than
// one of kwok-dra's with a mistake in its apiVersion.
func isForeign(apiVersion, kind any) bool {
	name, _ := kind.(string)
	return apiVersion != v1alpha1.APIVersion && name != "" && didYouMean(name, ownKindNames) == ""
}

// whatToDo says what to do with an object of someone else's kind.
func whatToDo(kind string) string {
	does := "kubectl apply it"
	switch {
	case kind == "ConfigMap":
		does += ", and name it with --config-map"
	case adaptedKind(kind) != nil:
		does += ", and have it read with --adapters " + kind
	}
	return fmt.Sprintf("this is a %s: %s; kwok-dra reads %s here", kind, does, strings.Join(ownKindNames, " and "))
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
	if source != customResource { // they are of the object that the document was copied from
		template.UID, template.CreationTimestamp = "", metav1.Time{}
	}
	compiled, errs := d.compile(template)
	at := placeOf(source, v1alpha1.ResourcePoolTemplateKind, template.Name)
	if problems = append(problems, independent(problems, errs)...); len(problems) > 0 {
		return at.refuseFor(problems)
	}
	compiled.Origin.Carrier, compiled.Origin.Created = d.carrier, template.CreationTimestamp.Time
	d.templates = append(d.templates, sourced[*devices.Template]{at, compiled})
	return nil
}

// compile makes a template ready for use. It makes none once there are too many devices or
// counter sets, which NewSet refuses.
func (d *Documents) compile(template *v1alpha1.ResourcePoolTemplate) (*devices.Template, field.ErrorList) {
	if excess := d.total.Excess(); excess != "" {
		return nil, field.ErrorList{field.Forbidden(field.NewPath("spec", "devices"), excess)}
	}
	compiled, errs := devices.Compile(template)
	d.total.Add(compiled)
	return compiled, errs
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
	at := placeOf(source, v1alpha1.KwokDRAConfigurationKind, configuration.Name)
	if problems = append(problems, independent(problems, append(validation.ValidateKwokDRAConfiguration(configuration), errs...))...); len(problems) > 0 {
		return at.refuseFor(problems)
	}
	d.configurations = append(d.configurations, sourced[*v1alpha1.KwokDRAConfiguration]{at, configuration})
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
	return fmt.Sprintf("%s %q", kind, name)
}
