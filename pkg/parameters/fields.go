package parameters

import (
	"fmt"
	"maps"
	"slices"

	"github.com/kwok-dra/kwok-dra/pkg/api/v1alpha1"
)

// fields collects what the validator of OpenAPI leaves out: fields that a schema
// does not have, and integers or strings that are neither.
type fields struct {
	unknown []error
	invalid []string
}

// walk goes through a value and its schema. It removes fields that are null, which decoders
// take for absent.
func (f *fields) walk(s *v1alpha1.Schema, value any, path string) {
	switch v := value.(type) {
	case map[string]any:
		f.object(s, v, path)
	case []any:
		if s.Items == nil {
			break
		}
		for i := range v {
			f.walk(s.Items, v[i], fmt.Sprintf("%s[%d]", path, i))
		}
	}
	switch value.(type) {
	case int64, string:
	default:
		if s.IntOrString {
			f.invalid = append(f.invalid, path+" must be of type integer or string")
		}
	}
}

func (f *fields) object(s *v1alpha1.Schema, object map[string]any, path string) {
	if s.Type != v1alpha1.SchemaObject && !s.PreserveUnknownFields {
		return // it is of the wrong type
	}
	for _, name := range slices.Sorted(maps.Keys(object)) {
		below := name
		if path != "" {
			below = path + "." + name
		}
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
			f.walk(&property, object[name], below)
		}
	}
}
