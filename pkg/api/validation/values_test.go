package validation

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/kwok-dra/kwok-dra/internal/util/fieldcheck"
	"github.com/kwok-dra/kwok-dra/internal/util/strict"
	"github.com/kwok-dra/kwok-dra/pkg/api/v1alpha1"
)

// TestMalformedAttributes: what cannot be an attribute is told by decoding, or else
// by
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
		"string of a bool":         {`{"string": false}`, "must be text: put it in quotes; without them YAML takes yes, on, y and true, and their opposites, for bools"},
		"string of a list":         {`{"string": ["{{ .Index }}"]}`, "value of type string"},
		"version of a number":      {`{"version": 9.0}`, `must be text, since a version is no number; use "9.0.0"`},
		"no version":               {`{"version": "9.0"}`, `semver.org 2.0.0, three numbers without leading zeros; use "9.0.0"`},
		"string of 65 bytes":       {`"` + strings.Repeat("a", 65) + `"`, "at most 64 bytes, is 65"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			problems := problemsOfDevice(t, `{"name": "gpu", "attributes": {"model": `+test.json+`}}`)
			require.Len(t, problems, 1)
			require.Equal(t, "spec.devices[0].attributes[model]", problems[0].Path)
			require.ErrorContains(t, problems, test.want)
		})
	}
}

func TestMalformedCapacities(t *testing.T) {
	t.Parallel()
	const forms = "must be a quantity, for example 80Gi, or an object with the field value, and requestPolicy where it is shared"
	for name, test := range map[string]struct{ json, want string }{
		"null":                 {`null`, "null: " + forms},
		"bool":                 {`true`, "true: " + forms},
		"list":                 {`["80Gi"]`, `["80Gi"]: ` + forms},
		"empty object":         {`{}`, `"": must be a quantity, for example 80Gi`},
		"value null":           {`{"value": null}`, "null: must be a quantity, for example 80Gi"},
		"value bool":           {`{"value": true}`, "true: must be a quantity, for example 80Gi"},
		"empty string":         {`""`, `"": must be a quantity, for example 80Gi`},
		"no quantity":          {`"eighty"`, `"eighty": must be a quantity, for example 80Gi`},
		"unknown suffix":       {`"80GB"`, `must be a quantity, for example 80Gi; use "80G", or "80Gi" for binary units`},
		"endless":              {`"1e-2000000000"`, `must be a quantity, for example 80Gi`},
		"more":                 {`{"value": "80Gi", "note": "{{ .Index }}"}`, "Unknown field: the fields here are requestPolicy, value"},
		"wrong case":           {`{"Value": "80Gi"}`, "Unknown field: did you mean value?"},
		"bad policy":           {`{"value": "80Gi", "requestPolicy": {"default": "1GB"}}`, `must be a quantity, for example 80Gi; use "1G"`},
		"list with a template": {`["{{ .Index }}"]`, forms},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			problems := problemsOfDevice(t, `{"name": "gpu", "capacity": {"memory": `+test.json+`}}`)
			require.Len(t, problems, 1)
			require.True(t, strict.Within("spec.devices[0].capacity[memory]", problems[0].Path), problems)
			require.ErrorContains(t, problems, test.want)
		})
	}
}

// TestCapacityResolvesPolicies: what a policy says of the capacity is checked
// when the capacity is known.
func TestCapacityResolvesPolicies(t *testing.T) {
	t.Parallel()
	var shared v1alpha1.Capacity
	require.NoError(t, json.Unmarshal([]byte(`{"value": "{{ .Index }}", "requestPolicy": {"default": "2", "validValues": ["2", "4"]}}`), &shared))
	got, err := ResolveCapacity(shared, "4")
	require.NoError(t, err)
	require.Equal(t, shared.RequestPolicy, got.RequestPolicy)
	_, err = ResolveCapacity(shared, "3")
	require.EqualError(t, err, `requestPolicy.validValues[1]: Invalid value: "4": must be at most the capacity, 3`)
}

