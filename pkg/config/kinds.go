package config

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kwok-dra/kwok-dra/pkg/adapters"
	"github.com/kwok-dra/kwok-dra/pkg/api/v1alpha1"
	"github.com/kwok-dra/kwok-dra/pkg/devices"
	"github.com/kwok-dra/kwok-dra/pkg/suggest"
)

// Kind is a kind of custom resources that configuration is read from.
type Kind struct {
	Name     string
	Resource schema.GroupVersionResource
}

// The kinds of Karpenter that configuration is read from.
const (
	DRAConfigKind   = "DRAConfig"
	NodeOverlayKind = "NodeOverlay"
)

var (
	ownKinds = []Kind{
		{v1alpha1.ResourcePoolTemplateKind, v1alpha1.GroupVersion.WithResource("resourcepooltemplates")},
		{v1alpha1.KwokDRAConfigurationKind, v1alpha1.GroupVersion.WithResource("kwokdraconfigurations")},
	}
	adaptedKinds = []Kind{
		{DRAConfigKind, schema.GroupVersionResource{Group: "test.karpenter.sh", Version: "v1alpha1", Resource: "draconfigs"}},
		{NodeOverlayKind, schema.GroupVersionResource{Group: "karpenter.sh", Version: "v1alpha1", Resource: "nodeoverlays"}},
	}
)

var (
	ownKindNames     = []string{v1alpha1.ResourcePoolTemplateKind, v1alpha1.KwokDRAConfigurationKind}
	adaptedKindNames = []string{DRAConfigKind, NodeOverlayKind}
)

// OwnKinds are ResourcePoolTemplate and KwokDRAConfiguration.
func OwnKinds() []Kind {
	return slices.Clone(ownKinds)
}

// AdaptedKinds finds kinds of Karpenter by their names.
func AdaptedKinds(names ...string) ([]Kind, error) {
	var found []Kind
	for i, name := range names {
		at := slices.IndexFunc(adaptedKinds, func(k Kind) bool { return k.Name == name })
		if at < 0 {
			return nil, fmt.Errorf("unknown kind %q: must be %s or %s%s", name, DRAConfigKind, NodeOverlayKind, didYouMean(name, adaptedKindNames))
		}
		if slices.Contains(names[:i], name) {
			return nil, fmt.Errorf("kind %q is there twice: remove one", name)
		}
		found = append(found, adaptedKinds[at])
	}
	return found, nil
}

// didYouMean proposes the known word that a word is most like.
func didYouMean(word string, known []string) string {
	if nearest := suggest.Nearest(word, known); nearest != "" {
		return "; did you mean " + nearest + "?"
	}
	return ""
}

// customResource is the source of documents that are objects of their own.
const customResource = "custom resource"

// decodeObject reads an object of any kind.
func decodeObject(source *unstructured.Unstructured) (*Documents, error) {
	switch source.GetKind() {
	case DRAConfigKind:
		return decodeAdapted(source, adapters.DRAConfig)
	case NodeOverlayKind:
		return decodeAdapted(source, adapters.NodeOverlay)
	}
	return decodeOwn(source)
}

// decodeOwn reads an object of kwok-dra's own kinds.
func decodeOwn(source *unstructured.Unstructured) (*Documents, error) {
	encoded, _ := json.Marshal(source.Object) // it has been JSON before
	documents := &Documents{carrier: referTo(source)}
	return documents, documents.add(customResource, encoded)
}

func referTo(source *unstructured.Unstructured) *corev1.ObjectReference {
	return &corev1.ObjectReference{APIVersion: source.GetAPIVersion(), Kind: source.GetKind(), Name: source.GetName(), UID: source.GetUID()}
}

// decodeAdapted reads an object of someone else's kind.
func decodeAdapted(source *unstructured.Unstructured, adapt func(*unstructured.Unstructured) (*adapters.Adapted, error)) (*Documents, error) {
	origin := devices.Origin{Document: source.GetKind() + " " + source.GetName(), Created: source.GetCreationTimestamp().Time, Carrier: referTo(source)}
	adapted, err := adapt(source)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", origin.Document, err)
	}
	return adopt(origin, adapted, poolOf)
}

// poolOf is the pool of a DRAConfig that a template is made of.
func poolOf(template *v1alpha1.ResourcePoolTemplate) string {
	if pool := template.Spec.SliceLabels[adapters.PoolLabel]; pool != "" {
		return "pool " + pool
	}
	return ""
}

// adopt makes documents of what an adapter has made. Part tells of which part a template is.
func adopt(origin devices.Origin, adapted *adapters.Adapted, part func(*v1alpha1.ResourcePoolTemplate) string) (*Documents, error) {
	documents := &Documents{}
	if len(adapted.Changes) > 0 {
		documents.changes = v1alpha1.EventMessage(errors.New("not taken as it is written: " + strings.Join(adapted.Changes, "; ")))
	}
	for i := range adapted.Templates {
		template := &adapted.Templates[i]
		compiled, errs := documents.compile(template)
		if len(errs) > 0 {
			return nil, fmt.Errorf("%s: %s: %w", origin.Document, template.Name, errs.ToAggregate())
		}
		compiled.Origin = origin
		compiled.Origin.Part = part(template)
		at := placeOf(origin.Document, v1alpha1.ResourcePoolTemplateKind, template.Name)
		documents.templates = append(documents.templates, sourced[*devices.Template]{at, compiled})
	}
	for _, class := range adapted.Classes {
		documents.classes = append(documents.classes, Class{DeviceClass: class, For: origin.Carrier})
	}
	return documents, nil
}
