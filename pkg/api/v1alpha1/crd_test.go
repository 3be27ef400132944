package v1alpha1

import (
	"encoding/json"
	"maps"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"
)

// openAPI is what the test looks at of an OpenAPI schema.
type openAPI struct {
	Properties           map[string]openAPI `json:"properties"`
	Items                *openAPI           `json:"items"`
	AdditionalProperties *openAPI           `json:"additionalProperties"`
	Type                 string             `json:"type"`
}

func readSchema(t *testing.T, file string) openAPI {
	t.Helper()
	data, err := os.ReadFile("../../../kustomize/crd/" + file)
	require.NoError(t, err)
	var definition struct {
		Spec struct {
			Versions []struct {
				Schema struct {
					OpenAPIV3Schema openAPI `json:"openAPIV3Schema"`
				} `json:"schema"`
			} `json:"versions"`
		} `json:"spec"`
	}
	require.NoError(t, yaml.Unmarshal(data, &definition))
	return definition.Spec.Versions[0].Schema.OpenAPIV3Schema
}

// TestDefinitionsHaveTheFieldsOfTheTypes: `make generate` has been run since the
// types changed. A field that the schema lacks would be dropped without a word.
func TestDefinitionsHaveTheFieldsOfTheTypes(t *testing.T) {
	t.Parallel()
	compare(t, "ResourcePoolTemplate", reflect.TypeFor[ResourcePoolTemplate](), readSchema(t, "dra.kwok.x-k8s.io_resourcepooltemplates.yaml"))
	compare(t, "KwokDRAConfiguration", reflect.TypeFor[KwokDRAConfiguration](), readSchema(t, "dra.kwok.x-k8s.io_kwokdraconfigurations.yaml"))
}

var (
	unmarshaler = reflect.TypeFor[json.Unmarshaler]()
	objectMeta  = reflect.TypeFor[metav1.ObjectMeta]()
)

func compare(t *testing.T, path string, typ reflect.Type, s openAPI) {
	t.Helper()
	for typ.Kind() == reflect.Pointer {
		typ = typ.Elem()
	}
	switch {
	case typ == objectMeta, typ == reflect.TypeFor[Schema](), reflect.PointerTo(typ).Implements(unmarshaler):
	case typ.Kind() == reflect.Struct:
		fields := fieldsOf(typ)
		require.ElementsMatch(t, slices.Collect(maps.Keys(fields)), slices.Collect(maps.Keys(s.Properties)), path)
		for name, field := range fields {
			compare(t, path+"."+name, field, s.Properties[name])
		}
	case typ.Kind() == reflect.Slice:
		require.NotNil(t, s.Items, path)
		compare(t, path+"[]", typ.Elem(), *s.Items)
	case typ.Kind() == reflect.Map:
		require.NotNil(t, s.AdditionalProperties, path)
		compare(t, path+"{}", typ.Elem(), *s.AdditionalProperties)
	default:
		require.NotEmpty(t, s.Type, path)
	}
}

// fieldsOf maps the names of fields in JSON to their types.
func fieldsOf(typ reflect.Type) map[string]reflect.Type {
	fields := map[string]reflect.Type{}
	for field := range typ.Fields() {
		name, options, _ := strings.Cut(field.Tag.Get("json"), ",")
		switch {
		case strings.Contains(options, "inline"):
			maps.Copy(fields, fieldsOf(field.Type))
		case field.IsExported() && name != "" && name != "-":
			fields[name] = field.Type
		}
	}
	return fields
}
