// Package parameters checks opaque parameters as a driver does when it decodes and
// validates them: by kinds and their schemas.
package parameters

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/kube-openapi/pkg/validation/spec"
	"k8s.io/kube-openapi/pkg/validation/strfmt"
	"k8s.io/kube-openapi/pkg/validation/validate"
	sigsjson "sigs.k8s.io/json"

	"github.com/kwok-dra/kwok-dra/pkg/api/v1alpha1"
)

// Kinds are those that a driver knows. Any number of workers can use them.
type Kinds struct {
	prefix string
	known  map[schema.GroupVersionKind]*kind
}

// kind has no schema where any fields are good.
type kind struct {
	schema    *v1alpha1.Schema
	validator *validate.SchemaValidator
}

// Compile makes validated kinds ready for use.
func Compile(source *v1alpha1.Parameters, path *field.Path) (*Kinds, field.ErrorList) {
	var errs field.ErrorList
	k := &Kinds{prefix: cmp.Or(source.ErrorPrefix, "error decoding config parameters"), known: map[schema.GroupVersionKind]*kind{}}
	for i := range source.Kinds {
		compiled, problems := compile(source.Kinds[i].Schema, path.Child("kinds").Index(i).Child("schema"))
		errs = append(errs, problems...)
		k.known[schema.FromAPIVersionAndKind(source.Kinds[i].APIVersion, source.Kinds[i].Kind)] = compiled
	}
	return k, errs
}

func compile(source *v1alpha1.Schema, path *field.Path) (*kind, field.ErrorList) {
	if source == nil {
		return &kind{}, nil
	}
	if errs := checkSize(source, path); len(errs) > 0 {
		return nil, errs
	}
	var openAPI spec.Schema
	encoded, err := json.Marshal(source)
	if err == nil {
		err = json.Unmarshal(encoded, &openAPI)
	}
	if err != nil {
		return nil, field.ErrorList{field.Invalid(path, field.OmitValueType{}, err.Error())}
	}
	return &kind{schema: source, validator: validate.NewSchemaValidator(&openAPI, nil, "", strfmt.Default)}, nil
}

// Check returns what a driver answers where it cannot use parameters.
func (k *Kinds) Check(driver string, parameters []byte) error {
	if err := k.check(driver, parameters); err != nil {
		return fmt.Errorf("%s: %w", k.prefix, err)
	}
	return nil
}

func (k *Kinds) check(driver string, parameters []byte) error {
	var object map[string]any
	problems, err := sigsjson.UnmarshalStrict(parameters, &object)
	if err != nil {
		return fmt.Errorf("couldn't get version/kind; json parse error: %w", err)
	}
	version, _ := object["apiVersion"].(string)
	name, _ := object["kind"].(string)
	switch {
	case name == "":
		return runtime.NewMissingKindErr(string(parameters))
	case version == "":
		return runtime.NewMissingVersionErr(string(parameters))
	}
	found := k.known[schema.FromAPIVersionAndKind(version, name)]
	if found == nil {
		return runtime.NewNotRegisteredErrForKind(driver, schema.FromAPIVersionAndKind(version, name))
	}
	return found.check(object, problems)
}

// check first tells of what does not decode, and then of values that are not valid.
func (k *kind) check(object map[string]any, problems []error) error {
	f := fields{}
	if k.schema != nil {
		for _, name := range []string{"apiVersion", "kind"} {
			if _, ok := k.schema.Properties[name]; !ok {
				delete(object, name)
			}
		}
		f.walk(k.schema, object, nil)
		problems = append(problems, f.unknown...)
	}
	if len(problems) > 0 {
		return runtime.NewStrictDecodingError(problems)
	}
	if k.validator != nil {
		for _, err := range k.validator.Validate(object).Errors {
			f.invalid = append(f.invalid, problemOf(err))
		}
	}
	if len(f.invalid) == 0 {
		return nil
	}
	texts := make([]string, len(f.invalid))
	for i, err := range f.invalid {
		texts[i] = err.Error()
	}
	slices.Sort(texts)
	return errors.New(strings.Join(slices.Compact(texts), ", "))
}
