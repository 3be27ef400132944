package devices

import (
	"fmt"
	"slices"
	"strconv"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/kwok-dra/kwok-dra/pkg/api/v1alpha1"
	"github.com/kwok-dra/kwok-dra/pkg/api/validation"
)

// expandNames makes the names of a group: what the template yields for each
// number, or the stem and the number where there is a count.
func expandNames(stem string, count *int32, path *field.Path) ([]string, field.ErrorList) {
	number := 1
	if count != nil {
		number = int(*count)
		if !v1alpha1.IsTemplate(stem) {
			stem += "-{{ .Index }}"
		}
	}
	return renderIndexed(stem, number, path)
}

// renderIndexed renders a template of .Index for each number. Such values do not
// depend on a node: programs that compare the nodes of a group, as
// cluster-autoscaler does, need the same names on each, and devices are found by
// name without rendering.
func renderIndexed(value string, number int, path *field.Path) ([]string, field.ErrorList) {
	p := place{path: path, value: value}
	errs := checkNodeless(p, "sees only .Index, since it must be the same on every node")
	if len(errs) == 0 && v1alpha1.IsTemplate(value) {
		errs = check(map[string]any{"Index": 0}, &p)
	}
	if len(errs) > 0 {
		return nil, errs
	}
	names, err := renderEach(p, number, func(i int) map[string]any { return map[string]any{"Index": i} })
	if err != nil {
		return nil, field.ErrorList{field.Invalid(path, value, "cannot be rendered: "+err.Error())}
	}
	return names, nil
}

// renderEach renders a place for each number, where it sees what is given.
func renderEach(p place, number int, given func(int) map[string]any) ([]string, error) {
	values := slices.Repeat([]string{p.value}, number)
	r := newRendering(number)
	for i := 0; i < number && p.program != nil; i++ {
		var err error
		if values[i], err = r.value(p.program, given(i)); err != nil {
			return nil, err
		}
	}
	return values, nil
}

// taken are the names in use, with the paths of those that have them.
type taken map[string]*field.Path

// add refuses names that are invalid, and those in use.
func (t taken) add(names []string, path *field.Path) field.ErrorList {
	for _, name := range names {
		if errs := validation.ValidateLabel(name, path); len(errs) > 0 {
			return errs
		}
		if other, ok := t[name]; ok {
			duplicate := field.Duplicate(path, name)
			duplicate.Detail = fmt.Sprintf("%s gives that name already; rename one", other)
			return field.ErrorList{duplicate}
		}
		t[name] = path
	}
	return nil
}

// numbered makes the names <stem>-0, <stem>-1, and so on.
func numbered(stem string, count int) []string {
	names := make([]string, count)
	for i := range names {
		names[i] = stem + "-" + strconv.Itoa(i)
	}
	return names
}
