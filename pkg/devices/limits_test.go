package devices

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"sigs.k8s.io/kwok/pkg/utils/gotpl"
)

// TestLimits has templates that never end, or yield more than there is memory.
func TestLimits(t *testing.T) {
	t.Parallel()
	for name, source := range map[string]string{
		"a loop over a number":             `{{ range 9223372036854775807 }}{{ end }}`,
		"a loop over a long list":          `{{ range until 1000000000 }}x{{ end }}`,
		"loops in loops":                   `{{ range until 3000 }}{{ range until 3000 }}{{ range until 3000 }}x{{ end }}{{ end }}{{ end }}`,
		"a loop in an else":                `{{ if false }}{{ else }}{{ range 9223372036854775807 }}{{ end }}{{ end }}`,
		"ten megabytes":                    `{{ repeat 10485760 "x" }}`,
		"ten megabytes in bits":            `{{ range until 1000 }}{{ repeat 10000 "x" }}{{ end }}`,
		"a terabyte within an action":      `{{ len (repeat 1000000 (repeat 1000000 "x")) }}`,
		"a string that doubles":            `{{ $a := "x" }}{{ range until 60 }}{{ $a = print $a $a }}{{ end }}`,
		"a list that doubles":              `{{ $a := list 1 1 }}{{ range until 60 }}{{ $a = list $a $a }}{{ end }}{{ len (toJson $a) }}`,
		"a format that repeats":            `{{ len (printf (repeat 100000 "%[1]s") (repeat 100000 "x")) }}`,
		"a replacement":                    `{{ len (replace "x" (repeat 100000 "y") (repeat 100000 "x")) }}`,
		"a replacement by expression":      `{{ len (regexReplaceAll "x" (repeat 100000 "x") (repeat 100000 "y")) }}`,
		"an indent":                        `{{ len (indent 1000000000 "x") }}`,
		"an indent of YAML":                `{{ len (YAML (list 1 2) 1000000000) }}`,
		"a sequence":                       `{{ len (seq 1 1000000000) }}`,
		"a range by steps":                 `{{ len (untilStep 0 1000000000 1) }}`,
		"a map in itself":                  `{{ $a := dict "k" 1 }}{{ $b := set $a "self" $a }}{{ print $a }}`,
		"a map merged into itself":         `{{ $a := dict "k" 1 }}{{ print (mergeOverwrite $a (dict "self" $a)) }}`,
		"a function made to take its time": `{{ derivePassword 1 "long" "a" "b" "c" }}`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			started := time.Now()
			_, err := newRenderer().toText(source, 1, nil)
			require.ErrorIs(t, err, errTooMuch)
			require.Less(t, time.Since(started), 10*renderTime)
		})
	}
}

// TestGuard has whatever templates may say yield the same with limits.
func TestGuard(t *testing.T) {
	t.Parallel()
	data := map[string]any{"Node": sample, "List": []any{"a", "b", "c"}}
	for _, source := range []string{
		`{{- range $i, $e := .List }}{{ if eq $i 1 }}{{ continue }}{{ end }} {{ $i }}={{ $e -}} {{ else }}none{{ end }}!`,
		`{{ range .List }}{{ if eq . "b" }}{{ break }}{{ else if eq . "a" }}A{{ else }}?{{ end }}{{ end }}`,
		`{{ range .Missing }}x{{ else }}none{{ end }}`,
		`{{ .Missing }}|{{ with .Missing }}x{{ else with .List }}{{ len . }}{{ end }}`,
		`{{ $a := 1 }}{{ range until 3 }}{{ $a = add $a . }}{{ end }}{{ $a }}{{/* a comment */}}`,
		`{{ printf "%03d-%s" 7 (upper "x") | quote }}{{ "{{" }}` + "{{ `raw\"` }}",
		`{{ (index .Node.metadata.labels "kubernetes.io/hostname") | replace "s" "S" | repeat 2 }}{{ true }}{{ 'x' }}{{ 1.50 }}`,
		`{{ nil | default 0x10 }}{{ .Node.metadata.generation }}{{ .Node.spec }}`,
		`{{ $d := dict "k" "v" }}{{ $_ := set $d "l" (list 1 2) }}{{ toJson $d }}`,
		`{{ join "-" (list 1 2 3) }}{{ indent 2 "x" }}{{ print 1 2 "x" }}{{ seq 1 3 }}{{ YAML (dict "a" 1) 1 }}`,
		`{{define "a"}}<{{ . }}>{{end}}{{ range .List }}{{template "a" .}}{{ end }}`,
	} {
		want, failure := gotpl.NewRenderer(functions).ToText(source, data)
		rendered, err := newRenderer().toText(source, 1, data)
		require.Equal(t, failure == nil, err == nil, "%s: without limits %v, with limits %v", source, failure, err)
		require.Equal(t, string(want), string(rendered), source)
	}
}

// TestLimitsLeaveRoom has what a large template for many devices takes.
func TestLimitsLeaveRoom(t *testing.T) {
	t.Parallel()
	large := `{{ range until 10000 }}{{ uuid . }}{{ toJson $.Node }}{{ end }}`
	rendered, err := newRenderer().toText(large, 10000, map[string]any{"Node": sample})
	require.NoError(t, err)
	require.Greater(t, strings.Count(string(rendered), "sample"), 10000)
}

// TestRefuseEndless has a template refused as it is read, where it never ends on
// any node.
func TestRefuseEndless(t *testing.T) {
	t.Parallel()
	endless := oneGPU(`a: "{{ range 9223372036854775807 }}{{ end }}"`)
	_, errs := Compile(source(t, "endless", endless))
	require.ErrorContains(t, errs.ToAggregate(), "takes too much time or memory")
}
