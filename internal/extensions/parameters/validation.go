package parameters

import (
	"encoding/json"
	"fmt"
	"math"
	"regexp"
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/kwok-dra/kwok-dra/internal/util/fieldcheck"
	"github.com/kwok-dra/kwok-dra/pkg/api/v1alpha1"
)

// validateParameters checks the kinds of parameters, and refuses duplicates.
func validateParameters(spec *v1alpha1.ResourcePoolTemplateSpec, path *field.Path) field.ErrorList {
	p, at := spec.Parameters, fieldcheck.New(path.Child("parameters"))
	if p == nil {
		return nil
	}
	const example = "for example gpu.resource.example.com/v1alpha1"
	for i := range p.Kinds {
		kind, at := &p.Kinds[i], at.AtField("kinds").AtIndex(i)
		if version := at.AtField("apiVersion"); version.RequirePresence(kind.APIVersion != "", "the apiVersion of the parameters, %s", example) {
			parsed, err := schema.ParseGroupVersion(kind.APIVersion)
			version.RequireThat(err == nil && parsed.Version != "", kind.APIVersion, "must be group/version, %s", example)
		}
		at.AtField("kind").RequirePresence(kind.Kind != "", "the kind of the parameters, for example GpuConfig")
		isSame := func(other v1alpha1.ParametersKind) bool {
			return other.APIVersion == kind.APIVersion && other.Kind == kind.Kind
		}
		if slices.ContainsFunc(p.Kinds[:i], isSame) {
			at.AddErrors(field.Duplicate(at.Path, kind.APIVersion+", "+kind.Kind))
		}
		if kind.Schema == nil {
			continue
		}
		schema := at.AtField("schema")
		if kind.Schema.Type != "" {
			schema.AtField("type").RequireThat(kind.Schema.Type == v1alpha1.SchemaObject, kind.Schema.Type, "must be object, since parameters have an apiVersion and a kind")
		}
		validateSchema(kind.Schema, schema)
	}
	return at.Errors()
}

var schemaTypes = []v1alpha1.SchemaType{
	v1alpha1.SchemaObject, v1alpha1.SchemaArray, v1alpha1.SchemaString,
	v1alpha1.SchemaInteger, v1alpha1.SchemaNumber, v1alpha1.SchemaBoolean,
}

// validateSchema requires the structural form of schemas in custom resource definitions: each value
// has a type, and each field is declared outside of allOf, anyOf, oneOf and not.
func validateSchema(s *v1alpha1.Schema, at fieldcheck.Checker) {
	kind := at.AtField("type")
	switch {
	case s.Type != "" && s.IntOrString:
		kind.AddInvalid(s.Type, "must be left out with x-kubernetes-int-or-string")
	case s.Type != "":
		fieldcheck.OneOf(kind, s.Type, schemaTypes...)
	case !s.IntOrString && !s.PreserveUnknownFields:
		kind.RequirePresence(false, "one of %s", fieldcheck.JoinTexts(schemaTypes))
	}
	validateRules(s, s, at)
	if additional := at.AtField("additionalProperties"); s.AdditionalProperties != nil {
		additional.Forbid(len(s.Properties) > 0, "properties are there already: remove one of the two")
		validateSchema(s.AdditionalProperties, additional)
	}
	fieldcheck.CheckValues(at.AtField("properties"), s.Properties, func(_ string, property v1alpha1.Schema, at fieldcheck.Checker) { validateSchema(&property, at) })
	if items := at.AtField("items"); s.Items != nil {
		validateSchema(s.Items, items)
	} else {
		items.RequirePresence(s.Type != v1alpha1.SchemaArray, "the schema of the items")
	}
	validateAlternatives(s, s, at)
}

// validateAlternatives checks the schemas in allOf, anyOf, oneOf and not. The outer schema declares
// the types and the fields of all of them.
func validateAlternatives(s, outer *v1alpha1.Schema, at fieldcheck.Checker) {
	for _, list := range []struct {
		name    string
		schemas []v1alpha1.Schema
	}{{"allOf", s.AllOf}, {"anyOf", s.AnyOf}, {"oneOf", s.OneOf}} {
		for i := range list.schemas {
			validateAlternative(&list.schemas[i], outer, at.AtField(list.name).AtIndex(i))
		}
	}
	if s.Not != nil {
		validateAlternative(s.Not, outer, at.AtField("not"))
	}
}

