package generate

import (
	"fmt"
	"strconv"
	"strings"

	resourcev1 "k8s.io/api/resource/v1"

	"github.com/kwok-dra/kwok-dra/pkg/api/v1alpha1"
)

// attributeValues are the type and the values of an attribute as text: one, or those of
// a list.
func attributeValues(a resourcev1.DeviceAttribute) (v1alpha1.AttributeType, []string) {
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
		return v1alpha1.AttributeInts, formatAll(a.IntValues, integer)
	case a.BoolValues != nil:
		return v1alpha1.AttributeBools, formatAll(a.BoolValues, strconv.FormatBool)
	case a.VersionValues != nil:
		return v1alpha1.AttributeVersions, formatAll(a.VersionValues, version)
	}
	return v1alpha1.AttributeStrings, formatAll(a.StringValues, version)
}

func formatAll[T any](values []T, text func(T) string) []string {
	all := make([]string, len(values))
	for i := range values {
		all[i] = text(values[i])
	}
	return all
}

// shortenDevice writes attributes and capacities in their short form where they have one: a template is
// short for a string.
func shortenDevice(device map[string]any) {
	attributes, _ := device["attributes"].(map[string]any)
	for name, value := range attributes {
		object, _ := value.(map[string]any)
		for typ, inner := range object {
			if hasShortForm(v1alpha1.AttributeType(typ), inner) {
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

func hasShortForm(typ v1alpha1.AttributeType, value any) bool {
	switch typ {
	case v1alpha1.AttributeString, v1alpha1.AttributeStrings:
		return true
	case v1alpha1.AttributeInt, v1alpha1.AttributeInts, v1alpha1.AttributeBool, v1alpha1.AttributeBools:
		return !strings.Contains(fmt.Sprint(value), "{{")
	}
	return false
}
