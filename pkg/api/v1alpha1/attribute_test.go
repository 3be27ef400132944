package v1alpha1

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	sigsjson "sigs.k8s.io/json"
)

// decoders are the two that read documents: config uses the strict one, and
// kubectl-like tools the standard library's.
var decoders = map[string]func(data []byte, into any) error{
	"encoding/json":    json.Unmarshal,
	"sigs.k8s.io/json": sigsjson.UnmarshalCaseSensitivePreserveInts,
	"UnmarshalStrict":  func(data []byte, into any) error { _, err := sigsjson.UnmarshalStrict(data, into); return err },
}

func TestAttributeJSON(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		json string
		want Attribute
	}{
		"string":                {`"H100"`, Attribute{Type: AttributeString, Value: "H100"}},
		"empty string":          {`""`, Attribute{Type: AttributeString}},
		"digits in quotes":      {`"42"`, Attribute{Type: AttributeString, Value: "42"}},
		"true in quotes":        {`"true"`, Attribute{Type: AttributeString, Value: "true"}},
		"template":              {`"{{ .Index }}"`, Attribute{Type: AttributeString, Value: "{{ .Index }}"}},
		"int":                   {`42`, Attribute{Type: AttributeInt, Value: "42"}},
		"negative int":          {`-1`, Attribute{Type: AttributeInt, Value: "-1"}},
		"int beyond a float":    {`9007199254740993`, Attribute{Type: AttributeInt, Value: "9007199254740993"}},
		"true":                  {`true`, Attribute{Type: AttributeBool, Value: "true"}},
		"false":                 {`false`, Attribute{Type: AttributeBool, Value: "false"}},
		"upstream string":       {`{"string": "H100"}`, Attribute{Type: AttributeString, Value: "H100"}},
		"upstream int":          {`{"int": 42}`, Attribute{Type: AttributeInt, Value: "42"}},
		"upstream int 0":        {`{"int": 0}`, Attribute{Type: AttributeInt, Value: "0"}},
		"upstream bool":         {`{"bool": false}`, Attribute{Type: AttributeBool, Value: "false"}},
		"upstream version":      {`{"version": "9.0.0"}`, Attribute{Type: AttributeVersion, Value: "9.0.0"}},
		"template of a string":  {`{"string": "{{ .Index }}"}`, Attribute{Type: AttributeString, Value: "{{ .Index }}"}},
		"template of an int":    {`{"int": "{{ .Index }}"}`, Attribute{Type: AttributeInt, Value: "{{ .Index }}"}},
		"template of a bool":    {`{"bool": "{{ eq .Index 0 }}"}`, Attribute{Type: AttributeBool, Value: "{{ eq .Index 0 }}"}},
		"template of a version": {`{"version": "1.{{ .Index }}.0"}`, Attribute{Type: AttributeVersion, Value: "1.{{ .Index }}.0"}},
	}
	for name, test := range tests {
		for decoder, decode := range decoders {
			t.Run(name+" by "+decoder, func(t *testing.T) {
				t.Parallel()
				var got Attribute
				require.NoError(t, decode([]byte(test.json), &got))
				require.Equal(t, test.want, got)

				encoded, err := json.Marshal(got)
				require.NoError(t, err)
				var again Attribute
				require.NoError(t, decode(encoded, &again))
				require.Equal(t, test.want, again, "round trip through %s", encoded)
			})
		}
	}
}

func TestAttributeWritesTheUpstreamForm(t *testing.T) {
	t.Parallel()
	for short, want := range map[string]string{
		`"H100"`:                 `{"string": "H100"}`,
		`7`:                      `{"int": 7}`,
		`true`:                   `{"bool": true}`,
		`{"version":"1.2.3"}`:    `{"version": "1.2.3"}`,
		`{"int":"{{ .Index }}"}`: `{"int": "{{ .Index }}"}`,
		`["a", "{{ .Index }}"]`:  `{"strings": ["a", "{{ .Index }}"]}`,
		`[1, 2]`:                 `{"ints": [1, 2]}`,
		`{"ints": ["{{ 1 }}"]}`:  `{"ints": ["{{ 1 }}"]}`,
		`[true]`:                 `{"bools": [true]}`,
		`{"versions":["1.2.3"]}`: `{"versions": ["1.2.3"]}`,
	} {
		var attribute Attribute
		require.NoError(t, json.Unmarshal([]byte(short), &attribute))
		got, err := json.Marshal(attribute)
		require.NoError(t, err)
		require.JSONEq(t, want, string(got))
	}
}

