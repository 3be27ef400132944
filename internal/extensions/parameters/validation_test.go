package parameters

import (
	"testing"

	"github.com/stretchr/testify/require"
	"sigs.k8s.io/yaml"

	"github.com/kwok-dra/kwok-dra/pkg/api/v1alpha1"
)

func TestParametersValidation(t *testing.T) {
	t.Parallel()
	schema := func(text string) string { return "{kinds: [{apiVersion: g/v1, kind: K, schema: " + text + "}]}" }
	field1 := func(text string) string { return schema("{type: object, properties: {a: " + text + "}}") }
	const at, a = "parameters.kinds[0].schema", "parameters.kinds[0].schema.properties[a]"
	for name, test := range map[string]struct {
		given string
		want  []string
	}{
		"none":     {`{}`, nil},
		"any":      {`{kinds: [{apiVersion: g/v1, kind: K}, {apiVersion: g/v2, kind: K}, {apiVersion: v1, kind: L}]}`, nil},
		"nothing":  {`{kinds: [{}]}`, []string{"parameters.kinds[0].apiVersion: Required value: the apiVersion of the parameters, for example gpu.resource.example.com/v1alpha1", "parameters.kinds[0].kind: Required value: the kind of the parameters, for example GpuConfig"}},
		"version":  {`{kinds: [{apiVersion: a/b/c, kind: K}]}`, []string{`parameters.kinds[0].apiVersion: Invalid value: "a/b/c": must be group/version, for example gpu.resource.example.com/v1alpha1`}},
		"twice":    {`{kinds: [{apiVersion: g/v1, kind: K}, {apiVersion: g/v1, kind: K}]}`, []string{`parameters.kinds[1]: Duplicate value: "g/v1, K"`}},
		"no type":  {schema(`{}`), []string{at + `.type: Required value: one of object, array, string, integer, number, boolean`}},
		"a list":   {schema(`{type: array, items: {type: string}}`), []string{at + `.type: Invalid value: "array": must be object, since parameters have an apiVersion and a kind`}},
		"any kind": {schema(`{x-kubernetes-preserve-unknown-fields: true}`), nil},

		"bad type":           {field1(`{type: int}`), []string{a + `.type: Unsupported value: "int": supported values: "object", "array", "string", "integer", "number", "boolean"; did you mean "integer"?`}},
		"type and int":       {field1(`{type: string, x-kubernetes-int-or-string: true}`), []string{a + `.type: Invalid value: "string": must be left out with x-kubernetes-int-or-string`}},
		"int or string":      {field1(`{x-kubernetes-int-or-string: true}`), nil},
		"no items":           {field1(`{type: array}`), []string{a + `.items: Required value: the schema of the items`}},
		"items":              {field1(`{type: array, items: {type: array, items: {type: number}}}`), nil},
		"bad items":          {field1(`{type: array, items: {type: number, minLength: 1}}`), []string{a + `.items.minLength: Invalid value: is of type string, not of number`}},
		"properties of text": {field1(`{type: string, properties: {b: {type: string}}}`), []string{a + `.properties: Invalid value: is of type object, not of string`}},
		"minimum of text":    {field1(`{type: string, minimum: 1}`), []string{a + `.minimum: Invalid value: is of type integer, number, not of string`}},
		"both":               {field1(`{type: object, properties: {b: {type: string}}, additionalProperties: {type: string}}`), []string{a + `.additionalProperties: Forbidden: properties are there already: remove one of the two`}},
		"bad values":         {field1(`{type: object, additionalProperties: {type: list}}`), []string{a + `.additionalProperties.type: Unsupported value: "list": supported values: "object", "array", "string", "integer", "number", "boolean"`}},
		"required":           {field1(`{type: object, properties: {b: {type: string}}, required: [c]}`), []string{a + `.required[0]: Invalid value: "c": must be one of the properties; it has b`}},
		"required twice":     {field1(`{type: object, properties: {b: {type: string}}, required: [b, b]}`), []string{a + `.required[1]: Duplicate value: "b"`}},
		"required of any":    {field1(`{type: object, additionalProperties: {type: string}, required: [c]}`), nil},
		"enum":               {field1(`{type: string, enum: ["on", a]}`), nil},
		"enum of bools":      {field1(`{type: string, enum: [on, a]}`), []string{a + `.enum[0]: Invalid value: "true": must be of type string: put it in quotes, "true"`}},
		"enum of numbers": {field1(`{type: integer, enum: [1, 1.5, x, [], {}, null]}`), []string{
			a + `.enum[1]: Invalid value: "1.5": must be of type integer`, a + `.enum[2]: Invalid value: "\"x\"": must be of type integer`,
			a + `.enum[3]: Invalid value: "[]": must be of type integer`, a + `.enum[4]: Invalid value: "{}": must be of type integer`,
		}},
		"pattern":           {field1(`{type: string, pattern: "("}`), []string{a + ".pattern: Invalid value: \"(\": must be a regular expression: error parsing regexp: missing closing ): `(`"}},
		"lengths":           {field1(`{type: string, minLength: 3, maxLength: 2}`), []string{a + `.maxLength: Invalid value: 2: must be at least minLength`}},
		"less than nothing": {field1(`{type: array, minItems: -1, items: {type: string}}`), []string{a + `.minItems: Invalid value: -1: must not be less than 0`}},
		"limits":            {field1(`{type: number, minimum: 3, maximum: 2, multipleOf: 0}`), []string{a + `.multipleOf: Invalid value: 0: must be more than 0`, a + `.maximum: Invalid value: 2: must be at least the minimum`}},
		"nested":            {schema(`{type: object, properties: {a: {type: string}}, oneOf: [{properties: {a: {enum: [b]}}}, {required: [a]}], not: {properties: {a: {pattern: c}}}}`), nil},
		"nested, unknown":   {schema(`{type: object, properties: {a: {type: string}}, anyOf: [{properties: {b: {type: string}}}]}`), []string{at + `.anyOf[0].properties[b]: Invalid value: "b": must be one of the properties outside as well; it has a`}},
		"nested, required":  {schema(`{type: object, properties: {a: {type: string}}, not: {required: [b]}}`), []string{at + `.not.required[0]: Invalid value: "b": must be one of the properties; it has a`}},
		"nested twice":      {schema(`{type: object, properties: {a: {type: string}}, allOf: [{not: {properties: {a: {type: text}}}}]}`), []string{at + `.allOf[0].not.properties[a].type: Unsupported value: "text": supported values: "object", "array", "string", "integer", "number", "boolean"`}},
		"nested, values":    {schema(`{type: object, additionalProperties: {type: object, properties: {b: {type: string}}}, not: {properties: {any: {required: [c]}}}}`), []string{at + `.not.properties[any].required[0]: Invalid value: "c": must be one of the properties; it has b`}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var given v1alpha1.Parameters
			require.NoError(t, yaml.UnmarshalStrict([]byte(test.given), &given))
			var got []string
			for _, err := range validateParameters(&v1alpha1.ResourcePoolTemplateSpec{Parameters: &given}, nil) {
				got = append(got, err.Error())
			}
			require.Equal(t, test.want, got)
		})
	}
}
