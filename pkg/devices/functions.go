package devices

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"text/template"

	"github.com/Masterminds/sprig/v3"
	"github.com/google/uuid"
	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/yaml"

	"github.com/kwok-dra/kwok-dra/pkg/api/v1alpha1"
)

// functions are all that templates may call, with what a call costs. It is nil for
// those that pay nothing. None changes its arguments, and none yields anything but text,
// numbers, bools, lists and maps.
var functions = func() map[string]cost {
	all := map[string]cost{}
	for names, cost := range map[string]cost{
		// Of Go templates.
		`and eq ge gt index le len lt ne not or`: nil,
		// They yield a part of their arguments, or next to nothing, and read nothing long.
		`coalesce default dig empty fail first get hasKey kindIs kindOf last mustFirst mustLast ternary typeIs typeOf`: nil,
		// They read all but a list that comes first.
		`mustSlice slice typeIsLike`: costOfRest,
		// They read their arguments, and yield as much.
		`Quote abbrev abbrevboth add add1 add1f addf adler32sum all any append atoi b32dec b32enc b64dec b64enc base
		biggest camelcase cat ceil clean compact concat contains deepEqual dict dir div divf ext float64 floor has
		hasPrefix hasSuffix html initial initials int int64 isAbs js kebabcase keys list lower max maxf min minf mod
		mul mustAppend mustCompact mustHas mustInitial mustPrepend mustRest mustReverse mustToJson
		mustToPrettyJson mustToRawJson nospace omit pick pluck plural prepend print println quote regexQuoteMeta rest
		reverse sha1sum sha256sum sha512sum snakecase sortAlpha squote sub subf substr swapcase title
		toDecimal toJson toPrettyJson toRawJson toString toStrings trim trimPrefix trimSuffix trunc tuple untitle
		upper urlJoin urlParse urlquery uuid values wrap`: costOfReading,
		// They make elements of a text.
		`fromJson mustFromJson`: costOfJSON, `split splitList splitn`: costOfSplitting,
		// They may do something with each argument for each byte of others.
		`mustWithout replace trimAll trimall without wrapWith`: costOfCrossing,
		// They yield as many elements as their arguments say.
		`seq until untilStep`: costOfCounting,
		// They do as often as the first argument says, or for its length, what they do with the others.
		`join repeat`: costOfRepeating, `indent nindent`: costOfIndenting,
		`mustRegexFind mustRegexFindAll mustRegexMatch mustRegexReplaceAll mustRegexReplaceAllLiteral mustRegexSplit
		regexFind regexFindAll regexMatch regexReplaceAll regexReplaceAllLiteral regexSplit`: costOfMatching,
		`printf`: costOfFormat, `YAML`: costOfYAML, `semverCompare`: costOfVersions,
		// They do something with each pair of their arguments or elements.
		`mulf mustUniq uniq`: costOfPairs,
	} {
		for name := range strings.FieldsSeq(names) {
			all[name] = cost
		}
	}
	return all
}()

// compare are Go's functions that read their arguments. Nothing has them pay, so rounds
// of loops pay for them.
var compare = sets.New("eq", "ge", "gt", "le", "lt", "ne")

// supported are the names of the functions.
var supported = slices.Sorted(maps.Keys(functions))

// each and round are functions that loops call, with what they loop over and in each round.
// No template can call them.
const each, round = "_each", "_round"

// implementations are sprig's functions, Go's and our own.
var implementations = func() template.FuncMap {
	all := sprig.TxtFuncMap()
	maps.Copy(all, map[string]any{
		"print": fmt.Sprint, "println": fmt.Sprintln, "printf": fmt.Sprintf,
		"html": template.HTMLEscaper, "js": template.JSEscaper, "urlquery": template.URLQueryEscaper,
		"Quote": quoted, "YAML": asYAML, "uuid": UUID, "keys": sortedKeys, "values": sortedValues,
	})
	return all
}()

