package parameters

import (
	"fmt"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/kwok-dra/kwok-dra/internal/observe/lifecycle"
	"github.com/kwok-dra/kwok-dra/pkg/api/v1alpha1"
)

// Limits of a schema. With the most costly schema, checking the largest parameters, 10 KiB, takes a
// second or two.
const (
	// maxSchemaSize limits the schemas within a schema, plus their required fields and the values
	// of their enums. maxNested limits the schemas in allOf, anyOf, oneOf and not, which all apply
	// to the same value.
	maxSchemaSize, maxNested = 1_000, 50
	// maxPatternLength is in bytes. maxPatternSize is in instructions, of all regular expressions
	// of a schema together.
	maxPatternLength, maxPatternSize = 1_000, 10 * lifecycle.MaxPatternSize
)

// size sums up what a schema has to check.
type size struct {
	schemas, nested, pattern int
	errs                     field.ErrorList
}

// checkSize refuses a schema that is too large, or has rules that take too long.
func checkSize(s *v1alpha1.Schema, path *field.Path) field.ErrorList {
	var all size
	all.addSchema(s, path)
	if all.schemas > maxSchemaSize {
		all.errs = append(all.errs, field.Invalid(path, field.OmitValueType{}, fmt.Sprintf("has more than %d fields, required fields and values: leave some out", maxSchemaSize)))
	}
	if all.nested > maxNested {
		all.errs = append(all.errs, field.Invalid(path, field.OmitValueType{}, fmt.Sprintf("has %d schemas in allOf, anyOf, oneOf and not, and may have %d", all.nested, maxNested)))
	}
	if all.pattern > maxPatternSize {
		all.errs = append(all.errs, field.Invalid(path, field.OmitValueType{}, "its regular expressions are too large together: make them shorter, or repeat less"))
	}
	return all.errs
}

func (z *size) addSchema(s *v1alpha1.Schema, path *field.Path) {
	if z.schemas += 1 + len(s.Required) + len(s.Enum); z.schemas > maxSchemaSize {
		return
	}
	z.addRules(s, path)
	for name, property := range s.Properties {
		z.addSchema(&property, path.Child("properties").Key(name))
	}
	for name, schema := range map[string]*v1alpha1.Schema{"additionalProperties": s.AdditionalProperties, "items": s.Items} {
		if schema != nil {
			z.addSchema(schema, path.Child(name))
		}
	}
	for name, list := range map[string][]v1alpha1.Schema{"allOf": s.AllOf, "anyOf": s.AnyOf, "oneOf": s.OneOf} {
		z.nested += len(list)
		for i := range list {
			z.addSchema(&list[i], path.Child(name).Index(i))
		}
	}
	if s.Not != nil {
		z.nested++
		z.addSchema(s.Not, path.Child("not"))
	}
}

// addRules refuses uniqueItems, which compares each item with each other one and is forbidden in
// custom resource definitions too, and patterns that take too long.
func (z *size) addRules(s *v1alpha1.Schema, path *field.Path) {
	if s.UniqueItems {
		z.errs = append(z.errs, field.Forbidden(path.Child("uniqueItems"), "takes too long: remove it"))
	}
	if len(s.Pattern) > maxPatternLength {
		z.errs = append(z.errs, field.TooLong(path.Child("pattern"), "", maxPatternLength))
		return
	}
	part := lifecycle.PatternSize(s.Pattern)
	if part > lifecycle.MaxPatternSize {
		z.errs = append(z.errs, field.Invalid(path.Child("pattern"), s.Pattern, "is too large: make it shorter, or repeat less"))
	}
	z.pattern += part
}
