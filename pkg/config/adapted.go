package config

import (
	"errors"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kwok-dra/kwok-dra/pkg/adapters"
	"github.com/kwok-dra/kwok-dra/pkg/api/v1alpha1"
	"github.com/kwok-dra/kwok-dra/pkg/devices"
)

// Class is a DeviceClass that is to be there.
type Class struct {
	resourcev1.DeviceClass
	// For refers to the object that wants it, and that is told of problems.
	For *corev1.ObjectReference
}

// adopt makes documents of what an adapter has made of one. Part tells of which
// part a template is.
func adopt(origin devices.Origin, adapted *adapters.Adapted, part func(*v1alpha1.ResourcePoolTemplate) string) (*Documents, error) {
	documents := &Documents{changes: adapted.Changes}
	for i := range adapted.Templates {
		template := &adapted.Templates[i]
		compiled, errs := devices.Compile(template)
		if len(errs) > 0 {
			return nil, fmt.Errorf("%s: %s: %w", origin.Document, template.Name, errs.ToAggregate())
		}
		compiled.Origin = origin
		if part != nil {
			compiled.Origin.Part = part(template)
		}
		documents.templates = append(documents.templates, sourced[*devices.Template]{compiled, origin.Document})
	}
	return documents, nil
}

// decodeAdapted decodes objects of someone else's kind.
func decodeAdapted(adapt func(*unstructured.Unstructured) (*adapters.Adapted, error)) func(*unstructured.Unstructured) (*Documents, error) {
	return func(source *unstructured.Unstructured) (*Documents, error) {
		origin := devices.Origin{Document: source.GetKind() + " " + source.GetName(), Created: source.GetCreationTimestamp().Time, Carrier: referTo(source)}
		adapted, err := adapt(source)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", origin.Document, err)
		}
		return adopt(origin, adapted, poolOf)
	}
}

// poolOf is the pool of a DRAConfig that a template is made of.
func poolOf(template *v1alpha1.ResourcePoolTemplate) string {
	if pool := template.Spec.SliceLabels[adapters.PoolLabel]; pool != "" {
		return "pool " + pool
	}
	return ""
}

// adaptedKey is the key of the ConfigMap dra-kwok-configmap that has its text.
const adaptedKey = "config.yaml"

// decodeAdaptedConfigMap reads the ConfigMap dra-kwok-configmap. One without data
// asks for nothing.
func decodeAdaptedConfigMap(configMap *corev1.ConfigMap) (*Documents, error) {
	text, has := configMap.Data[adaptedKey]
	if !has && len(configMap.Data) > 0 {
		return nil, fmt.Errorf("ConfigMap %s/%s: data: Required value: the key %s, with driver and mappings", configMap.Namespace, configMap.Name, adaptedKey)
	}
	carrier := referToConfigMap(configMap)
	origin := devices.Origin{Document: fmt.Sprintf("ConfigMap %s/%s", configMap.Namespace, configMap.Name), Carrier: carrier}
	adapted, err := adapters.ConfigMap(text)
	if err != nil {
		return nil, fmt.Errorf("%s, key %s: %w", origin.Document, adaptedKey, err)
	}
	documents, err := adopt(origin, adapted, func(template *v1alpha1.ResourcePoolTemplate) string { return "template " + template.Name })
	if err != nil {
		return nil, err
	}
	for _, class := range adapted.Classes {
		documents.classes = append(documents.classes, Class{DeviceClass: class, For: carrier})
	}
	return documents, nil
}

// normalized says what of the documents is not taken as it is written, or nothing.
// There may be no documents.
func (d *Documents) normalized() string {
	if d == nil || len(d.changes) == 0 {
		return ""
	}
	return v1alpha1.EventMessage(errors.New("not taken as it is written: " + strings.Join(d.changes, "; ")))
}
