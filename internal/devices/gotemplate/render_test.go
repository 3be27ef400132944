package gotemplate

import (
	"math"
	"os"
	"reflect"
	"runtime"
	"strings"
	"testing"

	"github.com/Masterminds/sprig/v3"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/kwok/pkg/utils/gotpl"
)

// mostAllocated is what one rendering may allocate in all, garbage included.
const mostAllocated = 128 << 20

// tooMuch are templates that never end, or yield more than there is memory.
var tooMuch = map[string]string{
	"a loop over a number":                 `{{ range 9223372036854775807 }}{{ end }}`,
	"a loop over a long list":              `{{ range until 1000000000 }}x{{ end }}`,
	"loops in loops":                       `{{ range until 3000 }}{{ range until 3000 }}{{ range until 3000 }}{{ end }}{{ end }}{{ end }}`,
	"a loop that continues":                `{{ range 9223372036854775807 }}{{ continue }}{{ end }}`,
	"a loop in an else":                    `{{ if false }}{{ else }}{{ range 9223372036854775807 }}{{ end }}{{ end }}`,
	"a loop in the else of a loop":         `{{ range list }}{{ else }}{{ range 9223372036854775807 }}{{ end }}{{ end }}`,
	"a loop in an else with":               `{{ with 0 }}{{ else with 1 }}{{ range 9223372036854775807 }}{{ end }}{{ end }}`,
	"ten megabytes":                        `{{ repeat 10485760 "x" }}`,
	"a hundred kilobytes":                  `{{ repeat 100000 "x" }}`,
	"ten megabytes in bits":                `{{ range until 1000 }}{{ repeat 10000 "x" }}{{ end }}`,
	"ten megabytes of a variable":          `{{ $a := repeat 500000 "x" }}{{ range until 20 }}{{ $a }}{{ end }}`,
	"ten megabytes of a list":              `{{ $a := until 9999 }}{{ range until 1000 }}{{ $a }}{{ end }}`,
	"a terabyte within an action":          `{{ len (repeat 1000000 (repeat 1000000 "x")) }}`,
	"a string that doubles":                `{{ $a := "x" }}{{ range until 60 }}{{ $a = print $a $a }}{{ end }}`,
	"a string that doubles in if":          `{{ $a := "x" }}{{ range until 60 }}{{ if $a = print $a $a }}{{ end }}{{ end }}`,
	"a string that doubles in a pipe":      `{{ "x" ` + strings.Repeat(`| replace "x" "xx" `, 60) + `| len }}`,
	"a list that doubles":                  `{{ $a := list 1 1 }}{{ range until 60 }}{{ $a = list $a $a }}{{ end }}{{ len (toJson $a) }}`,
	"a list that doubles in if":            `{{ $a := list 1 }}{{ range until 23 }}{{ if $a = concat $a $a }}{{ end }}{{ end }}`,
	"a list that doubles in with":          `{{ $a := list 1 }}{{ range until 23 }}{{ with $a = concat $a $a }}{{ end }}{{ end }}`,
	"a list that doubles in an argument":   `{{ $a := list 1 }}{{ range until 23 }}{{ $a = (concat $a (concat $a)) }}{{ end }}`,
	"a list that grows":                    `{{ $a := list }}{{ range until 9000 }}{{ $a = append $a (repeat 1000 "x") }}{{ end }}`,
	"a list that grows in if":              `{{ $a := list }}{{ range until 9000 }}{{ if $a = prepend $a (repeat 1000 "x") }}{{ end }}{{ end }}`,
	"a list of the same":                   `{{ $a := repeat 200000 "x" }}{{ $b := list $a $a $a $a $a $a $a $a $a $a $a }}{{ len $b }}`,
	"a map that doubles":                   `{{ $a := dict "k" 1 }}{{ range until 60 }}{{ if $a = dict "a" $a "b" $a }}{{ end }}{{ end }}{{ $a }}`,
	"a map that deepens":                   `{{ $a := dict }}{{ range until 1000 }}{{ $a = dict "a" $a }}{{ end }}{{ toPrettyJson $a }}`,
	"JSON that deepens":                    `{{ fromJson (print (repeat 5000 "[") (repeat 5000 "]")) | toPrettyJson }}`,
	"JSON of many elements":                `{{ fromJson (print "[[]" (repeat 300000 ",[]") "]") | len }}`,
	"a text of many parts":                 `{{ splitList "," (repeat 500000 ",") | len }}`,
	"a text of many keys":                  `{{ split "," (repeat 500000 ",") | len }}`,
	"a format that repeats":                `{{ len (printf (repeat 100000 "%[1]s") (repeat 100000 "x")) }}`,
	"a format that is wide":                `{{ len (printf "%10000000d" 1) }}`,
	"a format that is wide often":          `{{ len (printf (repeat 1000 "%999999[1]d") 1) }}`,
	"a format that is wide by an argument": `{{ len (printf (repeat 1000 "%[1]*[1]d") 999999) }}`,
	"a format that is precise":             `{{ len (printf (repeat 1000 "%.999999[1]f") 1.5) }}`,
	"a format with flags":                  `{{ len (printf (repeat 1000 "%+- #999999[1]d") 1) }}`,
	"a replacement":                        `{{ len (replace "x" (repeat 100000 "y") (repeat 100000 "x")) }}`,
	"a replacement of nothing":             `{{ len (replace "" (repeat 100000 "y") (repeat 100000 "x")) }}`,
	"a replacement by expression":          `{{ len (regexReplaceAll "x" (repeat 100000 "x") (repeat 100000 "y")) }}`,
	"a replacement by the match":           `{{ len (regexReplaceAll ".*" (repeat 100000 "x") (repeat 100000 "$0")) }}`,
	"a long expression":                    `{{ regexMatch (repeat 500000 "x") "x" }}`,
	"a large expression":                   `{{ regexMatch "(x{900}){1}y{900}" "x" }}`,
	"an expression for a long text":        `{{ range until 1000 }}{{ regexMatch "(a|b|c){99}$" (repeat 10000 "a") }}{{ end }}`,
	"an expression that finds much":        `{{ regexFindAll "" (repeat 500000 "x") -1 | len }}`,
	"an indent":                            `{{ len (indent 1000000000 "x") }}`,
	"an indent of lines":                   `{{ len (nindent 100000 (repeat 100000 "\n")) }}`,
	"an indent of YAML":                    `{{ len (YAML (list 1 2) 1000000000) }}`,
	"a join":                               `{{ len (join (repeat 100000 "x") (until 10000)) }}`,
	"a wrap":                               `{{ len (wrapWith 1 (repeat 100000 "x") (repeat 100000 "x ")) }}`,
	"a trim":                               `{{ trimAll (repeat 100000 "é") (repeat 100000 "é") }}`,
	"a sequence":                           `{{ len (seq 1 1000000000) }}`,
	"a sequence without end":               `{{ len (seq 1 0 1000000000) }}`,
	"a range by steps":                     `{{ len (untilStep 0 1000000000 1) }}`,
	"a range that overflows":               `{{ len (untilStep 9223372036854775800 9223372036854775807 5) }}`,
	"a range backwards":                    `{{ len (until -1000000000) }}`,
	"escapes of HTML":                      `{{ $a := repeat 300000 "<" }}{{ html $a | len }}`,
	"escapes of JavaScript":                `{{ $a := repeat 300000 "<" }}{{ js $a | len }}`,
	"escapes of a query":                   `{{ $a := repeat 300000 "<" }}{{ $a = urlquery $a }}{{ $a = urlquery $a }}{{ len $a }}`,
	"quotes of quotes":                     `{{ $a := "\"" }}{{ range until 60 }}{{ $a = quote $a }}{{ end }}`,
	"an indent of nothing":                 `{{ indent 400000000 "" | len }}`,
	"a new line and an indent of nothing":  `{{ nindent 400000000 "" | len }}`,
	"a long constraint of versions":        `{{ semverCompare (repeat 150000 "=1,") "1.0.0" }}`,
	"a long version":                       `{{ semverCompare "=1" (repeat 150000 "1.") }}`,
	"a wide list":                          `{{ printf "%100000v" (until 9000) | len }}`,
	"a list that is wide by an argument":   `{{ printf "%*v" 100000 (until 9000) | len }}`,
	"many factors":                         `{{ mulf ` + strings.Repeat("1.1 ", 20000) + `}}`,
	"loops that sort a map":                `{{ $a := fromJson (print "{" (join "," (until 9000) | replace "," "\":1,\"" | printf "\"%s\":1") "}") }}{{ range until 9000 }}{{ range $a }}{{ break }}{{ end }}{{ end }}`,
	"unique elements":                      `{{ until 20000 | uniq | len }}`,
	"elements without others":              `{{ $a := until 10000 }}{{ without $a (repeat 1000 "x") | len }}`,
	"numbers of a long text":               `{{ $a := repeat 900000 "x" }}{{ range until 100 }}{{ atoi $a }}{{ end }}`,
	"comparisons of long values":           `{{ $a := toJson (until 9000) }}{{ $b := toJson (until 9000) }}{{ range 9223372036854775807 }}{{ if eq $a $b }}{{ end }}{{ end }}`,
}

