package lifecycle

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
)

// loops are as many loops within each other, of ten rounds each.
func loops(depth int) string {
	if depth == 0 {
		return "true"
	}
	return "[0,1,2,3,4,5,6,7,8,9].all(i, " + loops(depth-1) + ")"
}

// rounds are as many in jq as no object needs.
var rounds = strings.Repeat("((1,2,3,4,5,6,7,8,9)|select(. > 0)) as $x | ", 7) + "empty"

// TestEndless: a selector without end holds nobody up, and is no mere mismatch.
func TestEndless(t *testing.T) {
	t.Parallel()
	long := &corev1.Node{}
	long.Name = strings.Repeat("x", 100<<10)
	for name, test := range map[string]struct {
		expression matchExpression
		node       *corev1.Node
		want       string
	}{
		"jq without end":       {jqOf(rounds, "Exists"), &corev1.Node{}, "takes more than 200000 steps or 5s; look for a loop without end"},
		"jq of one object":     {jqOf("if .metadata.name then "+rounds+" else empty end", "Exists"), nodes["named"], "takes more than 200000 steps or 5s; look for a loop without end"},
		"loops within loops":   {celOf(`self.metadata.name == "" || ` + loops(7)), nodes["named"], "costs more than 100000 steps; look for loops within loops"},
		"a pattern many times": {celOf(`self.metadata.name == "" || ` + strings.Repeat(`self.metadata.name.matches("x*y") || `, 20) + "false"), long, "costs more than 100000 steps; look for loops within loops"},
	} {
		compiled, errs := NodeCEL.CompileSelector(matching(test.expression), path)
		require.Empty(t, errs, name)
		_, err := compiled.Matches(t.Context(), NewObject(test.node))
		require.EqualError(t, err, "evaluate spec.publishWhen: "+test.want, name)
	}
}

// TestCostlySteps: a step that takes long counts as many. In a bubble no time passes while
// something is evaluated, so it is the count alone that ends it.
func TestCostlySteps(t *testing.T) {
	t.Parallel()
	large := &corev1.Node{}
	large.Annotations = map[string]string{"a": strings.Repeat("ab", 100_000)}
	for i := range 1500 {
		large.Annotations[fmt.Sprint(i)] = fmt.Sprint(i)
	}
	const each = ".metadata.annotations as $all | $all[] | "
	for expression, ends := range map[string]bool{
		`.metadata.annotations.a | (` + strings.Repeat(`test("(a|b|ab){0,99}x$"),`, 60) + `empty)`:      true,
		`.metadata.annotations.a | (` + strings.Repeat(`test("(a|b|ab){0,99}x$"; "i"),`, 60) + `empty)`: true,
		each + `$all | to_entries | empty`:                                                     true,
		each + `$all == $all | empty`:                                                          true,
		`.metadata.annotations | . == . and length > 1000`:                                     false,
		`.metadata.annotations.a | test("^a.*b$") and length == 200000`:                        false,
		`.metadata.annotations | to_entries | map(select(.value | test("^1"))) | length > 600`: false,
	} {
		synctest.Test(t, func(t *testing.T) {
			compiled, errs := NodeCEL.CompileSelector(matching(jqOf(expression, "In", "true")), path)
			require.Empty(t, errs, expression)
			matched, err := compiled.Matches(t.Context(), NewObject(large))
			if ends {
				require.ErrorIs(t, err, errEndless, expression)
				return
			}
			require.NoError(t, err, expression)
			require.True(t, matched, expression)
		})
	}
}

// TestClockOfSteps: what is not counted is timed, within few steps. The first steps are
// not: on a busy machine a good selector is slow as well.
func TestClockOfSteps(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &stepLimit{t.Context(), jqSteps, time.Now().Add(evaluationTimeout)}
		time.Sleep(evaluationTimeout + time.Second) // of the bubble's clock
		for range jqStepsUntimed {
			s.Done()
		}
		require.NoError(t, s.Err())
		for range jqStepsTimed {
			s.Done()
		}
		require.ErrorIs(t, s.Err(), errEndless)
	})
}

// TestLoopsOfCELEnd with their context.
func TestLoopsOfCELEnd(t *testing.T) {
	t.Parallel()
	compiled, errs := NodeCEL.CompileSelector(matching(celOf(loops(3))), path)
	require.Empty(t, errs)
	ended, end := context.WithCancel(t.Context())
	end()
	_, err := compiled.Matches(ended, NewObject(&corev1.Node{}))
	require.ErrorIs(t, err, context.Canceled)
}

// TestCostlyIsRefused where it costs as much for any object.
func TestCostlyIsRefused(t *testing.T) {
	t.Parallel()
	_, errs := NodeCEL.CompileSelector(matching(celOf(loops(7))), path)
	require.Len(t, errs, 1)
	require.ErrorContains(t, errs[0], "costs more than 100000 steps")
}

// TestWithinLimits: what a selector has to do for a large Node is within them.
func TestWithinLimits(t *testing.T) {
	t.Parallel()
	large := &corev1.Node{}
	large.Annotations = map[string]string{}
	for i := range 2000 {
		large.Annotations[strings.Repeat("k", 16)+string(rune('\u0400'+i))] = strings.Repeat("v", 14)
	}
	for _, expression := range []matchExpression{
		jqOf(".metadata.annotations | to_entries | map(select(.value | length > 10)) | length", "Exists"),
		celOf("self.metadata.annotations.all(key, self.metadata.annotations[key].size() > 10)"),
	} {
		compiled, errs := NodeCEL.CompileSelector(matching(expression), path)
		require.Empty(t, errs)
		matched, err := compiled.Matches(t.Context(), NewObject(large))
		require.NoError(t, err)
		require.True(t, matched)
	}
}

// BenchmarkMatches is what a change of a Node costs for each selector.
func BenchmarkMatches(b *testing.B) {
	for name, expression := range map[string]matchExpression{
		"jq":  jqOf(readyStatus, "In", "True"),
		"cel": celOf(`self.metadata.name == "n2" && "pool" in self.metadata.labels`),
	} {
		compiled, errs := NodeCEL.CompileSelector(matching(expression), path)
		require.Empty(b, errs)
		object := NewObject(nodes["ready"])
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := compiled.Matches(b.Context(), object); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
