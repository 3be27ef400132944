package v1alpha1

import (
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	resourcev1 "k8s.io/api/resource/v1"

	"github.com/kwok-dra/kwok-dra/pkg/suggest"
)

const (
	integerForm = "must be an integer of 64 bits, for example 42"
	versionForm = "must be a version of semver.org 2.0.0, three numbers without leading zeros"
)

// semver is the API server's rule for version attributes: semver.org 2.0.0
// with all three numbers.
var semver = regexp.MustCompile(`^(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)` +
	`(-(0|[1-9]\d*|\d*[a-zA-Z-][0-9a-zA-Z-]*)(\.(0|[1-9]\d*|\d*[a-zA-Z-][0-9a-zA-Z-]*))*)?` +
	`(\+[0-9a-zA-Z-]+(\.[0-9a-zA-Z-]+)*)?$`)

// Resolve makes the upstream attribute from text, the value with templates
// rendered. The error says what text must be.
func (a Attribute) Resolve(text string) (resourcev1.DeviceAttribute, error) {
	if a.problem != nil {
		return resourcev1.DeviceAttribute{}, a.problem
	}
	element, isList := elements[a.Type]
	if !isList {
		return resolveScalar(a.Type, text)
	}
	var list resourcev1.DeviceAttribute
	for i, part := range (Attribute{Value: text}).elements() {
		scalar, err := resolveScalar(element, part)
		if err != nil {
			return resourcev1.DeviceAttribute{}, fmt.Errorf("element %d %w", i, err)
		}
		appendScalar(&list, scalar)
	}
	return list, nil
}

func appendScalar(list *resourcev1.DeviceAttribute, scalar resourcev1.DeviceAttribute) {
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

func resolveScalar(typ AttributeType, text string) (resourcev1.DeviceAttribute, error) {
	switch typ {
	case AttributeString:
		return resourcev1.DeviceAttribute{StringValue: &text}, checkLength(text)
	case AttributeVersion:
		if !semver.MatchString(text) {
			return resourcev1.DeviceAttribute{}, errors.New(versionForm + use(suggest.Version(text), semver.MatchString))
		}
		return resourcev1.DeviceAttribute{VersionValue: &text}, checkLength(text)
	case AttributeInt:
		i, err := strconv.ParseInt(strings.TrimSpace(text), 10, 64)
		if err != nil {
			return resourcev1.DeviceAttribute{}, errors.New(integerForm + notInteger(text))
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
	return resourcev1.DeviceAttribute{}, errors.New(attributeForms)
}

// notInteger says what a number with a fraction may be in place of an integer.
func notInteger(text string) string {
	version := suggest.Version(text)
	if _, err := strconv.ParseFloat(text, 64); err != nil || version == "" {
		return ""
	}
	return fmt.Sprintf("; put it in quotes for a string, or use {version: %s}", version)
}

func checkLength(text string) error {
	if len(text) > resourcev1.DeviceAttributeMaxValueLength {
		return fmt.Errorf("must be at most %d bytes, is %d", resourcev1.DeviceAttributeMaxValueLength, len(text))
	}
	return nil
}
