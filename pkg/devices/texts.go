package devices

import (
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/kwok-dra/kwok-dra/pkg/api/v1alpha1"
)

// eachTemplate has those of all values rendered that are templates.
func eachTemplate(render func(place) string) func(path *field.Path, value string) string {
	return func(path *field.Path, value string) string {
		if !v1alpha1.IsTemplate(value) {
			return value
		}
		return render(place{path: path, value: value})
	}
}

// texts renders the templates of a walk, which go in the order of their programs.
type texts struct {
	rendering *rendering
	programs  []*program
	given     map[string]any
	errs      []error
}

func newTexts(programs []*program, given map[string]any) *texts {
	return &texts{rendering: newRendering(len(programs)), programs: programs, given: given}
}

// next renders the next template.
func (t *texts) next(p place) string {
	text, err := t.rendering.value(t.programs[0], t.given)
	t.programs = t.programs[1:]
	if err != nil {
		t.errs = append(t.errs, err)
	}
	if strings.Contains(text, noValue) {
		t.errs = append(t.errs, field.Invalid(p.path, p.value, "reads a field that is not there; give a fallback with or"))
	}
	return text
}
