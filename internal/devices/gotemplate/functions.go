package gotemplate

import (
	"encoding/json"
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

// comparisons are Go's functions that read their arguments. Go templates call them without
// chargedFunctions, so rounds of loops pay for them.
var comparisons = sets.New("eq", "ge", "gt", "le", "lt", "ne")

var functionNames = slices.Sorted(maps.Keys(functionCosts))

// Loops call chargeRange with what they loop over, and chargeRound in each round. Templates may not
// call them.
const chargeRange, chargeRound = "_each", "_round"

// implementations are sprig's functions, Go's and our own.
var implementations = func() template.FuncMap {
	sortedKeys := func(objects ...map[string]any) (keys []string) {
		for _, object := range objects {
			keys = append(keys, slices.Sorted(maps.Keys(object))...)
		}
		return keys
	}
	all := sprig.TxtFuncMap()
	maps.Copy(all, map[string]any{
		"print": fmt.Sprint, "println": fmt.Sprintln, "printf": fmt.Sprintf,
		"html": template.HTMLEscaper, "js": template.JSEscaper, "urlquery": template.URLQueryEscaper,
		"uuid": UUID,
		// The order of sprig's own two differs from call to call.
		"keys": sortedKeys,
		"values": func(object map[string]any) (values []any) {
			for _, key := range sortedKeys(object) {
				values = append(values, object[key])
			}
			return values
		},
		// These two are kwok's, which it does not export.
		"Quote": func(value any) string {
			encoded, err := json.Marshal(value)
			switch {
			case err != nil:
				return strconv.Quote(fmt.Sprint(value))
			case encoded[0] == '"':
				return string(encoded)
			}
			return strconv.Quote(string(encoded))
		},
		"YAML": func(value any, indent ...int) (string, error) {
			encoded, err := yaml.Marshal(value)
			if err != nil {
				return "", fmt.Errorf("encode YAML: %w", err)
			}
			text := string(encoded)
			if len(indent) != 1 || indent[0] <= 0 {
				return text, nil
			}
			return strings.ReplaceAll("\n"+text, "\n", "\n"+strings.Repeat(" ", 2*indent[0])), nil
		},
	})
	return all
}()

// chargedFunctions returns the functions of the names, which pay from the budget.
func (b *budget) chargedFunctions(names []string) template.FuncMap {
	charged := template.FuncMap{}
	for _, name := range names {
		switch function, ok := implementations[name]; {
		case name == chargeRange:
			charged[name] = func(over any) (any, error) {
				if value := reflect.ValueOf(over); value.Kind() == reflect.Map { // it is sorted before the first round
					return over, b.payCost(float64(elementCost * value.Len()))
				}
				return over, nil
			}
		case name == chargeRound:
			charged[name] = func(steps int) (string, error) { return "", b.payCost(stepCost * float64(steps)) }
		case functionCosts[name] != nil:
			charged[name] = b.chargeCalls(function, functionCosts[name])
		case ok:
			charged[name] = function
		}
	}
	return charged
}

// chargeCalls wraps a function: a call that the budget cannot pay is not made.
func (b *budget) chargeCalls(function any, cost callCost) any {
	f := reflect.ValueOf(function)
	signature, call := f.Type(), f.Call
	isVariadic := signature.IsVariadic()
	if isVariadic {
		call = f.CallSlice
	}
	out := []reflect.Type{signature.Out(0), reflect.TypeFor[error]()}
	return reflect.MakeFunc(reflect.FuncOf(slices.Collect(signature.Ins()), out, isVariadic), func(given []reflect.Value) []reflect.Value {
		values := given
		if last := len(given) - 1; isVariadic {
			values = slices.Clone(given[:last])
			for i := range given[last].Len() {
				values = append(values, given[last].Index(i))
			}
		}
		arguments := make([]argument, len(values))
		for i, value := range values {
			for value.Kind() == reflect.Interface {
				value = value.Elem()
			}
			arguments[i].value = value
			if value.Kind() == reflect.String {
				arguments[i].text = value.String()
			} else if value.CanInt() {
				arguments[i].magnitude = math.Abs(float64(value.Int()))
			}
		}
		results := []reflect.Value{reflect.Zero(out[0]), reflect.Zero(out[1])}
		err := b.payCost(stepCost + cost(arguments))
		if err == nil {
			copy(results, call(given))
			err = b.payCost(weightOf(results[0]))
		}
		if err != nil {
			results[1] = reflect.ValueOf(err)
		}
		return results
	}).Interface()
}

// These are functions of kwok that templates may not call: the results of unstableFunctions differ from call to call.
var (
	unstableFunctions = sets.New(strings.Fields(`Now StartTime ago bcrypt date dateInZone date_in_zone encryptAES env expandenv genCA genCAWithKey
genPrivateKey genSelfSignedCert genSelfSignedCertWithKey genSignedCert genSignedCertWithKey getHostByName htmlDate
htmlDateInZone htpasswd now randAlpha randAlphaNum randAscii randBytes randInt randNumeric shuffle uuidv4`)...)
	mutatingFunctions = sets.New(strings.Fields(`merge mergeOverwrite mustMerge mustMergeOverwrite set unset`)...)
)

// uuidSpace is the namespace of UUIDs of templates.
var uuidSpace = uuid.NewSHA1(uuid.NameSpaceDNS, []byte(v1alpha1.GroupName))

// UUID is the function uuid of templates. It makes a UUID (version 5) of its arguments; equal
// arguments give equal UUIDs. It refuses a field that the Node lacks: all Nodes without the field
// would share a UUID.
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