// TestMalformedAttributes: what cannot be an attribute is kept by decoding, so
// that Validate can name the field's path.
func TestMalformedAttributes(t *testing.T) {
	t.Parallel()
	const forms = "must be a string, an integer, a bool, a list of these, or an object with exactly one of string, int, bool, version, strings, ints, bools, versions"
	tests := map[string]struct{ json, want string }{
		"null":                     {`null`, "null: has no value: " + forms},
		"list of lists":            {`[["a"]]`, `[["a"]]: ` + forms},
		"list of null":             {`[null]`, forms},
		"empty list":               {`[]`, "[]: must have at least one element"},
		"empty list of a type":     {`{"ints": []}`, "must have at least one element"},
		"list of two types":        {`[true, 1]`, "element 1 must hold a value of type bool"},
		"list of another type":     {`{"versions": ["1.2.3", "1.2"]}`, `["1.2.3","1.2"]: element 1 must be a version`},
		"list that is none":        {`{"bools": true}`, "must hold a list of values of type bool"},
		"long element":             {`["a", "` + strings.Repeat("a", 65) + `"]`, "element 1 must be at most 64 bytes, is 65"},
		"empty object":             {`{}`, forms},
		"two types":                {`{"int": 1, "string": "a"}`, forms},
		"two types and a template": {`{"int": 1, "string": "{{ .Index }}"}`, forms},
		"unknown type":             {`{"float": 1}`, `unknown type "float"`},
		"wrong case":               {`{"String": "a"}`, `unknown type "String": must be one of string, int, bool, version, strings, ints, bools, versions; did you mean "string"?`},
		"fraction":                 {`1.5`, "1.5: must be an integer of 64 bits, for example 42; put it in quotes for a string, or use {version: 1.5.0}"},
		"exponent":                 {`1e3`, "integer of 64 bits"},
		"too large":                {`9223372036854775808`, "integer of 64 bits"},
		"int too large":            {`{"int": 9223372036854775808}`, "integer of 64 bits"},
		"int of text":              {`{"int": "42"}`, "must be of type int: leave out the quotes"},
		"int of words":             {`{"int": "many"}`, "must hold a value of type int, or a template"},
		"int of a bool":            {`{"int": true}`, "value of type int"},
		"int of null":              {`{"int": null}`, "value of type int"},
		"bool of text":             {`{"bool": "true"}`, "must be of type bool: leave out the quotes"},
		"bool of an int":           {`{"bool": 1}`, "value of type bool"},
		"string of an int":         {`{"string": 1}`, `must be text: put it in quotes, "1"`},
		"string of a list":         {`{"string": ["{{ .Index }}"]}`, "value of type string"},
		"version of a number":      {`{"version": 9.0}`, `must be text, since a version is no number; use "9.0.0"`},
		"no version":               {`{"version": "9.0"}`, `semver.org 2.0.0, three numbers without leading zeros; use "9.0.0"`},
		"string of 65 bytes":       {`"` + strings.Repeat("a", 65) + `"`, "at most 64 bytes, is 65"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			template := validTemplate()
			decodeInto(t, &template.Spec.Devices[0], `{"name": "gpu", "attributes": {"model": `+test.json+`}}`)
			errs := template.Validate()
			require.Len(t, errs, 1)
			require.Equal(t, "spec.devices[0].attributes[model]", errs[0].Field)
			require.ErrorContains(t, errs[0], test.want)
		})
	}
}

