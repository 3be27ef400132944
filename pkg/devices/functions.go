package devices

import (
	"fmt"
	"maps"
	"math"
	"reflect"
	"slices"
	"strings"
	"text/template"

	"github.com/Masterminds/sprig/v3"
)

// What templates may call, by what a call costs. None changes its arguments, and none
// yields anything but text, numbers, bools, lists and maps.
const (
	// ofGo are the functions of Go templates that pay nothing.
	ofGo = `and eq ge gt index le len lt ne not or`
	// partial functions pay nothing either: they yield a part of their arguments, or
	// next to nothing.
	partial = `add add1 add1f addf atoi biggest ceil coalesce default dig div divf empty fail first float64 floor get
hasKey int int64 kindIs kindOf last max maxf min minf mod mul mulf mustFirst mustLast mustSlice slice sub subf ternary
toDecimal typeIs typeIsLike typeOf`
	// reading functions read their arguments, and yield as much.
	reading = `Quote abbrev abbrevboth adler32sum all any append b32dec b32enc b64dec b64enc base camelcase cat clean
compact concat contains deepEqual dict dir ext has hasPrefix hasSuffix html initial initials isAbs js kebabcase keys
list lower mustAppend mustCompact mustHas mustInitial mustPrepend mustRest mustReverse nospace omit pick pluck plural prepend
print println quote regexQuoteMeta rest reverse semverCompare sha1sum sha256sum sha512sum snakecase sortAlpha squote
substr swapcase title toRawJson mustToRawJson toJson mustToJson toPrettyJson mustToPrettyJson toString toStrings trim
trimPrefix trimSuffix trunc tuple untitle upper urlJoin urlParse urlquery uuid values wrap`
	// decoding and splitting functions make elements of a text.
	decoding  = `fromJson mustFromJson`
	splitting = `split splitList splitn`
	// crossing functions may do something with each argument for each byte of others.
	crossing = `mustWithout replace trimAll trimall without wrapWith`
	// counting functions yield as many elements as their arguments say.
	counting = `seq until untilStep`
	// repeating functions do as often as the first argument says, or for its length,
	// what they do with the others.
	repeating = `indent join nindent repeat`
	matching  = `mustRegexFind mustRegexFindAll mustRegexMatch mustRegexReplaceAll mustRegexReplaceAllLiteral
mustRegexSplit regexFind regexFindAll regexMatch regexReplaceAll regexReplaceAllLiteral regexSplit`
)

// functions are all that templates may call, with what a call costs. It is nil for
// those that pay nothing.
var functions = func() map[string]cost {
	all := map[string]cost{"printf": costOfFormat, "YAML": costOfYAML, "uniq": costOfUniq, "mustUniq": costOfUniq}
	for names, cost := range map[string]cost{
		ofGo: nil, partial: nil, reading: costOfReading, decoding: costOfJSON, splitting: costOfSplitting,
		crossing: costOfCrossing, counting: costOfCounting, repeating: costOfRepeating, matching: costOfMatching,
	} {
		for name := range strings.FieldsSeq(names) {
			all[name] = cost
		}
	}
	return all
}()

// supported are the names of the functions.
var supported = slices.Sorted(maps.Keys(functions))

// own are the functions that are not sprig's.
var own = map[string]any{
	"print": fmt.Sprint, "println": fmt.Sprintln, "printf": fmt.Sprintf,
	"html": template.HTMLEscaper, "js": template.JSEscaper, "urlquery": template.URLQueryEscaper,
	"Quote": quoted, "YAML": asYAML, "uuid": deterministicUUID, "keys": sortedKeys, "values": sortedValues,
}

// round is the function that loops call. No template can call it.
const round = "_round"

// implementations are sprig's functions and our own.
var implementations = func() template.FuncMap {
	all := sprig.TxtFuncMap()
	maps.Copy(all, own)
	return all
}()

// functionsWithin are the functions of those names, held to a budget.
func functionsWithin(b *budget, names []string) template.FuncMap {
	within := template.FuncMap{round: b.round}
	for _, name := range names {
		switch function, ok := implementations[name]; {
		case functions[name] != nil:
			within[name] = b.bound(function, functions[name])
		case ok:
			within[name] = function
		}
	}
	return within
}

// bound is a function that pays for each call, and refuses one that it cannot pay.
func (b *budget) bound(function any, cost cost) any {
	f := reflect.ValueOf(function)
	kind := f.Type()
	out := []reflect.Type{kind.Out(0), reflect.TypeFor[error]()}
	return reflect.MakeFunc(reflect.FuncOf(slices.Collect(kind.Ins()), out, kind.IsVariadic()), func(given []reflect.Value) []reflect.Value {
		results := []reflect.Value{reflect.Zero(out[0]), reflect.Zero(out[1])}
		err := b.pay(stepCost + cost(argumentsOf(given, kind.IsVariadic())))
		if err == nil {
			copy(results, call(f, given))
			err = b.pay(weight(results[0]))
		}
		if err != nil {
			results[1] = reflect.ValueOf(err)
		}
		return results
	}).Interface()
}

func call(f reflect.Value, arguments []reflect.Value) []reflect.Value {
	if f.Type().IsVariadic() {
		return f.CallSlice(arguments)
	}
	return f.Call(arguments)
}

func argumentsOf(given []reflect.Value, variadic bool) []argument {
	var arguments []argument
	for i, value := range given {
		if variadic && i == len(given)-1 {
			for j := range value.Len() {
				arguments = append(arguments, argumentOf(value.Index(j)))
			}
			break
		}
		arguments = append(arguments, argumentOf(value))
	}
	return arguments
}

// argument is an argument of a call.
type argument struct{ reflect.Value }

func argumentOf(value reflect.Value) argument {
	for value.IsValid() && value.Kind() == reflect.Interface {
		value = value.Elem()
	}
	return argument{value}
}

// number is the value of an integer, without its sign.
func (a argument) number() float64 {
	if !a.IsValid() || !a.CanInt() {
		return 0
	}
	return math.Abs(float64(a.Int()))
}

// text is a string, or empty.
func (a argument) text() string {
	if !a.IsValid() || a.Kind() != reflect.String {
		return ""
	}
	return a.String()
}
