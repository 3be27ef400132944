package v1alpha1

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
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
)

// Attribute is one attribute of a device: a type and a value that may be a
// template.
//
// In JSON it is a scalar (string, integer or bool), or an object with one of
// the fields string, int, bool and version. A template is a string and yields a
// string, unless the object says the type: {int: "{{ .Index }}"}.
type Attribute struct {
	Type AttributeType
	// Value is the value as text, or a template that yields it.
	Value string

	// problem is what is wrong with the JSON that was read. Validation reports
	// it, since only validation knows the field's path.
	problem error
}

const attributeForms = "must be a string, an integer, a bool, or an object with exactly one of string, int, bool, version"

// UnmarshalJSON reads a scalar or an upstream DeviceAttribute. What is neither
// is kept for Resolve and validation to report.
func (a *Attribute) UnmarshalJSON(data []byte) error {
	value, err := decodeNumbers(data)
	if err != nil {
		return err
	}
	switch v := value.(type) {
	case string:
		*a = Attribute{Type: AttributeString, Value: v}
	case bool:
		*a = Attribute{Type: AttributeBool, Value: strconv.FormatBool(v)}
	case json.Number:
		*a = Attribute{Type: AttributeInt, Value: v.String()}
	case map[string]any:
		*a = attributeOf(v)
	default:
		*a = Attribute{problem: errors.New(attributeForms)}
	}
	if a.problem != nil {
		a.Value = string(data)
	}
	return nil
}

func attributeOf(object map[string]any) Attribute {
	if len(object) != 1 {
		return Attribute{problem: errors.New(attributeForms)}
	}
	name := slices.Collect(maps.Keys(object))[0]
	text, err := scalarText(AttributeType(name), object[name])
	return Attribute{Type: AttributeType(name), Value: text, problem: err}
}

// scalarText checks that value can stand for an attribute of the type. Text
// stands for an int or bool only if it is a template.
func scalarText(typ AttributeType, value any) (string, error) {
	text, isText := value.(string)
	switch typ {
	case AttributeString, AttributeVersion:
		if isText {
			return text, nil
		}
	case AttributeInt:
		if number, ok := value.(json.Number); ok {
			return number.String(), nil
		}
		if isText && IsTemplate(text) {
			return text, nil
		}
	case AttributeBool:
		if b, ok := value.(bool); ok {
			return strconv.FormatBool(b), nil
		}
		if isText && IsTemplate(text) {
			return text, nil
		}
	default:
		return "", fmt.Errorf("has the unknown type %q: must be one of string, int, bool, version", typ)
	}
	return "", fmt.Errorf("must hold a value of type %s, or a template in quotes", typ)
}

// MarshalJSON writes the upstream form.
func (a Attribute) MarshalJSON() ([]byte, error) {
	var value any = a.Value
	if (a.Type == AttributeInt || a.Type == AttributeBool) && !IsTemplate(a.Value) {
		value = json.RawMessage(a.Value)
	}
	return json.Marshal(map[string]any{string(a.Type): value})
}

// Resolve makes the upstream attribute from text, the value with templates
// rendered. The error says what text must be.
func (a Attribute) Resolve(text string) (resourcev1.DeviceAttribute, error) {
	if a.problem != nil {
		return resourcev1.DeviceAttribute{}, a.problem
	}
	switch a.Type {
	case AttributeString:
		return resourcev1.DeviceAttribute{StringValue: &text}, checkLength(text)
	case AttributeVersion:
		if !semver.MatchString(text) {
			return resourcev1.DeviceAttribute{}, errors.New("must be a version of semver.org 2.0.0, three numbers without leading zeros, for example 1.2.3")
		}
		return resourcev1.DeviceAttribute{VersionValue: &text}, checkLength(text)
	case AttributeInt:
		i, err := strconv.ParseInt(strings.TrimSpace(text), 10, 64)
		if err != nil {
			return resourcev1.DeviceAttribute{}, errors.New("must be an integer of 64 bits, for example 42")
		}
		return resourcev1.DeviceAttribute{IntValue: &i}, nil
	case AttributeBool:
		switch strings.TrimSpace(text) {
		case "true":
			return resourcev1.DeviceAttribute{BoolValue: new(true)}, nil
		case "false":
			return resourcev1.DeviceAttribute{BoolValue: new(false)}, nil
		}
		return resourcev1.DeviceAttribute{}, errors.New("must be true or false")
	}
	return resourcev1.DeviceAttribute{}, fmt.Errorf("has the unknown type %q: must be one of string, int, bool, version", a.Type)
}

func checkLength(text string) error {
	if len(text) > resourcev1.DeviceAttributeMaxValueLength {
		return fmt.Errorf("must be at most %d bytes, is %d", resourcev1.DeviceAttributeMaxValueLength, len(text))
	}
	return nil
}

// Capacity is one capacity of a device: a quantity, or a template that yields
// one. In JSON it is a quantity, or an object with the field value.
type Capacity struct {
	// Value is the quantity as text, or a template that yields it.
	Value string

	// problem is what is wrong with the JSON that was read, as in Attribute.
	problem error
}

const capacityForms = "must be a quantity, or an object with just the field value, for example 80Gi"

// UnmarshalJSON reads a quantity or an upstream DeviceCapacity. What is neither
// is kept as it is, for Resolve and validation to report.
func (c *Capacity) UnmarshalJSON(data []byte) error {
	value, err := decodeNumbers(data)
	if err != nil {
		return err
	}
	if object, ok := value.(map[string]any); ok && len(object) == 1 && object["value"] != nil {
		value = object["value"]
	}
	switch v := value.(type) {
	case string:
		*c = Capacity{Value: v}
	case json.Number:
		*c = Capacity{Value: v.String()}
	default:
		*c = Capacity{Value: string(data), problem: errors.New(capacityForms)}
	}
	return nil
}

// MarshalJSON writes the upstream form.
func (c Capacity) MarshalJSON() ([]byte, error) {
	return json.Marshal(map[string]string{"value": c.Value})
}

// Resolve makes the upstream capacity from text, the value with templates
// rendered. The error says what text must be.
func (c Capacity) Resolve(text string) (resourcev1.DeviceCapacity, error) {
	if c.problem != nil {
		return resourcev1.DeviceCapacity{}, c.problem
	}
	quantity, err := resource.ParseQuantity(strings.TrimSpace(text))
	if err != nil {
		return resourcev1.DeviceCapacity{}, errors.New(capacityForms)
	}
	return resourcev1.DeviceCapacity{Value: quantity}, nil
}

// IsTemplate tells whether text has template actions in it.
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
