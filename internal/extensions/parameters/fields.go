package parameters

import (
	"fmt"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/util/validation/field"
	sigsjson "sigs.k8s.io/json"

	"github.com/kwok-dra/kwok-dra/pkg/api/v1alpha1"
)

// fieldChecker finds what the OpenAPI validator does not: unknown fields, and values that should be
// integers.
type fieldChecker struct {
	unknown []error
	invalid field.ErrorList
}

// walkValue walks through a value and its schema. It removes fields that are null, which decoders
// treat as absent, and adds defaults.
func (f *fieldChecker) walkValue(s *v1alpha1.Schema, value any, path *field.Path) {
	switch v := value.(type) {
	case map[string]any:
		f.walkObject(s, v, path)
	case []any:
		if s.Items == nil {
			break
		}
		for i := range v {
			f.walkValue(s.Items, v[i], path.Index(i))
		}
	case float64: // an integer would be an int64
		if s.Type == v1alpha1.SchemaInteger {
			f.invalid = append(f.invalid, notOfType(path, s.Type, string(v1alpha1.SchemaNumber)))
		}
	}
	switch value.(type) {
	case int64, string:
	default:
		if s.IntOrString {
			f.invalid = append(f.invalid, field.TypeInvalid(path, value, "must be of type integer or string"))
		}
	}
}

func (f *fieldChecker) walkObject(s *v1alpha1.Schema, object map[string]any, path *field.Path) {
	if s.Type != v1alpha1.SchemaObject && !s.PreserveUnknownFields {
		return // the validator reports the wrong type
	}
	setDefaults(s, object)
	for _, name := range slices.Sorted(maps.Keys(object)) {
		below := path.Child(name)
		property, known := s.Properties[name]
		switch {
		case known:
		case s.AdditionalProperties != nil:
			property, known = *s.AdditionalProperties, true
		case !s.PreserveUnknownFields:
			f.unknown = append(f.unknown, fmt.Errorf("unknown field %q", below))
		}
		if object[name] == nil && !property.Nullable {
			delete(object, name)
			continue
		}
		if known {
			f.walkValue(&property, object[name], below)
		}
	}
}

// setDefaults sets the defaults, which a driver does before it validates.
func setDefaults(s *v1alpha1.Schema, object map[string]any) {
	for name, property := range s.Properties {
		value, has := object[name]
		if property.Default == nil || has && (value != nil || property.Nullable) {
			continue
		}
		var decoded any
		if sigsjson.UnmarshalCaseSensitivePreserveInts(property.Default.Raw, &decoded) == nil {
			object[name] = decoded
		}
	}
}