// TestLimits has templates refused that take too much, before they take it.
// It is not parallel: nothing else may allocate meanwhile.
func TestLimits(t *testing.T) {
	for name, source := range tooMuch {
		t.Run(name, func(t *testing.T) {
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			_, err := renderOf(source, nil)
			runtime.ReadMemStats(&after)
			require.ErrorIs(t, err, errTooMuch)
			if !raceDetector {
				require.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(mostAllocated))
			}
		})
	}
}

// renderOf renders one value.
func renderOf(source string, data map[string]any) (string, error) {
	text := &Text{Path: field.NewPath("value"), Source: source}
	if errs := text.Parse(); len(errs) > 0 {
		return "", errs.ToAggregate()
	}
	return (&Renderer{Texts: 1}).Render(text, data)
}

// TestLimitsOfAllValues has many values that each take little, and much together.
func TestLimitsOfAllValues(t *testing.T) {
	t.Parallel()
	text := &Text{Source: `{{ repeat 1000000 "x" | len }}`}
	require.Empty(t, text.Parse())
	renderer := Renderer{Texts: 1000}
	rendered := 0
	var err error
	for ; err == nil && rendered < 1000; rendered++ {
		_, err = renderer.Render(text, nil)
	}
	require.ErrorIs(t, err, errTooMuch)
	require.Greater(t, rendered, 20)
	_, err = (&Renderer{Texts: 1000}).Render(text, nil)
	require.NoError(t, err, "the next renderer has a budget of its own")
}

