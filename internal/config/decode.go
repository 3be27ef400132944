package config

import (
	"context"
	"errors"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/klog/v2"

	"github.com/kwok-dra/kwok-dra/internal/devices"
	"github.com/kwok-dra/kwok-dra/internal/util/namedfile"
	"github.com/kwok-dra/kwok-dra/internal/util/strict"
	"github.com/kwok-dra/kwok-dra/pkg/api/defaults"
	"github.com/kwok-dra/kwok-dra/pkg/api/v1alpha1"
	"github.com/kwok-dra/kwok-dra/pkg/api/validation"
)

// Documents are the decoded documents of one source, each valid by itself.
type Documents struct {
	templates      []located[*devices.Template]
	configurations []located[*v1alpha1.KwokDRAConfiguration]
	classes        []Class
	// changes says, for an event, what is published in another form than it was written.
	changes string
	// carrier refers to the object that has the documents. It is nil for files.
	carrier *corev1.ObjectReference
	total   devices.Total
}

// FilesCarrier is the carrier of the configuration files.
const FilesCarrier = "files"

// maxFileSize bounds a configuration file. The largest fleet needs a hundredth of it.
const maxFileSize = 64 << 20

// ReadFiles reads the documents of all files, and logs a file that has none. The error names
// every problem of every file.
func ReadFiles(ctx context.Context, paths []string) (*Documents, error) {
	documents := &Documents{}
	var errs []error
	for _, path := range paths {
		data, err := namedfile.Read(path, maxFileSize)
		if err != nil {
			errs = append(errs, fmt.Errorf("read configuration: %w", err))
			continue
		}
		before := len(documents.templates) + len(documents.configurations)
		err = documents.decodeText(path, data)
		if err == nil && len(documents.templates)+len(documents.configurations) == before {
			klog.FromContext(ctx).Error(nil, "A configuration file has no documents, so it configures nothing", "file", path)
		}
		errs = append(errs, err)
	}
	return documents, errors.Join(errs...)
}

// Decode decodes the YAML or JSON documents of a text: a file, or the value of a key of a
// ConfigMap. The error names every problem, each with the source, the object, the field, the
// value and what would be valid.
func Decode(source string, data []byte) (*Documents, error) {
	documents := &Documents{}
	return documents, documents.decodeText(source, data)
}

// decodeText adds the documents of a text, and the items of those that are lists.
func (d *Documents) decodeText(source string, data []byte) error {
	var errs []error
	for i, text := range strict.Split(data) {
		name := fmt.Sprintf("%s, document %d", source, i+1)
		document, problems := strict.Parse(text.Data)
		items, isList := document.Items()
		switch {
		case len(problems) > 0:
			errs = append(errs, &Refusal{Source: name, Object: nameObject(document.Value), Problems: problems})
		case isList:
			for i, item := range items {
				errs = append(errs, d.addObject(fmt.Sprintf("%s, item %d", name, i+1), item))
			}
		default:
			errs = append(errs, d.addObject(name, document))
		}
	}
	return errors.Join(errs...)
}

// insteadOf says what to use instead of fields of a ResourceSlice that a template does not have.
var insteadOf = map[string]string{
	"spec.pool":                   "use poolName; generation and resourceSliceCount are made up for you",
	"spec.nodeName":               "use nodeSelector; each node that it selects has a pool of its own",
	"spec.allNodes":               "use sharedWith: {allNodes: true}",
	"spec.perDeviceNodeSelection": "use sharedWith: {perDeviceNodeSelection: true}",
}

// addObject adds an object of one of kwok-dra's own kinds. A document that has only comments is
// skipped.
func (d *Documents) addObject(source string, document strict.Document) error {
	object, _ := document.Value.(map[string]any)
	delete(object, "status") // another version may have written fields that this one does not know
	kind, _ := object["kind"].(string)
	switch {
	case document.Value == nil:
		return nil
	case object["apiVersion"] != v1alpha1.APIVersion || !slices.Contains(ownKindNames, kind):
		return refuseObject(source, document.Value)
	case kind == v1alpha1.KwokDRAConfigurationKind:
		configuration := &v1alpha1.KwokDRAConfiguration{}
		problems := document.Decode(configuration, nil)
		_, errs := newConfiguration(configuration)
		errs = append(validation.ValidateKwokDRAConfiguration(configuration), errs...)
		at := location{source, fmt.Sprintf("%s %q", kind, configuration.Name)}
		if len(problems)+len(errs) > 0 {
			return at.refuseDocument(problems, errs)
		}
		d.configurations = append(d.configurations, located[*v1alpha1.KwokDRAConfiguration]{at, configuration})
		return nil
	}
	template := &v1alpha1.ResourcePoolTemplate{}
	problems := document.Decode(template, nil)
	for i, p := range problems {
		if use := insteadOf[p.Path]; p.Unknown && use != "" {
			problems[i].Text = "Unknown field: " + use
		}
	}
	defaults.SetResourcePoolTemplate(template)
	if source != customResource { // in a text, they are of the object that the text was copied from
		template.UID, template.CreationTimestamp = "", metav1.Time{}
	}
	compiled, errs := d.compileTemplate(template)
	at := location{source, fmt.Sprintf("%s %q", kind, template.Name)}
	if len(problems)+len(errs) > 0 {
		return at.refuseDocument(problems, errs)
	}
	compiled.Origin.Carrier, compiled.Origin.Created = d.carrier, template.CreationTimestamp.Time
	d.templates = append(d.templates, located[*devices.Template]{at, compiled})
	return nil
}

// compileTemplate makes a template ready for use. It compiles none once the documents have too many
// devices or counter sets, which NewSet would refuse.
func (d *Documents) compileTemplate(template *v1alpha1.ResourcePoolTemplate) (*devices.Template, field.ErrorList) {
	if excess := d.total.Excess(); excess != "" {
		return nil, field.ErrorList{field.Forbidden(field.NewPath("spec", "devices"), excess)}
	}
	compiled, errs := devices.Compile(template)
	d.total.Add(compiled)
	return compiled, errs
}
