package v1alpha1

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"
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
