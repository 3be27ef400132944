package gotemplate

import (
	"fmt"
	"math"
	"math/rand/v2"
	"reflect"
	"runtime"
	"strings"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
)

// hostile are arguments with which functions make much of little.
func hostile() []any {
	var list, deep []any
	for i := range 9000 {
		list = append(list, i)
	}
	deep = list
	object := map[string]any{}
	for i := range 3000 {
		object[strings.Repeat("k", 1+i%50)+string(rune('\u4000'+i))] = i
	}
	for range 90 {
		deep = []any{deep}
	}
	all := []any{list, deep, object, nil, true, 1.5, math.MaxFloat64}
	for _, number := range []int{-1, 0, 1, 7, 1000, 100_000, 400_000_000, math.MaxInt64, math.MinInt64} {
		all = append(all, number)
	}
	for _, text := range []string{"", "x", "%", "1e308", "%1000v", "%999999v%[1]v", "%[1]*[1]v", "%+#q", ".*", "(a|b|ab){0,99}x$", "{{"} {
		all = append(all, text)
	}
	for _, part := range []string{"x", "x ", " ", "\n", "\x00", "\xff", "é", "\U0001f600", "<", "'", "xY", "x_", "1", "1,", "=1,", "1||", ">1.x ", "[", "[],", `{"":`, "%", "%v", "%[1]v", "%41", "/", "../", "$0", "a|", "?"} {
		all = append(all, strings.Repeat(part, 300_000/len(part)))
	}
	return all
}

// TestFunctionsPayForWhatTheyMake calls every function with hostile arguments of its types: none
// allocates many times as much as it pays for. So what a rendering takes is limited.
// It is not parallel: nothing else may allocate meanwhile.
func TestFunctionsPayForWhatTheyMake(t *testing.T) {
	const perByte, slack, calls = mostAllocated / textBudget, 256 << 10, 60
	values := hostile()
	random := rand.New(rand.NewPCG(1, 2))
	called := 0
	for _, name := range functionNames {
		b := &budget{}
		function := reflect.ValueOf(b.chargedFunctions(functionNames)[name])
		if !function.IsValid() {
			continue // Go's own that pay nothing, and make nothing
		}
		for range calls {
			given := argumentsFor(random, values, function.Type())
			b.left = textBudget
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			returned := callSafely(function, given)
			runtime.ReadMemStats(&after)
			called += returned
			paid := min(textBudget, textBudget-b.left)
			if allocated := after.TotalAlloc - before.TotalAlloc; !raceDetector && float64(allocated) > perByte*paid+slack {
				t.Errorf("%s%s allocates %d bytes and pays for %.0f", name, beginnings(given), allocated, paid)
			}
		}
	}
	require.Greater(t, called, len(functionNames)*calls/4, "most calls are valid")
}

// argumentsFor are values that the parameters of a function take.
func argumentsFor(random *rand.Rand, values []any, function reflect.Type) (given []reflect.Value) {
	for kind := range function.Ins() {
		if function.IsVariadic() && len(given) == function.NumIn()-1 {
			for range random.IntN(4) {
				given = append(given, argumentFor(random, values, kind.Elem()))
			}
			break
		}
		given = append(given, argumentFor(random, values, kind))
	}
	return given
}

// argumentFor is a value that a parameter of the type takes.
func argumentFor(random *rand.Rand, values []any, kind reflect.Type) reflect.Value {
	for range 1000 {
		value := reflect.ValueOf(values[random.IntN(len(values))])
		switch {
		case !value.IsValid() && kind.Kind() == reflect.Interface:
			return reflect.Zero(kind)
		case value.IsValid() && value.Type().AssignableTo(kind):
			return value
		}
	}
	return reflect.Zero(kind)
}

// callSafely calls a function as templates do, and counts calls without a panic.
func callSafely(function reflect.Value, given []reflect.Value) (returned int) {
	defer func() { _ = recover() }()
	function.Call(given)
	return 1
}

// beginnings are the first bytes of all arguments.
func beginnings(given []reflect.Value) (text string) {
	for _, value := range given {
		text += fmt.Sprintf(" %.20q", fmt.Sprint(value))
	}
	return text
}

func TestUUID(t *testing.T) {
	t.Parallel()
	got := uuidOf(t, "node", 0)
	require.Equal(t, "06e71278-8ad8-502c-8e1a-3bb1d6ae858e", got, "a release must not change what is published")
	parsed, err := uuid.Parse(got)
	require.NoError(t, err)
	require.Equal(t, uuid.Version(5), parsed.Version())
	require.Equal(t, got, uuidOf(t, "node", 0))
	require.Equal(t, got, uuidOf(t, "node", int64(0)))
	distinct := map[string]bool{got: true}
	for _, arguments := range [][]any{{}, {"node"}, {"node", 1}, {"node0"}, {"node", "", 0}, {"no", "de", 0}} {
		distinct[uuidOf(t, arguments...)] = true
	}
	require.Len(t, distinct, 7)
}

func uuidOf(t *testing.T, arguments ...any) string {
	t.Helper()
	made, err := UUID(arguments...)
	require.NoError(t, err)
	return made
}
