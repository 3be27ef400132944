package parameters

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/util/validation/field"
	sigsjson "sigs.k8s.io/json"
	"sigs.k8s.io/yaml"

	"github.com/kwok-dra/kwok-dra/pkg/api/v1alpha1"
)

// gpuConfig is much like the parameters of the DRA example driver.
const gpuConfig = `
kinds:
- apiVersion: gpu.example.com/v1
  kind: GpuConfig
  schema:
    type: object
    properties:
      sharing:
        type: object
        required: [strategy]
        properties:
          strategy: {type: string, enum: [TimeSlicing, SpacePartitioning]}
          partitions: {type: integer, format: int32, minimum: 0}
          clients: {type: array, maxItems: 2, items: {type: object, properties: {name: {type: string, pattern: "^[a-z]+$"}}}}
        not: {properties: {strategy: {enum: [TimeSlicing]}}, required: [partitions]}
      limits: {type: object, additionalProperties: {x-kubernetes-int-or-string: true}}
      note: {type: string, nullable: true}
      mode: {type: object, required: [name, level], default: {name: a}, properties: {name: {type: string}, level: {type: integer, default: 1}}}
      since: {type: string, format: date-time}
      any: {type: object, x-kubernetes-preserve-unknown-fields: true, properties: {level: {type: integer, enum: [1, 2]}}}
- apiVersion: gpu.example.com/v1
  kind: Free
`

func compiled(t testing.TB, source string) *Kinds {
	t.Helper()
	var parameters v1alpha1.Parameters
	require.NoError(t, yaml.UnmarshalStrict([]byte(source), &parameters))
	kinds, errs := Compile(&parameters, field.NewPath("spec", "parameters"))
	require.Empty(t, errs)
	return kinds
}

