package config

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kwok-dra/kwok-dra/pkg/api/v1alpha1"
	"github.com/kwok-dra/kwok-dra/pkg/suggest"
)

var (
	quantityType = reflect.TypeFor[resource.Quantity]()
	durationType = reflect.TypeFor[metav1.Duration]()
	timeType     = reflect.TypeFor[metav1.Time]()
)

// expected says what a value that does not fit a type must be, and what was
// probably meant.
func expected(value any, typ reflect.Type) string {
	if inner, is := onlyField(value); is && typ == quantityType && isQuantity(inner) {
		return fmt.Sprintf("must be a quantity; use %s", shown(inner))
	}
	switch typ {
	case quantityType:
		_, err := v1alpha1.ParseQuantity(plain(value))
		return err.Error()
	case durationType:
		return "must be a duration with its unit, for example 5s" + use(suggest.Duration(plain(value)), typ)
	case timeType:
		return "must be a time, for example 2026-01-02T15:04:05Z"
	}
	switch typ.Kind() {
	case reflect.String:
		return expectedText(value)
	case reflect.Bool:
		return "must be true or false" + unquoted(value, typ)
	case reflect.Int32, reflect.Int64, reflect.Int:
		return expectedInteger(value, typ)
	case reflect.Slice:
		return expectedList(value, typ)
	case reflect.Map:
		return "must be an object, with a value for each name"
	case reflect.Struct:
		return expectedObject(value, typ)
	}
	return "is not valid here"
}

// plain is a text or number as it is written.
func plain(value any) string {
	switch v := value.(type) {
	case string:
		return v
	case json.Number:
		return v.String()
	}
	return ""
}

func use(text string, typ reflect.Type) string {
	if text == "" || !decodes(text, typ) {
		return ""
	}
	return fmt.Sprintf("; use %q", text)
}

func expectedText(value any) string {
	switch v := value.(type) {
	case json.Number:
		return fmt.Sprintf("must be text: put it in quotes, %q", v)
	case bool:
		return "must be text: put it in quotes; without them YAML takes yes, on, y and true, and their opposites, for bools"
	case []any:
		return "must be text, not a list"
	}
	return "must be text, not an object"
}

func expectedInteger(value any, typ reflect.Type) string {
	must := fmt.Sprintf("must be an integer of %d bits", typ.Bits())
	if number, is := value.(json.Number); is {
		whole, fraction, _ := strings.Cut(number.String(), ".")
		if strings.Trim(fraction, "0") == "" && decodes(json.Number(whole), typ) {
			must += "; use " + whole
		}
	}
	return must + unquoted(value, typ)
}

// unquoted tells that a text would fit without its quotes.
func unquoted(value any, typ reflect.Type) string {
	text, isText := value.(string)
	if !isText {
		return ""
	}
	if typ.Kind() == reflect.Bool {
		if b, is := switches[strings.ToLower(text)]; is {
			return fmt.Sprintf("; use %t without quotes", b)
		}
		return ""
	}
	if _, err := strconv.ParseInt(text, 10, typ.Bits()); err == nil {
		return ": leave out the quotes"
	}
	return ""
}

var switches = map[string]bool{"true": true, "yes": true, "on": true, "false": false, "no": false, "off": false}

func expectedList(value any, typ reflect.Type) string {
	if decodes(value, typ.Elem()) {
		if _, isObject := value.(map[string]any); isObject {
			return `must be a list: begin each item with "- "`
		}
		return fmt.Sprintf("must be a list; use [%s]", shown(value))
	}
	return "must be a list"
}

func expectedObject(value any, typ reflect.Type) string {
	known := map[string]reflect.Type{}
	addFields(known, typ)
	if list, isList := value.([]any); isList {
		if len(list) == 1 {
			return `must be an object, not a list: leave out the "- "`
		}
		return "must be an object, not a list"
	}
	for name, fieldType := range known {
		if len(known) == 1 && decodes(value, fieldType) {
			return fmt.Sprintf("must be an object; use {%s: %s}", name, plain(value))
		}
	}
	return "must be an object with fields such as " + strings.Join(someFields(typ), ", ")
}

// someFields are the first few fields of a struct, which are the most important.
func someFields(typ reflect.Type) []string {
	var names []string
	for structField := range typ.Fields() {
		if name, _, _ := strings.Cut(structField.Tag.Get("json"), ","); name != "" && name != "-" {
			names = append(names, name)
		}
	}
	return names[:min(len(names), 4)]
}

// onlyField is the value of an object with nothing but a value.
func onlyField(value any) (any, bool) {
	object, is := value.(map[string]any)
	inner, has := object["value"]
	return inner, is && has && len(object) == 1
}

func isQuantity(value any) bool {
	_, err := v1alpha1.ParseQuantity(plain(value))
	return err == nil
}
