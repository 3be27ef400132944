package lifecycle

import (
	"fmt"
	"os"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
)

// mostAllocated is what reading or evaluating one expression may allocate in all,
// garbage included.
const mostAllocated = 128 << 20

// requireLittle fails where a function allocates much. Nothing else may run.
func requireLittle(t *testing.T, name string, f func()) {
	t.Helper()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	require.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(mostAllocated), name)
}

// TestJQThatGrowsIsRefused: what makes values, and so may take all memory in a
// single step, is refused when it is read.
func TestJQThatGrowsIsRefused(t *testing.T) {
	for expression, want := range map[string]string{
		`"x" * 500000000 | length`:                 "* is not supported; a selector reads and compares",
		`500000000 * "x" | length`:                 "* is not supported",
		`reduce (1,2) as $i (10; . * .)`:           "* is not supported",
		`.[100000000] = 1`:                         "= is not supported",
		`.a |= .b`:                                 "|= is not supported",
		`.a += 1`:                                  "+= is not supported",
		`.a *= 2`:                                  "*= is not supported",
		`reduce (1,2,3) as $i ("x"; . + .)`:        "+ is supported with a literal number only",
		`.metadata.name + "x"`:                     "+ is supported with a literal number only",
		`.metadata.name / ""`:                      "/ is supported with a literal number only",
		`last(range(1e12))`:                        "function range is not supported; there are all, any, ",
		`repeat(empty)`:                            "function repeat is not supported",
		`setpath([100000000]; 1)`:                  "function setpath is not supported",
		`pick(.[100000000])`:                       "function pick is not supported",
		`[limit(1000000; repeat("x"))] | join("")`: "function limit is not supported",
		`[., .] | tojson`:                          "function tojson is not supported",
		`.metadata.name | explode`:                 "function explode is not supported",
		`.metadata.name | gsub(""; "xxxxxxxx")`:    "function gsub is not supported",
		`.metadata.name | split("")`:               "function split is not supported",
		`.metadata.name | ascii_downcase`:          "function ascii_downcase is not supported",
		`input`:                                    "function input is not supported",
		`env`:                                      "function env is not supported",
		`def f: [f, f]; f`:                         "def is not supported",
		`import "a" as a; .`:                       "import and include are not supported",
		`"\(.)\(.)"`:                               `strings with \( ) are not supported`,
		`.metadata.name | @base64`:                 "@base64 is not supported",
		`.metadata.annotations.a[(.metadata.labels[] | length):]`:           "slices are not supported",
		`.metadata.name | test(.metadata.labels[])`:                         "test is supported with a literal string only",
		`.metadata.name | test("x{900}y{900}")`:                             "the regular expression of test has ",
		`.metadata | contains(.)`:                                           "contains is supported with a literal string only",
		`[., .] | [., .] | [., .] | . == .`:                                 "compare with a literal",
		`reduce .metadata.labels[] as $x (.; {a: ., b: .}) | select(. < .)`: "compare with a literal",
		strings.Repeat("(", 5001) + "." + strings.Repeat(")", 5001):         "is longer than 10000 characters",
	} {
		requireLittle(t, expression, func() {
			_, errs := NodeCEL.CompileSelector(matching(jqOf(expression, "Exists")), path)
			require.Len(t, errs, 1, expression)
			require.Equal(t, "spec.publishWhen.matchExpressions[0]", errs[0].Field)
			require.Equal(t, expression, errs[0].BadValue)
			require.ErrorContains(t, errs[0], want)
		})
	}
}

// wideNode is about as large as a Node may be.
func wideNode() *corev1.Node {
	node := &corev1.Node{}
	node.Annotations = map[string]string{"digits": strings.Repeat("9", 128<<10)}
	for i := range 4000 {
		node.Annotations[fmt.Sprintf("key-%d", i)] = "value"
	}
	return node
}

// TestJQTakesLittle: what is left of jq takes some bytes for each step, whatever
// the object.
func TestJQTakesLittle(t *testing.T) {
	object := NewObject(wideNode())
	_, err := object.Decoded()
	require.NoError(t, err)
	for _, expression := range []string{
		rounds,
		`.metadata.annotations | [.[] as $x | .]`,
		`.metadata.annotations | [select(.[]) | to_entries] | length`,
		`.metadata.annotations | [select(.[]) | .digits | tonumber] | length`,
		`[.metadata.annotations[]]` + strings.Repeat(` | [.[], .[]]`, 30) + ` | length`,
		`.` + strings.Repeat(` | [., .]`, 500) + ` | length`,
		`.` + strings.Repeat(` | {a: ., b: .}`, 500) + ` | length > 1`,
		`reduce .metadata.annotations[] as $x (.; [., .]) | type`,
		`reduce (.metadata.annotations[] | length) as $x (.; [., .]) | select(. == "x")`,
		`[..] | map(..) | map(..) | length`,
		`.metadata.annotations | map(select(length > 3 and test("^v.*e$"))) | length`,
		`.metadata.annotations | to_entries | map(to_entries) | map(to_entries) | length`,
	} {
		compiled, errs := NodeCEL.CompileSelector(matching(jqOf(expression, "Exists")), path)
		require.Empty(t, errs, expression)
		requireLittle(t, expression, func() {
			if _, err := compiled.Matches(t.Context(), object); err != nil {
				require.ErrorContains(t, err, errEndless.Error(), expression)
			}
		})
	}
}

// TestJQFunctionsAreDocumented, all of them.
func TestJQFunctionsAreDocumented(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../../docs/reference/templates.md")
	require.NoError(t, err)
	require.Contains(t, string(page), "`"+strings.Join(jqFunctions, "`, `")+"`")
}

// TestJQSupported has what selectors ask of Nodes and Pods.
func TestJQSupported(t *testing.T) {
	t.Parallel()
	for expression, want := range map[string]bool{
		`.status.conditions[]? | select(.type == "Ready" and .status == "False") | .reason`:                             true,
		`[.status.conditions[] | select(.status != "Unknown")] | length == 2`:                                           true,
		`.status.conditions | map(.type) | any(. == ("Ready", "Other")) | select(.)`:                                    true,
		`select(any(.status.conditions[]; .type | startswith("Mem")))`:                                                  true,
		`select(all(.status.conditions[]; .status == "True"))`:                                                          false,
		`.metadata.annotations | to_entries[] | select(.key | endswith("/node")) | .value`:                              true,
		`.metadata.annotations["kwok.x-k8s.io/node"] | select(test("^(real|fake)$"; "i"))`:                              true,
		`.metadata.labels.number // "8" | tonumber - 1 | select(. >= 7)`:                                                true,
		`select(.metadata.labels.a == .metadata.labels.b)`:                                                              true,
		`if .spec.unschedulable then . else empty end`:                                                                  false,
		`first(.status.conditions[] | .reason | values)`:                                                                true,
		`.. | strings | select(contains("real"))`:                                                                       true,
		`try .metadata.name.nothing catch .`:                                                                            true,
		`.status.conditions as [$first] | $first.type`:                                                                  true,
		`reduce .status.conditions[] as $c (0; . + 1) | select(. > 1 and . % 2 == 0)`:                                   true,
		`.metadata | select(has("name") and (has("nothing") | not)) | .name | select(length > -1 and type == "string")`: true,
	} {
		compiled, errs := NodeCEL.CompileSelector(matching(jqOf(expression, "Exists")), path)
		require.Empty(t, errs, expression)
		matched, err := compiled.Matches(t.Context(), NewObject(nodes["not ready"]))
		require.NoError(t, err, expression)
		require.Equal(t, want, matched, expression)
	}
}