// functionsWithin are the functions of those names, held to a budget.
func functionsWithin(b *budget, names []string) template.FuncMap {
	within := template.FuncMap{each: b.each, round: b.round}
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
	kind, call := f.Type(), f.Call
	if kind.IsVariadic() {
		call = f.CallSlice
	}
	out := []reflect.Type{kind.Out(0), reflect.TypeFor[error]()}
	return reflect.MakeFunc(reflect.FuncOf(slices.Collect(kind.Ins()), out, kind.IsVariadic()), func(given []reflect.Value) []reflect.Value {
		results := []reflect.Value{reflect.Zero(out[0]), reflect.Zero(out[1])}
		err := b.pay(stepCost + cost(argumentsOf(given, kind.IsVariadic())))
		if err == nil {
			copy(results, call(given))
			err = b.pay(weight(results[0]))
		}
		if err != nil {
			results[1] = reflect.ValueOf(err)
		}
		return results
	}).Interface()
}

func argumentsOf(given []reflect.Value, variadic bool) []argument {
	var arguments []argument
	if variadic {
		last := len(given) - 1
		rest := given[last]
		given = slices.Clone(given[:last])
		for _, value := range rest.Seq2() {
			given = append(given, value)
		}
	}
	for _, value := range given {
		for value.IsValid() && value.Kind() == reflect.Interface {
			value = value.Elem()
		}
		arguments = append(arguments, argument{value})
	}
	return arguments
}

// argument is an argument of a call.
type argument struct{ reflect.Value }

// number is the value of an integer, without its sign.
func (a argument) number() float64 {
	if !a.CanInt() {
		return 0
	}
	return math.Abs(float64(a.Int()))
}

// text is a string, or empty.
func (a argument) text() string {
	if a.Kind() != reflect.String {
		return ""
	}
	return a.String()
}

// errUnstable refuses functions whose results differ from call to call: every
// reconciliation would find every slice changed and write it again.
var errUnstable = errors.New("uses a function whose result differs from call to call; use uuid or values of .Node instead")

// isUnstable and changesValues are functions of kwok that templates may not call.
var (
	isUnstable = sets.New(strings.Fields(`Now StartTime ago bcrypt date dateInZone date_in_zone encryptAES env expandenv genCA genCAWithKey
genPrivateKey genSelfSignedCert genSelfSignedCertWithKey genSignedCert genSignedCertWithKey getHostByName htmlDate
htmlDateInZone htpasswd now randAlpha randAlphaNum randAscii randBytes randInt randNumeric shuffle uuidv4`)...)
	changesValues = sets.New(strings.Fields(`merge mergeOverwrite mustMerge mustMergeOverwrite set unset`)...)
)

// quoted stands in for kwok's Quote.
func quoted(value any) string {
	encoded, err := json.Marshal(value)
	switch {
	case err != nil:
		return strconv.Quote(fmt.Sprint(value))
	case encoded[0] == '"':
		return string(encoded)
	}
	return strconv.Quote(string(encoded))
}

// asYAML stands in for kwok's YAML.
func asYAML(value any, indent ...int) (string, error) {
	encoded, err := yaml.Marshal(value)
	if err != nil {
		return "", fmt.Errorf("encode YAML: %w", err)
	}
	text := string(encoded)
	if len(indent) != 1 || indent[0] <= 0 {
		return text, nil
	}
	return strings.ReplaceAll("\n"+text, "\n", "\n"+strings.Repeat(" ", 2*indent[0])), nil
}

// sortedKeys stands in for sprig's keys, whose order differs from call to call.
func sortedKeys(objects ...map[string]any) []string {
	var keys []string
	for _, object := range objects {
		keys = append(keys, slices.Sorted(maps.Keys(object))...)
	}
	return keys
}

// sortedValues stands in for sprig's values: in the order of the keys.
func sortedValues(object map[string]any) []any {
	var values []any
	for _, key := range sortedKeys(object) {
		values = append(values, object[key])
	}
	return values
}

// uuidSpace is the namespace of the UUIDs that templates make.
var uuidSpace = uuid.NewSHA1(uuid.NameSpaceDNS, []byte(v1alpha1.GroupName))

// UUID is the function uuid of templates. It makes a UUID (version 5) of its arguments: the same
// arguments always give the same UUID. A field that the Node lacks is refused,
// or all nodes that lack it would share a UUID.
func UUID(arguments ...any) (string, error) {
	parts := make([]string, len(arguments))
	for i, argument := range arguments {
		if argument == nil {
			return "", fmt.Errorf("argument %d is a field that the Node lacks", i+1)
		}
		parts[i] = fmt.Sprint(argument)
	}
	return uuid.NewSHA1(uuidSpace, []byte(strings.Join(parts, "\x00"))).String(), nil
}
