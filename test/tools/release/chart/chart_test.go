package chart

import (
	"testing"

	"github.com/stretchr/testify/require"
	"sigs.k8s.io/yaml"
)

func TestMerge(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct{ usual, a, b, want string }{
		"same":          {"{x: 1}", "{x: 1}", "{x: 1}", "x: 1\n"},
		"one or other":  {"{x: 1}", "{x: 2}", "{x: 1}", "{{- if .a }}\nx: 2\n{{- else }}\nx: 1\n{{- end }}\n"},
		"one more":      {"{x: 1}", "{x: 1, yy: {z: 2}}", "{x: 1}", "x: 1\n{{- if .a }}\nyy:\n  z: 2\n{{- end }}\n"},
		"one less":      {"{x: 1, yy: 2}", "{x: 1, yy: 2}", "{x: 1}", "x: 1\n{{- if not (.b) }}\nyy: 2\n{{- end }}\n"},
		"deeper":        {"{x: {yy: 1, z: 0}}", "{x: {yy: 1, z: 0}}", "{x: {yy: 3, z: 0}}", "x:\n{{- if .b }}\n  yy: 3\n{{- else }}\n  yy: 1\n{{- end }}\n  z: 0\n"},
		"list grows":    {"{x: [1, 9]}", "{x: [1, 2, 9]}", "{x: [1, 3, 4, 9]}", "x:\n  - 1\n{{- if .a }}\n  - 2\n{{- end }}\n{{- if .b }}\n  - 3\n  - 4\n{{- end }}\n  - 9\n"},
		"list is new":   {"{x: {}}", "{x: {yy: [1]}}", "{x: {}}", "{{- if .a }}\nx:\n  yy:\n  - 1\n{{- else }}\nx: {}\n{{- end }}\n"},
		"element":       {"{x: [{yy: 1}]}", "{x: [{yy: 2}]}", "{x: [{yy: 1}]}", "x:\n  -\n{{- if .a }}\n    yy: 2\n{{- else }}\n    yy: 1\n{{- end }}\n"},
		"lines of text": {"{x: {yy: \"a\\n\\nb\\n\"}}", "{x: {yy: \"a\\n\\nb\\n\"}}", "{x: {yy: \"a\\n\\nb\\n\", z: 1}}", "x:\n  yy: |\n    a\n\n    b\n{{- if .b }}\n  z: 1\n{{- end }}\n"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := mergeVariants(parse(t, test.usual), []variant[any]{{".a", parse(t, test.a)}, {".b", parse(t, test.b)}}, 0)
			require.NoError(t, err)
			require.Equal(t, test.want, got)
		})
	}
}

func TestMergeRefusals(t *testing.T) {
	t.Parallel()
	for problem, test := range map[string]struct{ usual, a, b string }{
		"field x: differs for both .a and .b":                     {"{x: 1}", "{x: 2}", "{x: 3}"},
		"field x: for .b the list has lost something":             {"{x: [1, 2]}", "{x: [1, 2]}", "{x: [1]}"},
		"field x: element 0: field z: differs for both .a and .b": {"{x: [{z: 1}]}", "{x: [{z: 2}]}", "{x: [{z: 3}]}"},
	} {
		_, err := mergeVariants(parse(t, test.usual), []variant[any]{{".a", parse(t, test.a)}, {".b", parse(t, test.b)}}, 0)
		require.EqualError(t, err, problem)
	}
}

func parse(t *testing.T, text string) any {
	t.Helper()
	var value map[string]any
	require.NoError(t, yaml.Unmarshal([]byte(text), &value))
	return value
}

func TestFill(t *testing.T) {
	t.Parallel()
	require.Equal(t, "x:\n{{- range .Values.extraArgs }}\n  - {{ . | quote }}\n{{- end }}\nnamespace: {{ .Release.Namespace }}\n",
		fill("x:\n  - <%extraArgs%>\nnamespace: <%namespace%>\n"))
}

func TestTemplatesInObjects(t *testing.T) {
	t.Parallel()
	_, err := replaceStrings(map[string]any{"x": []any{"{{ .Values }}"}})
	require.EqualError(t, err, `"{{ .Values }}" is a template itself`)
}