func TestCheck(t *testing.T) {
	t.Parallel()
	config := func(fields string) string {
		return `{"apiVersion":"gpu.example.com/v1","kind":"GpuConfig"` + fields + `}`
	}
	for name, test := range map[string]struct{ parameters, want string }{
		"empty":               {config(``), ""},
		"all":                 {config(`,"sharing":{"strategy":"SpacePartitioning","partitions":3,"clients":[{"name":"a"},{}]},"limits":{"a":1,"b":"10%"},"note":"n","any":{"x":[{"y":1}]}`), ""},
		"null":                {config(`,"sharing":null,"note":null,"any":{"level":null,"x":null}`), ""},
		"kind without fields": {`{"apiVersion":"gpu.example.com/v1","kind":"Free","a":{"b":1}}`, ""},

		"unknown kind":       {`{"apiVersion":"gpu.example.com/v1","kind":"NetConfig"}`, `no kind "NetConfig" is registered for version "gpu.example.com/v1" in scheme "gpu.example.com"`},
		"unknown version":    {`{"apiVersion":"gpu.example.com/v2","kind":"GpuConfig"}`, `no kind "GpuConfig" is registered for version "gpu.example.com/v2" in scheme "gpu.example.com"`},
		"no kind":            {`{"apiVersion":"gpu.example.com/v1"}`, `Object 'Kind' is missing in '{"apiVersion":"gpu.example.com/v1"}'`},
		"no version":         {`{"kind":"GpuConfig"}`, `Object 'apiVersion' is missing in '{"kind":"GpuConfig"}'`},
		"kind is no text":    {`{"apiVersion":"gpu.example.com/v1","kind":1}`, `Object 'Kind' is missing in '{"apiVersion":"gpu.example.com/v1","kind":1}'`},
		"no object":          {`"GpuConfig"`, `couldn't get version/kind; json parse error: json: cannot unmarshal string into Go value of type map[string]interface {}`},
		"unknown field":      {config(`,"shring":{}`), `strict decoding error: unknown field "shring"`},
		"unknown in a list":  {config(`,"sharing":{"strategy":"TimeSlicing","clients":[{},{"nam":"a"}]}`), `strict decoding error: unknown field "sharing.clients[1].nam"`},
		"unknown, case":      {config(`,"Sharing":{}`), `strict decoding error: unknown field "Sharing"`},
		"unknown before bad": {config(`,"sharing":{"strategy":"MPS","b":1,"a":null}`), `strict decoding error: unknown field "sharing.a", unknown field "sharing.b"`},
		"twice":              {config(`,"note":"a","note":"b"`), `strict decoding error: duplicate field "note"`},
		"not of the enum":    {config(`,"sharing":{"strategy":"MPS"}`), `sharing.strategy: Unsupported value: "MPS": supported values: "TimeSlicing", "SpacePartitioning"`},
		"enum of integers":   {config(`,"any":{"level":3}`), `any.level: Unsupported value: 3: supported values: "1", "2"`},
		"missing":            {config(`,"sharing":{}`), `sharing.strategy: Required value`},
		"wrong type":         {config(`,"sharing":{"strategy":"SpacePartitioning","partitions":"3"}`), `sharing.partitions: Invalid value: must be of type integer, is of type string`},
		"object as text":     {config(`,"sharing":"TimeSlicing"`), `sharing: Invalid value: must be of type object, is of type string, sharing: Invalid value: must not validate the schema (not)`},
		"text as object":     {config(`,"note":{"a":1}`), `note: Invalid value: must be of type string, is of type object`},
		"too small":          {config(`,"sharing":{"strategy":"SpacePartitioning","partitions":-1}`), `sharing.partitions: Invalid value: -1: should be greater than or equal to 0`},
		"too many":           {config(`,"sharing":{"strategy":"TimeSlicing","clients":[{},{},{}]}`), `sharing.clients: Invalid value: 3: should have at most 2 items`},
		"pattern":            {config(`,"sharing":{"strategy":"TimeSlicing","clients":[{"name":"A"}]}`), `sharing.clients[0].name: Invalid value: "A": should match '^[a-z]+$'`},
		"int or string":      {config(`,"limits":{"a":1.5,"b":true}`), `limits.a: Invalid value: 1.5: must be of type integer or string, limits.b: Invalid value: true: must be of type integer or string`},
		"together":           {config(`,"sharing":{"strategy":"TimeSlicing","partitions":1}`), `sharing: Invalid value: must not validate the schema (not)`},
		"default":            {config(`,"mode":{"name":"b"},"since":"2026-01-01T00:00:00Z"`), ""},
		"default for null":   {config(`,"mode":{"name":"b","level":null}`), ""},
		"no default":         {config(`,"mode":{"level":2}`), `mode.name: Required value`},
		"format":             {config(`,"since":"now"`), `since: Invalid value: "now": must have the format date-time`},
		"float":              {config(`,"sharing":{"strategy":"SpacePartitioning","partitions":3.0}`), `sharing.partitions: Invalid value: must be of type integer, is of type number`},
		"too large":          {config(`,"any":{"level":99999999999999999999}`), `any.level: Invalid value: must be of type integer (default format), any.level: Invalid value: must be of type integer, is of type number, any.level: Unsupported value: 1e+20: supported values: "1", "2"`},
		"two at once":        {config(`,"note":1,"sharing":{}`), `note: Invalid value: must be of type string, is of type integer, sharing.strategy: Required value`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			err := compiled(t, gpuConfig).Check("gpu.example.com", []byte(test.parameters))
			if test.want == "" {
				require.NoError(t, err)
				return
			}
			require.EqualError(t, err, "error decoding config parameters: "+test.want)
		})
	}
}

// TestCheckOther has a driver that takes none, and one that says it in its own words.
func TestCheckOther(t *testing.T) {
	t.Parallel()
	const none = `{"apiVersion":"v1","kind":"A"}`
	require.EqualError(t, compiled(t, "{}").Check("gpu.example.com", []byte(none)), `error decoding config parameters: no kind "A" is registered for version "v1" in scheme "gpu.example.com"`)
	require.EqualError(t, compiled(t, "{errorPrefix: bad config}").Check("gpu.example.com", []byte(none)), `bad config: no kind "A" is registered for version "v1" in scheme "gpu.example.com"`)
	typed := compiled(t, `{kinds: [{apiVersion: v1, kind: A, schema: {type: object, properties: {apiVersion: {type: string}, kind: {type: string, enum: [A]}}}}]}`)
	require.NoError(t, typed.Check("gpu.example.com", []byte(none)))
}

