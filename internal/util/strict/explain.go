package strict

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"regexp"
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

// describeExpected says what a value that could not be decoded must be, and what it probably meant.
func describeExpected(value any, typ reflect.Type, err error) string {
	object, _ := value.(map[string]any)
	switch inner := object["value"]; {
	case typ == quantityType && len(object) == 1 && decodeValue(inner, typ) == nil:
		return fmt.Sprintf("must be a quantity; use %s", Shown(inner))
	case typ == durationType:
		must := "must be a duration with its unit, for example 5s"
		if meant := suggest.Duration(asPlainText(value)); decodeValue(meant, durationType) == nil {
			must += fmt.Sprintf("; use %q", meant)
		}
		return must
	case typ == timeType:
		return "must be a time, for example 2026-01-02T15:04:05Z"
	case !reflect.PointerTo(typ).Implements(unmarshaler):
		return describeKind(value, typ)
	}
	if misspelled, ok := errors.AsType[misspelledError](err); ok {
		return err.Error() + suggest.DidYouMean(misspelled.Misspelled())
	}
	if numeric, ok := errors.AsType[numericVersionError](err); ok {
		if version := suggest.Version(numeric.NumericVersion()); version != "" {
			return fmt.Sprintf("%v; use %q", err, version)
		}
	}
	return err.Error()
}

// yamlBools are the words that YAML 1.1 takes for bools.
var yamlBools = map[string]bool{"true": true, "yes": true, "on": true, "false": false, "no": false, "off": false}

// describeKind is describeExpected for the types that have no form of their own in JSON.
func describeKind(value any, typ reflect.Type) string {
	_, isObject := value.(map[string]any)
	list, isList := value.([]any)
	text, _ := value.(string)
	s, isScalar := value.(scalar)
	switch typ.Kind() {
	case reflect.String:
		_, isBool := s.json.(bool)
		switch {
		case isBool:
			return "must be text: put it in quotes; without them YAML takes yes, on, y and true, and their opposites, for bools"
		case isScalar:
			return fmt.Sprintf("must be text: put it in quotes, %q", asPlainText(s))
		case isList:
			return "must be text, not a list"
		}
		return "must be text, not an object"
	case reflect.Bool:
		if b, ok := yamlBools[strings.ToLower(text)]; ok {
			return fmt.Sprintf("must be true or false; use %t without quotes", b)
		}
		return "must be true or false"
	case reflect.Int32, reflect.Int64, reflect.Int:
		must := fmt.Sprintf("must be an integer of %d bits", typ.Bits())
		whole, fraction, _ := strings.Cut(asPlainText(s), ".")
		switch {
		case whole != "" && strings.Trim(fraction, "0") == "" && decodeValue(json.Number(whole), typ) == nil:
			must += "; use " + whole
		case text != "" && decodeValue(json.Number(text), typ) == nil:
			must += ": leave out the quotes"
		}
		return must
	case reflect.Float64:
		return "must be a number"
	case reflect.Slice:
		if !isObject && decodeValue(value, typ.Elem()) == nil {
			return fmt.Sprintf("must be a list; use [%s]", Shown(value))
		}
		return `must be a list: begin each item with "- "`
	case reflect.Map:
		return "must be an object, with a value for each name"
	case reflect.Struct:
		switch {
		case len(list) == 1:
			return `must be an object, not a list: leave out the "- "`
		case isList:
			return "must be an object, not a list"
		}
		names, types := JSONFields(typ)
		if len(names) == 1 && decodeValue(value, types[names[0]]) == nil {
			return fmt.Sprintf("must be an object; use {%s: %s}", names[0], asPlainText(value))
		}
		return "must be an object with fields such as " + strings.Join(names[:min(len(names), 4)], ", ") // the first are the most important
	}
	return "is not valid here"
}

var (
	// linePrefix matches what the YAML library puts before a problem, with the line.
	linePrefix = regexp.MustCompile(`^(?:error converting YAML to JSON: )?(?:yaml: )?(?:unmarshal errors:\s*)?(?:line (\d+): )?`)
	// duplicateKey matches the problem of a key that an object has twice.
	duplicateKey = regexp.MustCompile(`\bkey (".*") already set in map`)
	// tabIndent matches a tab in the indentation.
	tabIndent = regexp.MustCompile(`(?m)^ *\t`)
)

// explainYAMLError returns the line of a YAML error, the YAML library's text, and the usual cause.
func explainYAMLError(err error, document []byte) Problem {
	text := err.Error()
	prefix := linePrefix.FindStringSubmatch(text)
	text, _, _ = strings.Cut(strings.TrimPrefix(text, prefix[0]), "\n")
	line, _ := strconv.Atoi(prefix[1])
	// YAML takes a template without quotes for an object.
	template := ""
	if strings.HasPrefix(text, "invalid map key") || strings.HasPrefix(text, "did not find expected") {
		for line := range strings.Lines(string(document)) {
			before, after, has := strings.Cut(line, "{{")
			action, _, ends := strings.Cut(after, "}}")
			isQuoted := strings.Count(before, `"`)%2 == 1 || strings.Count(before, "'")%2 == 1
			if has && ends && !isQuoted && strings.TrimRight(before, " :,[{-") != strings.TrimRight(before, " ") {
				template = "{{" + action + "}}"
				break
			}
		}
	}
	key := duplicateKey.FindStringSubmatch(text)
	switch {
	case key != nil:
		text = fmt.Sprintf("the field %s is there twice: remove one", key[1])
	case template != "":
		text = fmt.Sprintf("no valid YAML: put templates in quotes, \"%s\"", template)
	case strings.Contains(text, "cannot start any token") && tabIndent.Match(document):
		text = "no valid YAML: indent with blanks, not with tabs"
	case strings.Contains(text, "mapping values are not allowed"):
		text = `no valid YAML: put a value that has ": " in it in quotes`
	default:
		text = "no valid YAML: " + text
	}
	return Problem{Line: line, Text: text}
}
