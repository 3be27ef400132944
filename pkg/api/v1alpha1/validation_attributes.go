package v1alpha1

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

const (
	// attributeUUID and attributeParentUUID are what partitions get of a device that
	// has a UUID.
	attributeUUID       resourcev1.QualifiedName = "uuid"
	attributeParentUUID resourcev1.QualifiedName = "parentUUID"
)

func validateAttributes(attributes map[resourcev1.QualifiedName]Attribute, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	for _, name := range slices.Sorted(maps.Keys(attributes)) {
		errs = append(errs, validateAttribute(name, attributes[name], path.Key(string(name)))...)
	}
	return errs
}

func validateAttribute(name resourcev1.QualifiedName, attribute Attribute, path *field.Path) field.ErrorList {
	errs := validateQualifiedName(string(name), path)
	if attribute.problem == nil && IsTemplate(attribute.Value) {
		return errs
	}
	if _, err := attribute.Resolve(attribute.Value); err != nil {
		errs = append(errs, field.Invalid(path, attribute.shown(), err.Error()))
	}
	return errs
}

// attributesOf are the attributes of a partition: those of the device but uuid,
// its own, and, where the device has a UUID, uuid and parentUUID.
func (d *DeviceTemplate) attributesOf(p *PartitionTemplate) map[resourcev1.QualifiedName]Attribute {
	attributes := map[resourcev1.QualifiedName]Attribute{}
	maps.Copy(attributes, d.Attributes)
	delete(attributes, attributeUUID)
	if uuid, has := d.Attributes[attributeUUID]; has && uuid.Type == AttributeString {
		attributes[attributeUUID], attributes[attributeParentUUID] = uuid, uuid
	}
	maps.Copy(attributes, p.Attributes)
	return attributes
}

// validateNumbers applies the API server's limits on what a device has.
func validateNumbers(attributes map[resourcev1.QualifiedName]Attribute, capacities int, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	if n := len(attributes) + capacities; n > resourcev1.ResourceSliceMaxAttributesAndCapacitiesPerDevice {
		errs = append(errs, field.Invalid(path, n, fmt.Sprintf("attributes and capacities must be at most %d together%s",
			resourcev1.ResourceSliceMaxAttributesAndCapacitiesPerDevice, inherited(path))))
	}
	values := 0
	for _, attribute := range attributes {
		values += attribute.values()
	}
	if values > resourcev1.ResourceSliceMaxAttributeValuesPerDevice {
		errs = append(errs, field.Invalid(path, values, fmt.Sprintf("values of attributes must be at most %d in all, each element of a list counted%s",
			resourcev1.ResourceSliceMaxAttributeValuesPerDevice, inherited(path))))
	}
	return errs
}

// inherited says that a partition has attributes that its own list does not show.
func inherited(path *field.Path) string {
	if strings.Contains(path.String(), "partitions[") {
		return ", those of the device included"
	}
	return ""
}

// validateFullyQualified is stricter than validateQualifiedName about the domain,
// as the API server is.
func validateFullyQualified(name, driver string, path *field.Path) field.ErrorList {
	domain, _, qualified := strings.Cut(name, "/")
	switch {
	case !qualified:
		return field.ErrorList{field.Invalid(path, name, `must have a domain and "/" before the name`+use(driver+"/"+name, isQualified))}
	case domain != strings.ToLower(domain):
		return field.ErrorList{field.Invalid(path, name, `must have a domain in lower case before the "/", also where the driver's name has capitals`)}
	}
	return validateQualifiedName(name, path)
}

// validateType wants the attribute that partitionTypeAttribute names. The name
// with the domain comes first, as for the API server.
func validateType(attributes map[resourcev1.QualifiedName]Attribute, spec *ResourcePoolTemplateSpec, path *field.Path) field.ErrorList {
	name := string(*spec.PartitionTypeAttribute)
	bare := strings.TrimPrefix(name, spec.Driver+"/")
	for _, key := range []string{name, bare} {
		attribute, has := attributes[resourcev1.QualifiedName(key)]
		if !has {
			continue
		}
		at := path.Child("attributes").Key(key)
		if attribute.problem == nil && attribute.Type != AttributeString {
			return field.ErrorList{field.Invalid(at, attribute.shown(), "must be a string, since partitionTypeAttribute names it")}
		}
		return nil
	}
	return field.ErrorList{field.Required(path.Child("attributes").Key(bare), "partitionTypeAttribute names it, and the device consumes counters")}
}