// TestTooMany: fields of the parameters as a whole are told of too.
func TestTooMany(t *testing.T) {
	t.Parallel()
	kinds := compiled(t, `{kinds: [{apiVersion: v1, kind: A, schema: {type: object, maxProperties: 1, additionalProperties: {type: string}}}]}`)
	require.EqualError(t, kinds.Check("d", []byte(`{"apiVersion":"v1","kind":"A","a":"","b":""}`)),
		`error decoding config parameters: parameters: Invalid value: 2: should have at most 1 properties`)
}

// TestLimits: a schema that takes too long is refused, whatever the parameters are.
func TestLimits(t *testing.T) {
	t.Parallel()
	deep := func(depth int) string {
		return strings.Repeat(`{"type":"array","items":`, depth) + `{"type":"string"}` + strings.Repeat("}", depth)
	}
	const tooMany = "spec.kinds[0].schema: Invalid value: has more than 1000 fields, required fields and values: leave some out"
	for name, test := range map[string]struct{ field, want string }{
		"as deep as may be": {deep(maxSchemaSize - 2), ""},
		"deep":              {deep(maxSchemaSize), tooMany},
		"wide":              {`{"type":"string","enum":["` + strings.Repeat(`a","`, maxSchemaSize) + `"]}`, tooMany},
		"nested": {
			`{"type":"string","anyOf":[` + strings.Repeat(`{"not":{}},`, maxNested/2) + `{"not":{}}]}`,
			"spec.kinds[0].schema: Invalid value: has 52 schemas in allOf, anyOf, oneOf and not, and may have 50",
		},
		"unique":        {`{"type":"array","uniqueItems":true,"items":{"type":"string"}}`, "spec.kinds[0].schema.properties[a].uniqueItems: Forbidden: takes too long: remove it"},
		"long pattern":  {`{"type":"string","pattern":"` + strings.Repeat("a", maxPatternLength+1) + `"}`, "spec.kinds[0].schema.properties[a].pattern: Too long: may not be more than 1000 bytes"},
		"large pattern": {`{"type":"string","pattern":"(a{30}){30}b{200}"}`, `spec.kinds[0].schema.properties[a].pattern: Invalid value: "(a{30}){30}b{200}": is too large: make it shorter, or repeat less`},
		"many patterns": {
			`{"type":"string","allOf":[` + strings.Repeat(`{"pattern":"a{900}"},`, 12) + `{}]}`,
			"spec.kinds[0].schema: Invalid value: its regular expressions are too large together: make them shorter, or repeat less",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var parsed v1alpha1.Parameters
			require.NoError(t, yaml.UnmarshalStrict([]byte(`{kinds: [{apiVersion: v1, kind: A, schema: {"type":"object","properties":{"a":`+test.field+`}}}]}`), &parsed))
			_, errs := Compile(&parsed, field.NewPath("spec"))
			if test.want == "" {
				require.Empty(t, errs)
				return
			}
			require.EqualError(t, errs.ToAggregate(), test.want)
		})
	}
}

// FuzzCheck: whatever schema and parameters there are, they are good or bad, always in the
// same words, and the schema is left as it is.
func FuzzCheck(f *testing.F) {
	for _, parameters := range []string{
		`{"apiVersion":"gpu.example.com/v1","kind":"GpuConfig","sharing":{"strategy":"MPS","clients":[null,{"name":1}]},"limits":{"a":[1.5]}}`,
		`{"apiVersion":"gpu.example.com/v1","kind":"GpuConfig","any":{"a":null,"b":[[{}]]},"note":null}`,
	} {
		schema, err := yaml.YAMLToJSON([]byte(gpuConfig))
		require.NoError(f, err)
		f.Add(schema, []byte(parameters))
	}
	f.Fuzz(func(t *testing.T, source, parameters []byte) {
		var parsed v1alpha1.Parameters
		if sigsjson.UnmarshalCaseSensitivePreserveInts(source, &parsed) != nil {
			return
		}
		before := parsed.DeepCopy()
		kinds, errs := Compile(&parsed, field.NewPath("spec"))
		if len(errs) > 0 {
			return
		}
		once, again := kinds.Check("d", parameters), kinds.Check("d", parameters)
		require.Equal(t, once == nil, again == nil)
		if once != nil {
			require.EqualError(t, again, once.Error())
		}
		require.Equal(t, before, &parsed)
	})
}
