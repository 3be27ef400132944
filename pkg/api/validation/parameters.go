package validation

import (
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kwok-dra/kwok-dra/pkg/api/v1alpha1"
)

// validateParameters checks the kinds of parameters, and refuses duplicates.
func validateParameters(p *v1alpha1.Parameters, at checker) {
	kinds := at.atField("kinds")
	for i := range p.Kinds {
		kind, at := &p.Kinds[i], kinds.atIndex(i)
		validateAPIVersion(kind.APIVersion, at.atField("apiVersion"))
		at.atField("kind").requirePresence(kind.Kind != "", "the kind of the parameters, for example GpuConfig")
		if slices.ContainsFunc(p.Kinds[:i], func(other v1alpha1.ParametersKind) bool {
			return other.APIVersion == kind.APIVersion && other.Kind == kind.Kind
		}) {
			at.addDuplicate(kind.APIVersion + ", " + kind.Kind)
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

func validateAPIVersion(version string, at checker) {
	const example = "for example gpu.resource.example.com/v1alpha1"
	if !at.requirePresence(version != "", "the apiVersion of the parameters, %s", example) {
		return
	}
	parsed, err := schema.ParseGroupVersion(version)
	at.requireThat(err == nil && parsed.Version != "", version, "must be group/version, %s", example)
}
