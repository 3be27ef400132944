package config

import (
	"errors"
	"fmt"
	"strings"

	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kwok-dra/kwok-dra/internal/devices"
	"github.com/kwok-dra/kwok-dra/internal/util/suggest"
	"github.com/kwok-dra/kwok-dra/pkg/api/v1alpha1"
)

// Kind is a kind of custom resources that configuration is read from.
type Kind struct {
	Name     string
	Resource schema.GroupVersionResource
	// Adapt turns an object into templates. It is nil for kwok-dra's own kinds.
	Adapt func(object *unstructured.Unstructured) (*Adapted, error)
	// PartOf names the part of the object that a template is made of, or returns "" for the whole.
	PartOf func(template *v1alpha1.ResourcePoolTemplate) string
}

// Adapted is what an adapter makes of a document in another program's format.
type Adapted struct {
	// Templates are defaulted and valid, in the order of their names. Templates that form one
	// pool have their devices in this order.
	Templates []v1alpha1.ResourcePoolTemplate
	// Classes are the DeviceClasses that the document's Pods need.
	Classes []resourcev1.DeviceClass
	// Changes has a sentence for each value that is published in another form than it was
	// written, or left out.
	Changes []string
}

// OwnKinds returns ResourcePoolTemplate and KwokDRAConfiguration.
func OwnKinds() []Kind {
	return []Kind{
		{Name: v1alpha1.ResourcePoolTemplateKind, Resource: v1alpha1.GroupVersion.WithResource("resourcepooltemplates")},
		{Name: v1alpha1.KwokDRAConfigurationKind, Resource: v1alpha1.GroupVersion.WithResource("kwokdraconfigurations")},
	}
}

var ownKindNames = []string{v1alpha1.ResourcePoolTemplateKind, v1alpha1.KwokDRAConfigurationKind}

// adaptedKinds are the kinds of other programs that this one reads, by name.
var adaptedKinds = map[string]Kind{}

// RegisterAdaptedKinds has this program read kinds of others. Call it in an init function.
func RegisterAdaptedKinds(kinds ...Kind) {
	for _, kind := range kinds {
		adaptedKinds[kind.Name] = kind
	}
}

// didYouMean proposes the known word that is nearest, for the end of an error.
func didYouMean(word string, known []string) string {
	if nearest := suggest.Nearest(word, known); nearest != "" {
		return "; did you mean " + nearest + "?"
	}
	return ""
}

// compileAdapted makes documents of what an adapter has made.
func compileAdapted(origin devices.Origin, adapted *Adapted, partOf func(*v1alpha1.ResourcePoolTemplate) string) (*Documents, error) {
	documents := &Documents{}
	if len(adapted.Changes) > 0 {
		documents.changes = v1alpha1.EventMessage(errors.New("not taken as it is written: " + strings.Join(adapted.Changes, "; ")))
	}
	for i := range adapted.Templates {
		template := &adapted.Templates[i]
		compiled, errs := documents.compileTemplate(template)
		if len(errs) > 0 {
			return nil, fmt.Errorf("%s: %s: %w", origin.Document, template.Name, errs.ToAggregate())
		}
		compiled.Origin = origin
		compiled.Origin.Part = partOf(template)
		at := location{origin.Document, fmt.Sprintf("%s %q", v1alpha1.ResourcePoolTemplateKind, template.Name)}
		documents.templates = append(documents.templates, located[*devices.Template]{at, compiled})
	}
	for _, class := range adapted.Classes {
		documents.classes = append(documents.classes, Class{DeviceClass: class, For: origin.Carrier})
	}
	return documents, nil
}
