package parameters

import (
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
      any: {type: object, x-kubernetes-preserve-unknown-fields: true, properties: {level: {type: integer, enum: [1, 2]}}}
- apiVersion: gpu.example.com/v1
  kind: Free
`

func compiled(t testing.TB, source string) *Kinds {
	t.Helper()
	var parameters v1alpha1.Parameters
	require.NoError(t, yaml.UnmarshalStrict([]byte(source), &parameters))
	kinds, errs := Compile("gpu.example.com", &parameters, field.NewPath("spec", "parameters"))
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
		"not of the enum":    {config(`,"sharing":{"strategy":"MPS"}`), `sharing.strategy should be one of [TimeSlicing SpacePartitioning]`},
		"enum of integers":   {config(`,"any":{"level":3}`), `any.level should be one of [1 2]`},
		"missing":            {config(`,"sharing":{}`), `sharing.strategy is required`},
		"wrong type":         {config(`,"sharing":{"strategy":"SpacePartitioning","partitions":"3"}`), `sharing.partitions must be of type integer: "string"`},
		"object as text":     {config(`,"sharing":"TimeSlicing"`), `"sharing" must not validate the schema (not), sharing must be of type object: "string"`},
		"text as object":     {config(`,"note":{"a":1}`), `note must be of type string: "object"`},
		"too small":          {config(`,"sharing":{"strategy":"SpacePartitioning","partitions":-1}`), `sharing.partitions should be greater than or equal to 0`},
		"too many":           {config(`,"sharing":{"strategy":"TimeSlicing","clients":[{},{},{}]}`), `sharing.clients should have at most 2 items`},
		"pattern":            {config(`,"sharing":{"strategy":"TimeSlicing","clients":[{"name":"A"}]}`), `sharing.clients[0].name should match '^[a-z]+$'`},
		"int or string":      {config(`,"limits":{"a":1.5,"b":true}`), `limits.a must be of type integer or string, limits.b must be of type integer or string`},
		"together":           {config(`,"sharing":{"strategy":"TimeSlicing","partitions":1}`), `"sharing" must not validate the schema (not)`},
		"two at once":        {config(`,"note":1,"sharing":{}`), `note must be of type string: "integer", sharing.strategy is required`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			err := compiled(t, gpuConfig).Check([]byte(test.parameters))
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
	require.EqualError(t, compiled(t, "{}").Check([]byte(none)), `error decoding config parameters: no kind "A" is registered for version "v1" in scheme "gpu.example.com"`)
	require.EqualError(t, compiled(t, "{errorPrefix: bad config}").Check([]byte(none)), `bad config: no kind "A" is registered for version "v1" in scheme "gpu.example.com"`)
	typed := compiled(t, `{kinds: [{apiVersion: v1, kind: A, schema: {type: object, properties: {apiVersion: {type: string}, kind: {type: string, enum: [A]}}}}]}`)
	require.NoError(t, typed.Check([]byte(none)))
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
		kinds, errs := Compile("d", &parsed, field.NewPath("spec"))
		if len(errs) > 0 {
			return
		}
		once, again := kinds.Check(parameters), kinds.Check(parameters)
		require.Equal(t, once == nil, again == nil)
		if once != nil {
			require.EqualError(t, again, once.Error())
		}
		require.Equal(t, before, &parsed)
	})
}
