package generate

import (
	"fmt"
	"strconv"
	"strings"

	resourcev1 "k8s.io/api/resource/v1"

	"github.com/kwok-dra/kwok-dra/pkg/api/v1alpha1"
)

// valuesOf are the type and the values of an attribute as text: one, or those of
// a list.
func valuesOf(a resourcev1.DeviceAttribute) (v1alpha1.AttributeType, []string) {
	integer := func(value int64) string { return strconv.FormatInt(value, 10) }
	version := func(value string) string { return value }
	switch {
	case a.IntValue != nil:
		return v1alpha1.AttributeInt, []string{integer(*a.IntValue)}
	case a.BoolValue != nil:
		return v1alpha1.AttributeBool, []string{strconv.FormatBool(*a.BoolValue)}
	case a.StringValue != nil:
		return v1alpha1.AttributeString, []string{*a.StringValue}
	case a.VersionValue != nil:
		return v1alpha1.AttributeVersion, []string{*a.VersionValue}
	case a.IntValues != nil:
		return v1alpha1.AttributeInts, texts(a.IntValues, integer)
	case a.BoolValues != nil:
		return v1alpha1.AttributeBools, texts(a.BoolValues, strconv.FormatBool)
	case a.VersionValues != nil:
		return v1alpha1.AttributeVersions, texts(a.VersionValues, version)
	}
	return v1alpha1.AttributeStrings, texts(a.StringValues, version)
}

func texts[T any](values []T, text func(T) string) []string {
	all := make([]string, len(values))
	for i := range values {
		all[i] = text(values[i])
	}
	return all
}

// isList reports whether a type is that of a list.
func isList(typ v1alpha1.AttributeType) bool {
	switch typ {
	case v1alpha1.AttributeInts, v1alpha1.AttributeBools, v1alpha1.AttributeVersions, v1alpha1.AttributeStrings:
		return true
	}
	return false
}

// newAttribute makes an attribute of a template of the texts of its values.
func newAttribute(typ v1alpha1.AttributeType, values []string) v1alpha1.Attribute {
	if !isList(typ) {
		return v1alpha1.Attribute{Type: typ, Value: values[0]}
	}
	return v1alpha1.Attribute{Type: typ, Value: strings.Join(values, v1alpha1.ElementEnd) + v1alpha1.ElementEnd}
}

// brief writes attributes and capacities in their short form where they have one:
// a template is short for a string.
func brief(device map[string]any) {
	attributes, _ := device["attributes"].(map[string]any)
	for name, value := range attributes {
		object, _ := value.(map[string]any)
		for typ, inner := range object {
			if isBrief(v1alpha1.AttributeType(typ), inner) {
				attributes[name] = inner
			}
		}
	}
	capacities, _ := device["capacity"].(map[string]any)
	for name, value := range capacities {
		if object, _ := value.(map[string]any); len(object) == 1 && object["value"] != nil {
			capacities[name] = object["value"]
		}
	}
}

func isBrief(typ v1alpha1.AttributeType, value any) bool {
	switch typ {
	case v1alpha1.AttributeString, v1alpha1.AttributeStrings:
		return true
	case v1alpha1.AttributeInt, v1alpha1.AttributeInts, v1alpha1.AttributeBool, v1alpha1.AttributeBools:
		return !strings.Contains(fmt.Sprint(value), "{{")
	}
	return false
}