// TestResolve applies validateDeviceAttribute of
// k8s.io/kubernetes/pkg/apis/resource/validation: 64 bytes, strict semver.
func TestResolve(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("é", 32)
	tests := map[string]struct {
		typ  v1alpha1.AttributeType
		text string
		want resourcev1.DeviceAttribute
	}{
		"string":             {v1alpha1.AttributeString, " a ", resourcev1.DeviceAttribute{StringValue: new(" a ")}},
		"empty string":       {v1alpha1.AttributeString, "", resourcev1.DeviceAttribute{StringValue: new("")}},
		"64 bytes":           {v1alpha1.AttributeString, long, resourcev1.DeviceAttribute{StringValue: &long}},
		"int":                {v1alpha1.AttributeInt, "42", resourcev1.DeviceAttribute{IntValue: new(int64(42))}},
		"int with blanks":    {v1alpha1.AttributeInt, " 42\n", resourcev1.DeviceAttribute{IntValue: new(int64(42))}},
		"largest int":        {v1alpha1.AttributeInt, "9223372036854775807", resourcev1.DeviceAttribute{IntValue: new(int64(1<<63 - 1))}},
		"smallest int":       {v1alpha1.AttributeInt, "-9223372036854775808", resourcev1.DeviceAttribute{IntValue: new(int64(-1 << 63))}},
		"true":               {v1alpha1.AttributeBool, "true", resourcev1.DeviceAttribute{BoolValue: new(true)}},
		"false with blanks":  {v1alpha1.AttributeBool, " false ", resourcev1.DeviceAttribute{BoolValue: new(false)}},
		"version":            {v1alpha1.AttributeVersion, "9.0.0", resourcev1.DeviceAttribute{VersionValue: new("9.0.0")}},
		"version, all parts": {v1alpha1.AttributeVersion, "1.2.3-rc.1+build.007", resourcev1.DeviceAttribute{VersionValue: new("1.2.3-rc.1+build.007")}},
		"version, letters":   {v1alpha1.AttributeVersion, "0.0.0-0a.-", resourcev1.DeviceAttribute{VersionValue: new("0.0.0-0a.-")}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := ResolveAttribute(v1alpha1.Attribute{Type: test.typ}, test.text)
			require.NoError(t, err)
			require.Equal(t, test.want, got)
		})
	}
}

func TestResolveRefuses(t *testing.T) {
	t.Parallel()
	tests := map[v1alpha1.AttributeType][]string{
		v1alpha1.AttributeString: {strings.Repeat("a", 65), strings.Repeat("é", 33)},
		v1alpha1.AttributeInt:    {"", "a", "1.0", "1e3", "0x10", "1_000", "9223372036854775808", "-9223372036854775809", "<no value>"},
		v1alpha1.AttributeBool:   {"", "True", "1", "yes", "truefalse"},
		v1alpha1.AttributeVersion: {
			"", "1", "1.2", "1.2.3.4", "v1.2.3", "01.2.3", "1.02.3", "1.2.03", "1.2.3-01", "1.2.3-", "1.2.3+", "1.2.3-a..b",
			"1.2.3 ", "1.2.3\n", "-1.2.3", "1.2.3-" + strings.Repeat("a", 59),
		},
		"":      {"a"},
		"float": {"1"},
	}
	for typ, texts := range tests {
		for _, text := range texts {
			_, err := ResolveAttribute(v1alpha1.Attribute{Type: typ}, text)
			require.Error(t, err, "%s %q", typ, text)
		}
	}
}

func TestCapacityResolve(t *testing.T) {
	t.Parallel()
	got, err := ResolveCapacity(v1alpha1.Capacity{}, " 80Gi\n")
	require.NoError(t, err)
	require.True(t, got.Value.Equal(resource.MustParse("81920Mi")))
	for _, text := range []string{"", "80 Gi", "80GB", "<no value>", "1e", "--1"} {
		_, err := ResolveCapacity(v1alpha1.Capacity{}, text)
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
		var attribute, again v1alpha1.Attribute
		at := fieldcheck.New(nil)
		if json.Unmarshal(data, &attribute) != nil {
			return
		}
		if validateAttribute("a", attribute, at); len(at.Errors()) > 0 {
			return
		}
		encoded, err := json.Marshal(attribute)
		require.NoError(t, err)
		require.NoError(t, json.Unmarshal(encoded, &again))
		want, err := ResolveAttribute(attribute, attribute.Value)
		if !v1alpha1.IsTemplate(attribute.Value) {
			require.NoError(t, err)
		}
		got, _ := ResolveAttribute(again, again.Value)
		require.Equal(t, want, got)
	})
}

// problemsOfDevice are those of a valid template with another device.
func problemsOfDevice(t *testing.T, device string) strict.Problems {
	t.Helper()
	document, problems := strict.Parse([]byte(device))
	require.Empty(t, problems)
	template := validTemplate()
	problems = document.Decode(&template.Spec.Devices[0], field.NewPath("spec", "devices").Index(0))
	for _, p := range strict.Of(ValidateResourcePoolTemplate(template)) {
		if !problems.Hides(p.Path) {
			problems = append(problems, p)
		}
	}
	return problems
}
