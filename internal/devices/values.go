package devices

import (
	"fmt"
	"regexp"
	"strings"

	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/kwok-dra/kwok-dra/internal/devices/gotemplate"
	"github.com/kwok-dra/kwok-dra/pkg/api/v1alpha1"
	"github.com/kwok-dra/kwok-dra/pkg/api/validation"
)

// deviceValue is a value of devices that is rendered.
type deviceValue struct {
	gotemplate.Text

	set func(device *resourcev1.Device, text string) error
}

// sampleResults are results of actions, one for each type of value.
var sampleResults = []string{"1", "true", "1.0", "1.0.0", "1Gi", ""}

// checkLiteralParts refuses a template whose text around the actions makes every value wrong, such
// as "abc{{ .Node.metadata.labels.index }}" for an integer.
func (v *deviceValue) checkLiteralParts() field.ErrorList {
	var first error
	for _, result := range sampleResults {
		text, ok := v.FillActions(result)
		if !ok {
			return nil
		}
		err := v.set(&resourcev1.Device{}, text)
		if err == nil {
			return nil
		}
		if first == nil {
			first = fmt.Errorf("yields such as %q: %w", text, err)
		}
	}
	return v.Refuse(first.Error())
}

// missingField is the error of a text that reads a field which the Node or the driver Pod lacks.
func missingField(text *gotemplate.Text) error {
	owner, example := "Node", "{{ or .Node.metadata.labels.zone \"none\" }}"
	if strings.Contains(text.Source, "DriverPod") {
		owner, example = "driver Pod", "{{ or .DriverPod.env.DRIVER_NAME \"gpu.example.com\" }}"
		if strings.Contains(text.Source, "Node") {
			owner = "Node or the driver Pod"
		}
	}
	return field.Invalid(text.Path, text.Source, "the "+owner+" lacks a field that this reads; give a fallback, for example "+example)
}

// readsNode matches a template that reads the Node.
var readsNode = regexp.MustCompile(`{{[^}]*\.Node\b`)

// refuseNode refuses a text that reads the Node where there is none.
func refuseNode(text *gotemplate.Text, why string) field.ErrorList {
	if !readsNode.MatchString(text.Source) {
		return nil
	}
	return text.Refuse("must not read .Node; it " + why)
}

// expandNames makes the names of a group: what the template yields for each number, or the stem
// and the number where there is a count.
func expandNames(stem string, count *int32, path *field.Path) ([]string, field.ErrorList) {
	if count == nil {
		return renderIndexed(stem, 1, path)
	}
	if !v1alpha1.IsTemplate(stem) {
		stem += "-{{ .Index }}"
	}
	return renderIndexed(stem, int(*count), path)
}

// renderIndexed renders a template of .Index for each number. Such values do not depend on a Node:
// programs that compare the Nodes of a group, as cluster-autoscaler does, need the same names on
// each, and devices are found by name without rendering.
func renderIndexed(value string, number int, path *field.Path) ([]string, field.ErrorList) {
	text := &gotemplate.Text{Path: path, Source: value}
	dataOf := func(i int) map[string]any { return map[string]any{"Index": i} }
	errs := refuseNode(text, "sees only .Index, since it must be the same on every node")
	if len(errs) == 0 {
		errs = text.Check(dataOf(0))
	}
	if len(errs) > 0 {
		return nil, errs
	}
	return renderForEach(text, number, dataOf)
}

// renderForEach renders a text for each number.
func renderForEach(text *gotemplate.Text, number int, dataOf func(int) map[string]any) ([]string, field.ErrorList) {
	rendered, renderer := make([]string, number), gotemplate.Renderer{Texts: number}
	for i := range rendered {
		var err error
		if rendered[i], err = renderer.Render(text, dataOf(i)); err != nil {
			return nil, text.Refuse("cannot be rendered: " + err.Error())
		}
	}
	return rendered, nil
}

// nameRegistry has the names in use, with the paths of the fields that make them.
type nameRegistry map[string]*field.Path

// addNames refuses names that are invalid or in use.
func (r nameRegistry) addNames(names []string, path *field.Path) field.ErrorList {
	for _, name := range names {
		if errs := validation.ValidateLabel(name, path); len(errs) > 0 {
			return errs
		}
		if other, ok := r[name]; ok {
			duplicate := field.Duplicate(path, name)
			duplicate.Detail = fmt.Sprintf("%s gives that name already; rename one", other)
			return field.ErrorList{duplicate}
		}
		r[name] = path
	}
	return nil
}
