package dractl

import (
	"fmt"
	"strings"

	resourcev1 "k8s.io/api/resource/v1"
)

// qualified is the whole name of an attribute.
func qualified(driver string, name resourcev1.QualifiedName) resourcev1.FullyQualifiedName {
	if strings.Contains(string(name), "/") {
		return resourcev1.FullyQualifiedName(name)
	}
	return resourcev1.FullyQualifiedName(driver + "/" + string(name))
}

// equals is a selector for devices with a value of an attribute, which they need
// not have. It is empty for lists.
func equals(driver string, name resourcev1.QualifiedName, value resourcev1.DeviceAttribute) string {
	domain, id, _ := strings.Cut(string(qualified(driver, name)), "/")
	is := fmt.Sprintf("%q in device.attributes[%q] && device.attributes[%q][%q]", id, domain, domain, id)
	switch {
	case value.StringValue != nil:
		return fmt.Sprintf("%s == %q", is, *value.StringValue)
	case value.IntValue != nil:
		return fmt.Sprintf("%s == %d", is, *value.IntValue)
	case value.BoolValue != nil:
		return fmt.Sprintf("%s == %t", is, *value.BoolValue)
	case value.VersionValue != nil:
		return fmt.Sprintf("%s.compareTo(semver(%q)) == 0", is, *value.VersionValue)
	}
	return ""
}
