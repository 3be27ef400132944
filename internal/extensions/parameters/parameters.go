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

	"github.com/kwok-dra/kwok-dra/internal/devices"
	"github.com/kwok-dra/kwok-dra/pkg/api/v1alpha1"
)

func init() {
	devices.RegisterPart(validateParameters, func(t *devices.Template) field.ErrorList {
		if t.Parameters == nil {
			return nil
		}
		kinds, errs := Compile(t.Parameters, field.NewPath("spec", "parameters"))
		t.CheckParameters = kinds.Check
		return errs
	})
}

// Kinds are the kinds that a driver knows. Workers may share them.
type Kinds struct {
	prefix string
	known  map[schema.GroupVersionKind]*kind
}

// kind has no schema if it takes any fields.
type kind struct {
	schema    *v1alpha1.Schema
	validator *validate.SchemaValidator
}

// Compile makes validated kinds ready for use.
func Compile(source *v1alpha1.Parameters, path *field.Path) (*Kinds, field.ErrorList) {
	var errs field.ErrorList
	k := &Kinds{prefix: cmp.Or(source.ErrorPrefix, "error decoding config parameters"), known: map[schema.GroupVersionKind]*kind{}}
	for i := range source.Kinds {
		compiled, problems := compileKind(source.Kinds[i].Schema, path.Child("kinds").Index(i).Child("schema"))
		errs = append(errs, problems...)
		k.known[schema.FromAPIVersionAndKind(source.Kinds[i].APIVersion, source.Kinds[i].Kind)] = compiled
	}
	return k, errs
}

func compileKind(source *v1alpha1.Schema, path *field.Path) (*kind, field.ErrorList) {
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

// Check returns the error of a driver that cannot use parameters, or nil.
func (k *Kinds) Check(driver string, parameters []byte) error {
	if err := k.checkParameters(driver, parameters); err != nil {
		return fmt.Errorf("%s: %w", k.prefix, err)
	}
	return nil
}

func (k *Kinds) checkParameters(driver string, parameters []byte) error {
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
	return found.checkObject(object, problems)
}

// checkObject reports fields that do not decode, or else values that are invalid.
func (k *kind) checkObject(object map[string]any, problems []error) error {
	checker := fieldChecker{}
	if k.schema != nil {
		for _, name := range []string{"apiVersion", "kind"} {
			if _, ok := k.schema.Properties[name]; !ok {
				delete(object, name)
			}
		}
		checker.walkValue(k.schema, object, nil)
		problems = append(problems, checker.unknown...)
	}
	if len(problems) > 0 {
		return runtime.NewStrictDecodingError(problems)
	}
	if k.validator != nil {
		for _, err := range k.validator.Validate(object).Errors {
			checker.invalid = append(checker.invalid, describeError(err))
		}
	}
	if len(checker.invalid) == 0 {
		return nil
	}
	texts := make([]string, len(checker.invalid))
	for i, err := range checker.invalid {
		texts[i] = err.Error()
	}
	slices.Sort(texts)
	return errors.New(strings.Join(slices.Compact(texts), ", "))
}