// TestLimitsOfComparisons has rounds of a loop pay for the comparisons in it, which pay
// nothing themselves.
func TestLimitsOfComparisons(t *testing.T) {
	t.Parallel()
	loop := `{{ range until 9000 }}` + strings.Repeat(`{{ if %s . 1 }}{{ end }}`, 9) + `{{ end }}`
	_, err := renderOf(strings.ReplaceAll(loop, "%s", "and"), nil)
	require.NoError(t, err)
	for name := range comparisons {
		_, err := renderOf(strings.ReplaceAll(loop, "%s", name), nil)
		require.ErrorIs(t, err, errTooMuch, name)
	}
}

// TestUnsupported has functions and actions refused as they are read.
func TestUnsupported(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		`{{ $a := dict "k" 1 }}{{ $b := set $a "self" $a }}`:     `function "set" is not supported, since values do not change; make a new one with dict, pick, omit or append`,
		`{{ if mergeOverwrite (dict) (dict) }}{{ end }}`:         `function "mergeOverwrite" is not supported, since values do not change`,
		`{{ derivePassword 1 "long" "a" "b" "c" }}`:              `function "derivePassword" is not supported; docs/reference/templates.md lists those that are`,
		`{{ (semver "1.2.3").Major }}`:                           `function "semver" is not supported; did you mean semverCompare?`,
		`{{ toDate "2006" "2020" }}`:                             `function "toDate" is not supported`,
		`{{ repeet 3 "x" }}`:                                     `function "repeet" is not supported; did you mean repeat?`,
		`{{ _round }}`:                                           `function "_round" is not supported`,
		`{{ call .x }}`:                                          `function "call" is not supported`,
		`{{ if false }}{{ with $a := (now) }}{{ end }}{{ end }}`: "result differs from call to call; use uuid or values of .Node instead",
		`{{ .x | env }}`:                                         "result differs from call to call",
		`{{ range list }}{{ else }}{{ now }}{{ end }}`:           "result differs from call to call",
		`{{define "value"}}{{template "value" .}}{{end}}`:        "define, block and template are not supported",
		`{{define "a"}}{{end}}x`:                                 "define, block and template are not supported",
		`{{- block "a" . }}{{ end }}`:                            "define, block and template are not supported",
		`{{ if true }}{{template "value" .}}{{ end }}`:           "define, block and template are not supported",
		`x{{end}}y{{define "z"}}w`:                               "unexpected {{end}}",
	} {
		errs := (&Text{Path: field.NewPath("spec", "poolName"), Source: text}).Check(nil)
		require.ErrorContains(t, errs.ToAggregate(), want, text)
		require.Equal(t, "spec.poolName", errs[0].Field, text)
		require.Equal(t, text, errs[0].BadValue, text)
	}
}

