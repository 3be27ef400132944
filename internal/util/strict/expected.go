package strict

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kwok-dra/kwok-dra/internal/util/suggest"
)

var (
	quantityType = reflect.TypeFor[resource.Quantity]()
	durationType = reflect.TypeFor[metav1.Duration]()
	timeType     = reflect.TypeFor[metav1.Time]()
)

// describeExpected says what a value that could not be decoded must be, and what it probably meant.
func describeExpected(value any, typ reflect.Type, err error) string {
	object, _ := value.(map[string]any)
	switch inner := object["value"]; {
	case typ == quantityType && len(object) == 1 && canDecode(inner, typ):
		return fmt.Sprintf("must be a quantity; use %s", Shown(inner))
	case typ == durationType:
		return expectedDuration(value)
	case typ == timeType:
		return "must be a time, for example 2026-01-02T15:04:05Z"
	case reflect.PointerTo(typ).Implements(unmarshaler):
		return err.Error() + guessMeant(err)
	}
	switch typ.Kind() {
	case reflect.String:
		return expectedText(value)
	case reflect.Bool:
		return expectedBool(value)
	case reflect.Int32, reflect.Int64, reflect.Int:
		return expectedInteger(value, typ)
	case reflect.Float64:
		return "must be a number"
	case reflect.Slice:
		return expectedList(value, typ)
	case reflect.Map:
		return "must be an object, with a value for each name"
	case reflect.Struct:
		return expectedObject(value, typ)
	}
	return "is not valid here"
}

// misspelledError is the error of a type that decodes itself, for a word that does not exist.
type misspelledError interface {
	error
	Misspelled() (word string, known []string)
}

// numericVersionError is the error of a type that decodes itself, for a version that is a number.
type numericVersionError interface {
	error
	NumericVersion() string
}

// guessMeant ends the error of a type that decodes itself with what the writer probably meant.
func guessMeant(err error) string {
	if misspelled, ok := errors.AsType[misspelledError](err); ok {
		return suggest.DidYouMean(misspelled.Misspelled())
	}
	if numeric, ok := errors.AsType[numericVersionError](err); ok {
		if version := suggest.Version(numeric.NumericVersion()); version != "" {
			return fmt.Sprintf("; use %q", version)
		}
	}
	return ""
}

func expectedDuration(value any) string {
	must := "must be a duration with its unit, for example 5s"
	if meant := suggest.Duration(asPlainText(value)); canDecode(meant, durationType) {
		must += fmt.Sprintf("; use %q", meant)
	}
	return must
}

func expectedText(value any) string {
	switch v := value.(type) {
	case scalar:
		if _, isBool := v.json.(bool); isBool {
			return "must be text: put it in quotes; without them YAML takes yes, on, y and true, and their opposites, for bools"
		}
		return fmt.Sprintf("must be text: put it in quotes, %q", asPlainText(v))
	case []any:
		return "must be text, not a list"
	}
	return "must be text, not an object"
}

// yamlBools are the words that YAML 1.1 takes for bools.
var yamlBools = map[string]bool{"true": true, "yes": true, "on": true, "false": false, "no": false, "off": false}

func expectedBool(value any) string {
	text, _ := value.(string)
	if b, ok := yamlBools[strings.ToLower(text)]; ok {
		return fmt.Sprintf("must be true or false; use %t without quotes", b)
	}
	return "must be true or false"
}

func expectedInteger(value any, typ reflect.Type) string {
	must := fmt.Sprintf("must be an integer of %d bits", typ.Bits())
	s, _ := value.(scalar)
	if number, isNumber := s.json.(json.Number); isNumber {
		whole, fraction, _ := strings.Cut(number.String(), ".")
		if strings.Trim(fraction, "0") == "" && canDecode(json.Number(whole), typ) {
			must += "; use " + whole
		}
	}
	if text, isText := value.(string); isText {
		if _, err := strconv.ParseInt(text, 10, typ.Bits()); err == nil {
			must += ": leave out the quotes"
		}
	}
	return must
}

func expectedList(value any, typ reflect.Type) string {
	if _, isObject := value.(map[string]any); !isObject && canDecode(value, typ.Elem()) {
		return fmt.Sprintf("must be a list; use [%s]", Shown(value))
	}
	return `must be a list: begin each item with "- "`
}

func expectedObject(value any, typ reflect.Type) string {
	if list, isList := value.([]any); isList {
		if len(list) == 1 {
			return `must be an object, not a list: leave out the "- "`
		}
		return "must be an object, not a list"
	}
	known := jsonFields(typ)
	for name, fieldType := range known {
		if len(known) == 1 && canDecode(value, fieldType) {
			return fmt.Sprintf("must be an object; use {%s: %s}", name, asPlainText(value))
		}
	}
	return "must be an object with fields such as " + strings.Join(firstFields(typ), ", ")
}

// firstFields returns the first few fields of a struct, which are the most important.
func firstFields(typ reflect.Type) []string {
	var names []string
	for structField := range typ.Fields() {
		if name, _, _ := strings.Cut(structField.Tag.Get("json"), ","); name != "" && name != "-" {
			names = append(names, name)
		}
	}
	return names[:min(len(names), 4)]
}
