package v1alpha1

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// AttributeType is the type of a device attribute, named as the field of the
// upstream DeviceAttribute that holds it.
type AttributeType string

// The types of a device attribute.
const (
	AttributeString  AttributeType = "string"
	AttributeInt     AttributeType = "int"
	AttributeBool    AttributeType = "bool"
	AttributeVersion AttributeType = "version"

	// Lists need the feature gate DRAListTypeAttributes.
	AttributeStrings  AttributeType = "strings"
	AttributeInts     AttributeType = "ints"
	AttributeBools    AttributeType = "bools"
	AttributeVersions AttributeType = "versions"
)

// Element is the type of the elements of a list, if the type is one of lists.
func (t AttributeType) Element() (AttributeType, bool) {
	element, isList := strings.CutSuffix(string(t), "s")
	return AttributeType(element), isList && slices.Contains(attributeTypes, t)
}

// Attribute is one attribute of a device: a type and a value that may be a
// template.
//
// In JSON it is a scalar (string, integer or bool) or a list of scalars of one
// type, or an object with one of the fields string, int, bool, version, strings,
// ints, bools and versions. A template is a string and yields a string, unless
// the object says the type: {int: "{{ .Index }}"}.
//
// +kubebuilder:validation:Type=""
// +kubebuilder:pruning:PreserveUnknownFields
type Attribute struct {
	Type AttributeType `json:"-"`
	// Value is the value as text, or a template that yields it. The elements of a
	// list end with ElementEnd each.
	Value string `json:"-"`
}

// ElementEnd ends each element of a list in Attribute.Value. YAML has no way to
// write it, so no element can hold it by accident.
const ElementEnd = "\x01"

const attributeForms = "must be a string, an integer, a bool, a list of these, or an object with exactly one of string, int, bool, version, strings, ints, bools, versions"

var attributeTypes = []AttributeType{
	AttributeString, AttributeInt, AttributeBool, AttributeVersion,
	AttributeStrings, AttributeInts, AttributeBools, AttributeVersions,
}

// UnmarshalJSON reads a scalar, a list, or an upstream DeviceAttribute.
func (a *Attribute) UnmarshalJSON(data []byte) error {
	value, err := decodeNumbers(data)
	if err != nil {
		return err
	}
	typ := shorthandType(value)
	if object, ok := value.(map[string]any); ok && len(object) == 1 {
		for name, inner := range object {
			typ, value = AttributeType(name), inner
		}
	}
	var text strings.Builder
	list, isGivenList := value.([]any)
	element, isList := typ.Element()
	switch {
	case isGivenList && len(list) == 0:
		return errors.New("must have at least one element")
	case value == nil && typ == "":
		return errors.New("has no value: " + attributeForms)
	case typ == "":
		return errors.New(attributeForms)
	case !isList:
		scalar, err := scalarText(typ, value)
		if err != nil {
			return err
		}
		text.WriteString(scalar)
	case !isGivenList:
		return fmt.Errorf("must hold a list of values of type %s", element)
	}
	for i, item := range list {
		scalar, err := scalarText(element, item)
		if err != nil {
			return fmt.Errorf("element %d %w", i, err)
		}
		text.WriteString(scalar + ElementEnd)
	}
	*a = Attribute{Type: typ, Value: text.String()}
	return nil
}

// shorthandType returns the type of a value that is given without one, or "" if there is none.
func shorthandType(value any) AttributeType {
	switch v := value.(type) {
	case string:
		return AttributeString
	case bool:
		return AttributeBool
	case json.Number:
		return AttributeInt
	case []any:
		if len(v) > 0 && slices.Contains(attributeTypes, shorthandType(v[0])+"s") {
			return shorthandType(v[0]) + "s"
		}
	}
	return ""
}

// scalarText returns the text of a value of the type, or of a template that yields one.
func scalarText(typ AttributeType, value any) (string, error) {
	text, isText := value.(string)
	number, isNumber := value.(json.Number)
	b, isBool := value.(bool)
	quoted, err := decodeNumbers([]byte(text))
	switch {
	case !slices.Contains(attributeTypes, typ):
		return "", unknownTypeError(typ)
	case (typ == AttributeString || typ == AttributeVersion || IsTemplate(text)) && isText:
		return text, nil
	case typ == AttributeInt && isNumber:
		return number.String(), nil
	case typ == AttributeBool && isBool:
		return strconv.FormatBool(b), nil
	case typ == AttributeVersion && isNumber:
		return "", numericVersionError(number)
	case typ == AttributeString && isBool:
		return "", errors.New("must be text: put it in quotes; without them YAML takes yes, on, y and true, and their opposites, for bools")
	case typ == AttributeString && isNumber:
		return "", fmt.Errorf("must be text: put it in quotes, %q", number)
	case isText && err == nil && shorthandType(quoted) == typ:
		return "", fmt.Errorf("must be of type %s: leave out the quotes", typ)
	case isText:
		return "", fmt.Errorf("must hold a value of type %s, or a template", typ)
	}
	return "", fmt.Errorf("must hold a value of type %s", typ)
}

// unknownTypeError is the error of an attribute whose object names a type that does not exist.
type unknownTypeError AttributeType

func (e unknownTypeError) Error() string {
	return fmt.Sprintf("has the unknown type %q: must be one of string, int, bool, version, strings, ints, bools, versions", string(e))
}

// Misspelled returns the unknown type and the types that exist, for a decoder that guesses what was meant.
func (e unknownTypeError) Misspelled() (word string, known []string) {
	for _, t := range attributeTypes {
		known = append(known, string(t))
	}
	return string(e), known
}

// numericVersionError is the error of a version that is written as a number, such as 9.0.
type numericVersionError json.Number

func (e numericVersionError) Error() string { return "must be text, since a version is no number" }

// NumericVersion returns the number, for a decoder that guesses what was meant.
func (e numericVersionError) NumericVersion() string { return string(e) }

// MarshalJSON writes the upstream form.
func (a Attribute) MarshalJSON() ([]byte, error) {
	element, isList := a.Type.Element()
	if !isList {
		return json.Marshal(map[string]any{string(a.Type): scalarJSON(a.Type, a.Value)})
	}
	var list []any
	for _, text := range a.Elements() {
		list = append(list, scalarJSON(element, text))
	}
	return json.Marshal(map[string]any{string(a.Type): list})
}

func scalarJSON(typ AttributeType, text string) any {
	if (typ == AttributeInt || typ == AttributeBool) && !IsTemplate(text) {
		return json.RawMessage(text)
	}
	return text
}

// Elements splits the value of a list.
func (a Attribute) Elements() []string {
	return strings.Split(strings.TrimSuffix(a.Value, ElementEnd), ElementEnd)
}

// IsTemplate reports whether text has template actions in it.
func IsTemplate(text string) bool {
	return strings.Contains(text, "{{")
}

// decodeNumbers decodes JSON and keeps numbers as they are written.
func decodeNumbers(data []byte) (any, error) {
	decoder := json.NewDecoder(bytes.NewReader(data))
	decoder.UseNumber()
	var value any
	if err := decoder.Decode(&value); err != nil {
		return nil, fmt.Errorf("decode %s: %w", data, err)
	}
	return value, nil
}