func TestCapacityJSON(t *testing.T) {
	t.Parallel()
	for given, want := range map[string]string{
		`"80Gi"`:                    "80Gi",
		`8`:                         "8",
		`0.5`:                       "0.5",
		`{"value": "80Gi"}`:         "80Gi",
		`{"value": 8}`:              "8",
		`"{{ .Index }}Gi"`:          "{{ .Index }}Gi",
		`{"value": "{{ .Index }}"}`: "{{ .Index }}",
	} {
		var got Capacity
		require.NoError(t, json.Unmarshal([]byte(given), &got))
		require.Equal(t, Capacity{Value: want}, got, given)

		encoded, err := json.Marshal(got)
		require.NoError(t, err)
		var again Capacity
		require.NoError(t, json.Unmarshal(encoded, &again))
		require.Equal(t, got, again)
	}
}

func TestMalformedCapacities(t *testing.T) {
	t.Parallel()
	const forms = "must be a quantity, for example 80Gi, or an object with the field value, and requestPolicy where it is shared"
	for name, test := range map[string]struct{ json, want string }{
		"null":                 {`null`, "null: " + forms},
		"bool":                 {`true`, "true: " + forms},
		"list":                 {`["80Gi"]`, `["80Gi"]: ` + forms},
		"empty object":         {`{}`, "{}: " + forms},
		"value null":           {`{"value": null}`, forms},
		"value bool":           {`{"value": true}`, forms},
		"empty string":         {`""`, `"": must be a quantity, for example 80Gi`},
		"no quantity":          {`"eighty"`, `"eighty": must be a quantity, for example 80Gi`},
		"unknown suffix":       {`"80GB"`, `must be a quantity, for example 80Gi; use "80G", or "80Gi" for binary units`},
		"endless":              {`"1e-2000000000"`, `must be a quantity, for example 80Gi`},
		"more":                 {`{"value": "80Gi", "note": "{{ .Index }}"}`, `unknown field "note"`},
		"wrong case":           {`{"Value": "80Gi"}`, `unknown field "Value"`},
		"bad policy":           {`{"value": "80Gi", "requestPolicy": {"default": "1GB"}}`, `quantities must match`},
		"list with a template": {`["{{ .Index }}"]`, forms},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			template := validTemplate()
			decodeInto(t, &template.Spec.Devices[0], `{"name": "gpu", "capacity": {"memory": `+test.json+`}}`)
			errs := template.Validate()
			require.Len(t, errs, 1)
			require.Equal(t, "spec.devices[0].capacity[memory]", errs[0].Field)
			require.ErrorContains(t, errs[0], test.want)
		})
	}
}

// TestCapacityResolvesPolicies: what a policy says of the capacity is checked
// when the capacity is known.
func TestCapacityResolvesPolicies(t *testing.T) {
	t.Parallel()
	var shared Capacity
	require.NoError(t, json.Unmarshal([]byte(`{"value": "{{ .Index }}", "requestPolicy": {"default": "2", "validValues": ["2", "4"]}}`), &shared))
	got, err := shared.Resolve("4")
	require.NoError(t, err)
	require.Equal(t, shared.RequestPolicy, got.RequestPolicy)
	_, err = shared.Resolve("3")
	require.EqualError(t, err, `requestPolicy.validValues[1]: Invalid value: "4": must be at most the capacity, 3`)
}