// TestFunctions has each function that templates may call there, and none that
// yields something with methods, which nothing would pay for.
func TestFunctions(t *testing.T) {
	t.Parallel()
	charged := (&budget{}).chargedFunctions(functionNames)
	of := strings.Fields("and eq ge gt index le len lt ne not or")
	for _, name := range functionNames {
		function, ok := charged[name]
		if !ok {
			require.Contains(t, of, name)
			continue
		}
		kind := reflect.TypeOf(function).Out(0)
		require.Zero(t, kind.NumMethod(), name)
		require.NotContains(t, []reflect.Kind{reflect.Func, reflect.Pointer, reflect.Struct, reflect.Chan}, kind.Kind(), name)
	}
	for name := range sprig.TxtFuncMap() {
		if unstableFunctions.Has(name) || mutatingFunctions.Has(name) {
			require.NotContains(t, functionCosts, name)
		}
	}
}

// TestFunctionsAreDocumented, all of them.
func TestFunctionsAreDocumented(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../../docs/reference/templates.md")
	require.NoError(t, err)
	for _, name := range functionNames {
		require.Contains(t, string(page), "`"+name+"`")
	}
}

// TestRendersAsKwok has whatever templates may say yield the same as in kwok.
func TestRendersAsKwok(t *testing.T) {
	t.Parallel()
	given := map[string]any{"Node": sampleNode, "List": []any{"a", "b", "c"}}
	encoded, err := EncodeValue(given)
	require.NoError(t, err)
	data := encoded.(map[string]any)
	for _, source := range []string{
		`{{- range $i, $e := .List }}{{ if eq $i 1 }}{{ continue }}{{ end }} {{ $i }}={{ $e -}} {{ else }}none{{ end }}!`,
		`{{ range .List }}{{ if eq . "b" }}{{ break }}{{ else if eq . "a" }}A{{ else }}?{{ end }}{{ end }}`,
		`{{ range .Missing }}x{{ else }}none{{ end }}`,
		`{{ .Missing }}|{{ with .Missing }}x{{ else with .List }}{{ len . }}{{ end }}`,
		`{{ $a := 1 }}{{ range until 3 }}{{ $a = add $a . }}{{ end }}{{ $a }}{{/* a comment */}}`,
		`{{ printf "%03d-%s" 7 (upper "x") | quote }}{{ "{{" }}` + "{{ `raw\"` }}",
		`{{ (index .Node.metadata.labels "kubernetes.io/hostname") | replace "s" "S" | repeat 2 }}{{ true }}{{ 'x' }}{{ 1.50 }}`,
		`{{ nil | default 0x10 }}{{ .Node.metadata.generation }}{{ .Node.spec }}`,
		`{{ $d := dict "k" "v" "l" (list 1 2) }}{{ toJson $d }}{{ toPrettyJson $d }}{{ pick $d "k" }}{{ omit $d "k" }}`,
		`{{ join "-" (list 1 2 3) }}{{ indent 2 "x" }}{{ print 1 2 "x" }}{{ seq 1 3 }}{{ YAML (dict "a" 1) 1 }}{{ YAML .List }}`,
		`{{ .Node | YAML }}{{ Quote .List }}{{ Quote "a\"<" }}{{ Quote 1 }}{{ Quote nil }}`,
		`{{ regexReplaceAll "a(.)" "abac" "${1}x" }}{{ regexFind "[0-9]+$" "node-17" }}{{ regexSplit "-" "a-b-c" -1 }}`,
		`{{ slice .List 1 2 }}{{ first .List }}{{ rest .List }}{{ uniq (list 1 1 2) }}{{ without .List "a" }}{{ has "a" .List }}`,
		`{{ $c := fromJson "{\"a\": [1, 2.5]}" }}{{ index $c.a 1 }}{{ dig "a" "x" $c }}{{ splitList "/" "a/b" | last }}{{ (split "/" "a/b")._1 }}`,
		`{{ html "<a>" }}{{ js "'" }}{{ urlquery "a b" }}{{ println 1 }}{{ and 1 0 }}{{ or 0 "x" }}{{ not true }}{{ lt 1 2 }}`,
		`{{ sha256sum "x" }}{{ b64enc "x" | b64dec }}{{ trunc 3 "abcdef" }}{{ ternary 1 2 true }}{{ coalesce "" "x" }}{{ div 7 2 }}`,
		`{{ fail "no" }}`, `{{ index .List 7 }}`, `{{ atoi }}`, `{{ div 1 0 }}`, `{{ .List.a }}`, `{{ mustRegexMatch "(" "x" }}`,
	} {
		want, failure := gotpl.NewRenderer(nil).ToText(source, given)
		rendered, err := renderOf(source, data)
		require.Equal(t, failure == nil, err == nil, "%s: kwok %v, here %v", source, failure, err)
		require.Equal(t, string(want), rendered, source)
	}
}

