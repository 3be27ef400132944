package parameters

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"
	openapierrors "k8s.io/kube-openapi/pkg/validation/errors"

	"github.com/kwok-dra/kwok-dra/pkg/api/v1alpha1"
)

// rootPath is the path of the parameters themselves.
const rootPath = "parameters"

// jsonTypes are the validator's names of types.
var jsonTypes = []string{"object", "array", "string", "integer", "number", "boolean", "null"}

// describeError turns an error of the OpenAPI validator into one in Kubernetes' words, with the
// value.
func describeError(err error) *field.Error {
	found, ok := errors.AsType[*openapierrors.Validation](err)
	if !ok {
		return parseProblem(err.Error())
	}
	path := pathNamed(found.Name)
	text := strings.TrimPrefix(found.Error(), found.Name+" in body ")
	switch found.Code() {
	case openapierrors.RequiredFailCode:
		return field.Required(path, "")
	case openapierrors.InvalidTypeCode:
		wanted, _, _ := strings.Cut(strings.TrimPrefix(text, "must be of type "), ":")
		if is := fmt.Sprint(found.Value); slices.Contains(jsonTypes, is) {
			return notOfType(path, v1alpha1.SchemaType(wanted), is)
		}
		return field.Invalid(path, found.Value, "must have the format "+wanted)
	case openapierrors.EnumFailCode:
		values := make([]string, len(found.Values))
		for i, value := range found.Values {
			values[i] = fmt.Sprint(value)
		}
		return field.NotSupported(path, found.Value, values)
	}
	return field.Invalid(path, found.Value, text)
}

// parseProblem parses the texts of errors without a type: `"PATH" must ...` for allOf, anyOf, oneOf
// and not, and `Checked value must ... in PATH` for a number that is too large.
func parseProblem(text string) *field.Error {
	name := ""
	if rest, ok := strings.CutPrefix(text, "Checked value "); ok {
		text = rest
		if i := strings.LastIndex(rest, " in "); i >= 0 {
			text, name = rest[:i], rest[i+len(" in "):]
		}
	} else if quoted, err := strconv.QuotedPrefix(text); err == nil {
		text = strings.TrimSpace(text[len(quoted):])
		name, _ = strconv.Unquote(quoted)
	}
	return field.Invalid(pathNamed(name), field.OmitValueType{}, text)
}

func notOfType(path *field.Path, wanted v1alpha1.SchemaType, is string) *field.Error {
	return field.TypeInvalid(path, field.OmitValueType{}, fmt.Sprintf("must be of type %s, is of type %s", wanted, is))
}

func pathNamed(name string) *field.Path {
	return field.NewPath(cmp.Or(strings.TrimPrefix(name, "."), rootPath))
}
