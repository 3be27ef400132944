package validation

import (
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	resourcev1 "k8s.io/api/resource/v1"

	"github.com/kwok-dra/kwok-dra/internal/util/suggest"
	"github.com/kwok-dra/kwok-dra/pkg/api/v1alpha1"
)

func validateAttribute(name resourcev1.QualifiedName, attribute v1alpha1.Attribute, at checker) {
	validateQualifiedName(string(name), at)
	if v1alpha1.IsTemplate(attribute.Value) {
		return
	}
	if _, err := ResolveAttribute(attribute, attribute.Value); err != nil {
		at.addInvalid(shownValue(attribute), "%v", err)
	}
}

// shownValue returns the value of an attribute as an error shows it: without the type.
func shownValue(attribute v1alpha1.Attribute) any {
	var typed map[string]json.RawMessage
	encoded, err := json.Marshal(attribute)
	if err != nil || json.Unmarshal(encoded, &typed) != nil {
		return attribute.Value
	}
	return typed[string(attribute.Type)]
}

// semver is the API server's rule for version attributes: semver.org 2.0.0 with all three numbers.
var semver = regexp.MustCompile(`^(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)` +
	`(-(0|[1-9]\d*|\d*[a-zA-Z-][0-9a-zA-Z-]*)(\.(0|[1-9]\d*|\d*[a-zA-Z-][0-9a-zA-Z-]*))*)?` +
	`(\+[0-9a-zA-Z-]+(\.[0-9a-zA-Z-]+)*)?$`)

// ResolveAttribute makes the upstream attribute of a text, which is the value with its templates
// rendered. The error says what the text must be.
func ResolveAttribute(a v1alpha1.Attribute, text string) (resourcev1.DeviceAttribute, error) {
	element, isList := a.Type.Element()
	if !isList {
		return resolveScalar(a.Type, text)
	}
	var list resourcev1.DeviceAttribute
	for i, part := range (v1alpha1.Attribute{Value: text}).Elements() {
		scalar, err := resolveScalar(element, part)
		if err != nil {
			return resourcev1.DeviceAttribute{}, fmt.Errorf("element %d %w", i, err)
		}
		switch {
		case scalar.StringValue != nil:
			list.StringValues = append(list.StringValues, *scalar.StringValue)
		case scalar.IntValue != nil:
			list.IntValues = append(list.IntValues, *scalar.IntValue)
		case scalar.BoolValue != nil:
			list.BoolValues = append(list.BoolValues, *scalar.BoolValue)
		case scalar.VersionValue != nil:
			list.VersionValues = append(list.VersionValues, *scalar.VersionValue)
		}
	}
	return list, nil
}

func resolveScalar(typ v1alpha1.AttributeType, text string) (resourcev1.DeviceAttribute, error) {
	trimmed := strings.TrimSpace(text)
	switch typ {
	case v1alpha1.AttributeString:
		return resourcev1.DeviceAttribute{StringValue: &text}, checkLength(text)
	case v1alpha1.AttributeVersion:
		if !semver.MatchString(text) {
			return resourcev1.DeviceAttribute{}, errors.New("must be a version of semver.org 2.0.0, three numbers without leading zeros" +
				proposeValue(suggest.Version(text), semver.MatchString))
		}
		return resourcev1.DeviceAttribute{VersionValue: &text}, checkLength(text)
	case v1alpha1.AttributeInt:
		i, err := strconv.ParseInt(trimmed, 10, 64)
		if err == nil {
			return resourcev1.DeviceAttribute{IntValue: &i}, nil
		}
		message := "must be an integer of 64 bits, for example 42"
		if _, err := strconv.ParseFloat(text, 64); err == nil && suggest.Version(text) != "" {
			message += "; put it in quotes for a string, or use {version: " + suggest.Version(text) + "}"
		}
		return resourcev1.DeviceAttribute{}, errors.New(message)
	case v1alpha1.AttributeBool:
		if trimmed == "true" || trimmed == "false" {
			return resourcev1.DeviceAttribute{BoolValue: new(trimmed == "true")}, nil
		}
		return resourcev1.DeviceAttribute{}, errors.New("must be true or false")
	}
	return resourcev1.DeviceAttribute{}, fmt.Errorf("has the unknown type %q", typ)
}

func checkLength(text string) error {
	if len(text) > resourcev1.DeviceAttributeMaxValueLength {
		return fmt.Errorf("must be at most %d bytes, is %d", resourcev1.DeviceAttributeMaxValueLength, len(text))
	}
	return nil
}