// TestLimitsLeaveRoom has what large templates for many devices take.
func TestLimitsLeaveRoom(t *testing.T) {
	t.Parallel()
	encoded, err := EncodeValue(map[string]any{"Node": sampleNode})
	require.NoError(t, err)
	data := encoded.(map[string]any)
	text := &Text{Source: `{{ range until 10 }}{{ uuid . $.Index }}{{ end }}{{ if eq .Index 3 }}{{ toJson .Node }}{{ end }}`}
	require.Empty(t, text.Parse())
	renderer := Renderer{Texts: 2000}
	for i := range 2000 {
		data["Index"] = i
		_, err := renderer.Render(text, data)
		require.NoError(t, err)
	}
	one, err := renderOf(`{{ range until 2000 }}{{ . }}{{ end }}{{ toJson (until 2000) | len }}{{ repeat 50000 "x" }}`, nil)
	require.NoError(t, err)
	require.Greater(t, len(one), 50000)
}

// TestWeight: a value that is deep or large weighs more than there may be.
func TestWeight(t *testing.T) {
	t.Parallel()
	itself := map[string]any{}
	itself["self"] = itself
	require.True(t, math.IsInf(weightOf(reflect.ValueOf(itself)), 1))
	require.True(t, math.IsInf(weightOf(reflect.ValueOf(strings.Repeat("x", textBudget))), 1))
	require.InDelta(t, 3*elementCost+1, weightOf(reflect.ValueOf([]any{"x", 1})), 0)
	require.InDelta(t, elementCost, weightOf(reflect.ValueOf(nil)), 0)
}

// TestRefuseEndless has a template refused when it is checked, if it never ends with any data.
func TestRefuseEndless(t *testing.T) {
	t.Parallel()
	endless := &Text{Source: `{{ range 9223372036854775807 }}{{ end }}`}
	require.ErrorContains(t, endless.Check(nil).ToAggregate(), "takes too much time or memory")
}

// sampleNode is what templates see in tests.
var sampleNode = &corev1.Node{ObjectMeta: metav1.ObjectMeta{
	Name: "sample", UID: "uid", Labels: map[string]string{"kubernetes.io/hostname": "sample"}, Annotations: map[string]string{"kwok.x-k8s.io/node": "fake"},
}}

// FuzzText: whatever a template says, it is refused, fails or renders, the same each time.
func FuzzText(f *testing.F) {
	for _, seed := range tooMuch {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, source string) {
		text := &Text{Path: field.NewPath("value"), Source: source}
		if len(text.Check(map[string]any{"Index": 0})) > 0 {
			return
		}
		once, err := (&Renderer{Texts: 1}).Render(text, map[string]any{"Index": 0})
		again, errAgain := (&Renderer{Texts: 1}).Render(text, map[string]any{"Index": 0})
		require.Equal(t, once, again)
		require.Equal(t, err == nil, errAgain == nil)
	})
}
