package simulator

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	resourcev1 "k8s.io/api/resource/v1"
)

// selectorError says that a selector fails for a device. The scheduler then binds the Pod to no
// node.
type selectorError struct {
	by     selector
	device device
	err    error
}

// Error names the expression, the device, and the attribute that the device does not have.
func (e *selectorError) Error() string {
	text := fmt.Sprintf("the selector `%s` of the %s fails for device %s/%s/%s: ",
		oneLine(e.by.expression), e.by.from, e.device.driver, e.device.pool, e.device.Name)
	if missing, other := e.missingFact(), e.factOfOtherDomain(); missing != "" && other != "" {
		return text + fmt.Sprintf("it has no %s, but %s (%s): correct the domain", missing, other, missingKey.FindString(e.err.Error()))
	} else if missing != "" {
		return text + fmt.Sprintf("it has no %s (%s): guard it with has(), or with .? and orValue()", missing, missingKey.FindString(e.err.Error()))
	}
	return text + e.err.Error()
}

// oneLine puts an expression on one line.
func oneLine(expression string) string { return strings.Join(strings.Fields(expression), " ") }

// Unwrap is the error of the expression.
func (e *selectorError) Unwrap() error { return e.err }

// missingKey matches the error of CEL for a key that a map does not have.
var missingKey = regexp.MustCompile(`no such key: (\w+)`)

// missingFact names the attribute or capacity that the expression reads and the device lacks, with
// its domain if the expression has one for it.
func (e *selectorError) missingFact() string {
	found := missingKey.FindStringSubmatch(e.err.Error())
	if found == nil {
		return ""
	}
	key := found[1]
	reads := regexp.MustCompile(`(attributes|capacity)\s*\[\s*["']([^"']+)["']\s*\]\s*(?:\.` + key + `\b|\[\s*["']` + key + `["']\s*\])`)
	for _, read := range reads.FindAllStringSubmatch(e.by.expression, -1) {
		if kind, domain := read[1], read[2]; !e.device.hasFact(kind, domain, key) {
			return strings.TrimSuffix(kind, "s") + " " + domain + "/" + key
		}
	}
	return "attribute or capacity " + key
}

// factOfOtherDomain returns the name of an attribute or capacity of the device that has the missing key
// in another domain, or "".
func (e *selectorError) factOfOtherDomain() string {
	found := missingKey.FindStringSubmatch(e.err.Error())
	if found == nil {
		return ""
	}
	for _, name := range slices.Concat(slices.Sorted(maps.Keys(e.device.Attributes)), slices.Sorted(maps.Keys(e.device.Capacity))) {
		domain, key, isQualified := strings.Cut(string(name), "/")
		if !isQualified {
			domain, key = e.device.driver, string(name)
		}
		if key == found[1] {
			return domain + "/" + key
		}
	}
	return ""
}

// reads matches what an expression reads of a device with a default, or by the name of the attribute.
var reads = regexp.MustCompile(`attributes\s*\[\s*["']([^"']+)["']\s*\]\s*(?:\.\??(\w+)|\[\??\s*["']([^"']+)["']\s*\])`)

// describeUnknownAttribute names the attributes that the selector reads and that no device of the class
// has, for the end of a sentence.
func (s *Supply) describeUnknownAttribute() string {
	var unknown []string
	for _, read := range reads.FindAllStringSubmatch(s.narrowestSelector().expression, -1) {
		domain, key := read[1], read[2]+read[3]
		if !slices.ContainsFunc(s.ofClass, func(d device) bool { return d.hasFact("attributes", domain, key) }) {
			unknown = append(unknown, domain+"/"+key)
		}
	}
	if len(unknown) == 0 {
		return ""
	}
	return ": none has attribute " + strings.Join(slices.Compact(unknown), ", nor ")
}

// hasFact reports whether a device has an attribute or a capacity, as CEL sees it: a name without a
// domain is in the domain of the driver.
func (d device) hasFact(kind, domain, key string) bool {
	names := []resourcev1.QualifiedName{resourcev1.QualifiedName(domain + "/" + key)}
	if domain == d.driver {
		names = append(names, resourcev1.QualifiedName(key))
	}
	for _, name := range names {
		_, attribute := d.Attributes[name]
		_, capacity := d.Capacity[name]
		if kind == "attributes" && attribute || kind == "capacity" && capacity {
			return true
		}
	}
	return false
}
