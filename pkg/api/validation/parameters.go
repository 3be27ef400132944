package validation

import (
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/kwok-dra/kwok-dra/pkg/api/v1alpha1"
)

// validateParameters checks the kinds of parameters, and refuses duplicates.
func validateParameters(p *v1alpha1.Parameters, at checker) {
	if p == nil {
		return
	}
	const example = "for example gpu.resource.example.com/v1alpha1"
	for i := range p.Kinds {
		kind, at := &p.Kinds[i], at.atField("kinds").atIndex(i)
		if version := at.atField("apiVersion"); version.requirePresence(kind.APIVersion != "", "the apiVersion of the parameters, %s", example) {
			parsed, err := schema.ParseGroupVersion(kind.APIVersion)
			version.requireThat(err == nil && parsed.Version != "", kind.APIVersion, "must be group/version, %s", example)
		}
		at.atField("kind").requirePresence(kind.Kind != "", "the kind of the parameters, for example GpuConfig")
		isSame := func(other v1alpha1.ParametersKind) bool {
			return other.APIVersion == kind.APIVersion && other.Kind == kind.Kind
		}
		if slices.ContainsFunc(p.Kinds[:i], isSame) {
			at.addErrors(field.Duplicate(at.path, kind.APIVersion+", "+kind.Kind))
		}
		if kind.Schema == nil {
			continue
		}
		schema := at.atField("schema")
		if kind.Schema.Type != "" {
			schema.atField("type").requireThat(kind.Schema.Type == v1alpha1.SchemaObject, kind.Schema.Type, "must be object, since parameters have an apiVersion and a kind")
		}
		validateSchema(kind.Schema, schema)
	}
}