// TestResolve applies validateDeviceAttribute of
// k8s.io/kubernetes/pkg/apis/resource/validation: 64 bytes, strict semver.
func TestResolve(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("é", 32)
	tests := map[string]struct {
		typ  AttributeType
		text string
		want resourcev1.DeviceAttribute
	}{
		"string":             {AttributeString, " a ", resourcev1.DeviceAttribute{StringValue: new(" a ")}},
		"empty string":       {AttributeString, "", resourcev1.DeviceAttribute{StringValue: new("")}},
		"64 bytes":           {AttributeString, long, resourcev1.DeviceAttribute{StringValue: &long}},
		"int":                {AttributeInt, "42", resourcev1.DeviceAttribute{IntValue: new(int64(42))}},
		"int with blanks":    {AttributeInt, " 42\n", resourcev1.DeviceAttribute{IntValue: new(int64(42))}},
		"largest int":        {AttributeInt, "9223372036854775807", resourcev1.DeviceAttribute{IntValue: new(int64(1<<63 - 1))}},
		"smallest int":       {AttributeInt, "-9223372036854775808", resourcev1.DeviceAttribute{IntValue: new(int64(-1 << 63))}},
		"true":               {AttributeBool, "true", resourcev1.DeviceAttribute{BoolValue: new(true)}},
		"false with blanks":  {AttributeBool, " false ", resourcev1.DeviceAttribute{BoolValue: new(false)}},
		"version":            {AttributeVersion, "9.0.0", resourcev1.DeviceAttribute{VersionValue: new("9.0.0")}},
		"version, all parts": {AttributeVersion, "1.2.3-rc.1+build.007", resourcev1.DeviceAttribute{VersionValue: new("1.2.3-rc.1+build.007")}},
		"version, letters":   {AttributeVersion, "0.0.0-0a.-", resourcev1.DeviceAttribute{VersionValue: new("0.0.0-0a.-")}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := Attribute{Type: test.typ}.Resolve(test.text)
			require.NoError(t, err)
			require.Equal(t, test.want, got)
		})
	}
}

func TestResolveRefuses(t *testing.T) {
	t.Parallel()
	tests := map[AttributeType][]string{
		AttributeString: {strings.Repeat("a", 65), strings.Repeat("é", 33)},
		AttributeInt:    {"", "a", "1.0", "1e3", "0x10", "1_000", "9223372036854775808", "-9223372036854775809", "<no value>"},
		AttributeBool:   {"", "True", "1", "yes", "truefalse"},
		AttributeVersion: {
			"", "1", "1.2", "1.2.3.4", "v1.2.3", "01.2.3", "1.02.3", "1.2.03", "1.2.3-01", "1.2.3-", "1.2.3+", "1.2.3-a..b",
			"1.2.3 ", "1.2.3\n", "-1.2.3", "1.2.3-" + strings.Repeat("a", 59),
		},
		"":      {"a"},
		"float": {"1"},
	}
	for typ, texts := range tests {
		for _, text := range texts {
			_, err := Attribute{Type: typ}.Resolve(text)
			require.Error(t, err, "%s %q", typ, text)
		}
	}
}

func TestCapacityResolve(t *testing.T) {
	t.Parallel()
	got, err := Capacity{}.Resolve(" 80Gi\n")
	require.NoError(t, err)
	require.True(t, got.Value.Equal(resource.MustParse("81920Mi")))
	for _, text := range []string{"", "80 Gi", "80GB", "<no value>", "1e", "--1"} {
		_, err := Capacity{}.Resolve(text)
		require.ErrorContains(t, err, "must be a quantity", text)
	}
}

// FuzzAttribute: no JSON value makes decoding or validation panic, and what is
// valid survives a round trip.
func FuzzAttribute(f *testing.F) {
	for _, seed := range []string{`1`, `"a"`, `null`, `{"int": "{{ .Index }}"}`, `{"version": "1.2.3"}`, `[]`, `1e400`, `{"bool": 1}`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		var attribute, again Attribute
		if json.Unmarshal(data, &attribute) != nil || len(validateAttribute("a", attribute, nil)) > 0 {
			return
		}
		encoded, err := json.Marshal(attribute)
		require.NoError(t, err)
		require.NoError(t, json.Unmarshal(encoded, &again))
		want, err := attribute.Resolve(attribute.Value)
		if !IsTemplate(attribute.Value) {
			require.NoError(t, err)
		}
		got, _ := again.Resolve(again.Value)
		require.Equal(t, want, got)
	})
}

func decodeInto(t *testing.T, into any, data string) {
	t.Helper()
	strict, err := sigsjson.UnmarshalStrict([]byte(data), into)
	require.NoError(t, err)
	require.Empty(t, strict)
}