func validateAlternative(s, outer *v1alpha1.Schema, at fieldcheck.Checker) {
	if s.Type != "" {
		fieldcheck.OneOf(at.AtField("type"), s.Type, schemaTypes...)
	}
	validateRules(s, outer, at)
	fieldcheck.CheckValues(at.AtField("properties"), s.Properties, func(name string, property v1alpha1.Schema, at fieldcheck.Checker) {
		known, ok := outer.Properties[name]
		if !ok && outer.AdditionalProperties != nil {
			known, ok = *outer.AdditionalProperties, true
		}
		if at.RequireThat(ok || outer.PreserveUnknownFields, name, "must be one of the properties outside as well%s", fieldcheck.ListNames(outer.Properties)) {
			validateAlternative(&property, &known, at)
		}
	})
	validateAlternatives(s, outer, at)
}

// validateRules checks the rules of a schema without those of its parts. The object that it is of
// has its properties declared in another schema if this one is in allOf, anyOf, oneOf or not.
func validateRules(s, declared *v1alpha1.Schema, at fieldcheck.Checker) {
	ofType := func(name string, has bool, types ...v1alpha1.SchemaType) {
		at.AtField(name).RequireThat(!has || s.Type == "" || slices.Contains(types, s.Type), field.OmitValueType{}, "is of type %s, not of %s", fieldcheck.JoinTexts(types), s.Type)
	}
	ofType("properties", len(s.Properties) > 0, v1alpha1.SchemaObject)
	ofType("additionalProperties", s.AdditionalProperties != nil, v1alpha1.SchemaObject)
	ofType("required", len(s.Required) > 0, v1alpha1.SchemaObject)
	ofType("items", s.Items != nil, v1alpha1.SchemaArray)
	ofType("pattern", s.Pattern != "", v1alpha1.SchemaString)
	ofType("minLength", s.MinLength != nil, v1alpha1.SchemaString)
	ofType("maxLength", s.MaxLength != nil, v1alpha1.SchemaString)
	ofType("minimum", s.Minimum != nil, v1alpha1.SchemaInteger, v1alpha1.SchemaNumber)
	ofType("maximum", s.Maximum != nil, v1alpha1.SchemaInteger, v1alpha1.SchemaNumber)
	for i := range s.Enum {
		validateEnum(s.Enum[i].Raw, s.Type, at.AtField("enum").AtIndex(i))
	}
	if _, err := regexp.Compile(s.Pattern); err != nil {
		at.AtField("pattern").AddInvalid(s.Pattern, "must be a regular expression: %v", err)
	}
	at.AtField("multipleOf").RequireThat(s.MultipleOf == nil || *s.MultipleOf > 0, s.MultipleOf, "must be more than 0")
	for _, limits := range []struct {
		what        string
		least, most *int64
	}{{"Length", s.MinLength, s.MaxLength}, {"Items", s.MinItems, s.MaxItems}, {"Properties", s.MinProperties, s.MaxProperties}} {
		least, most := limits.least, limits.most
		at.AtField("min"+limits.what).RequireThat(least == nil || *least >= 0, least, "must not be less than 0")
		at.AtField("max"+limits.what).RequireThat(least == nil || most == nil || *least <= *most, most, "must be at least min%s", limits.what)
	}
	at.AtField("maximum").RequireThat(s.Minimum == nil || s.Maximum == nil || *s.Minimum <= *s.Maximum, s.Maximum, "must be at least the minimum")
	fieldcheck.CheckItems(at.AtField("required"), s.Required, func(name string, at fieldcheck.Checker) {
		_, ok := declared.Properties[name]
		at.RequireThat(ok || declared.AdditionalProperties != nil || declared.PreserveUnknownFields, name, "must be one of the properties%s", fieldcheck.ListNames(declared.Properties))
	})
}

// validateEnum requires a value of the type, or null, which has no raw text. It hints at quotes,
// since YAML takes some words for bools.
func validateEnum(raw []byte, want v1alpha1.SchemaType, at fieldcheck.Checker) {
	var value any
	if err := json.Unmarshal(raw, &value); len(raw) == 0 {
		return
	} else if err != nil {
		at.AddInvalid(string(raw), "%v", err)
		return
	}
	fits := want == ""
	switch v := value.(type) {
	case string:
		fits = fits || want == v1alpha1.SchemaString
	case bool:
		fits = fits || want == v1alpha1.SchemaBoolean
	case float64:
		fits = fits || want == v1alpha1.SchemaNumber || want == v1alpha1.SchemaInteger && v == math.Trunc(v)
	case []any:
		fits = fits || want == v1alpha1.SchemaArray
	case map[string]any:
		fits = fits || want == v1alpha1.SchemaObject
	}
	hint := ""
	if _, isText := value.(string); !isText && want == v1alpha1.SchemaString {
		hint = fmt.Sprintf(": put it in quotes, %q", raw)
	}
	at.RequireThat(fits, string(raw), "must be of type %s%s", want, hint)
}
