package generate

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/kwok-dra/kwok-dra/pkg/api/v1alpha1"
)

// carried puts the templates into a ConfigMap, each under a key of its own.
func carried(objects []*unstructured.Unstructured, name string) ([]*unstructured.Unstructured, error) {
	namespace, name, is := strings.Cut(name, "/")
	if !is || namespace == "" || name == "" {
		return nil, fmt.Errorf("parse --config-map %q: must be NAMESPACE/NAME", strings.Trim(namespace+"/"+name, "/"))
	}
	data := map[string]any{}
	var others []*unstructured.Unstructured
	for _, object := range objects {
		if object.GetKind() != v1alpha1.ResourcePoolTemplateKind {
			others = append(others, object)
			continue
		}
		text, err := yaml.Marshal(object.Object)
		if err != nil {
			return nil, fmt.Errorf("encode template %s: %w", object.GetName(), err)
		}
		data[object.GetName()+".yaml"] = string(text)
	}
	return append(others, &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"namespace": namespace, "name": name}, "data": data,
	}}), nil
}
