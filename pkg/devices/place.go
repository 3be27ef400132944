package devices

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"text/template/parse"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/kwok-dra/kwok-dra/pkg/api/defaults"
	"github.com/kwok-dra/kwok-dra/pkg/api/v1alpha1"
	"github.com/kwok-dra/kwok-dra/pkg/api/validation"
)

// noValue is what Go templates print for a field that is not there.
const noValue = "<no value>"

// place is a value that may be a template: the name of a pool, the label with a key, or
// a value's way into a device.
type place struct {
	key   string
	path  *field.Path
	value string
	// program is nil for a value that is no template.
	program *program
	set     func(device *resourcev1.Device, text string) error
}

// text is what a place yields where it sees what is given, and the Node.
func (p *place) text(r *rendering, given map[string]any) (string, error) {
	switch {
	case p.program == nil:
		return p.value, nil
	case p.value == defaults.PoolName && r.node != nil:
		return r.node.GetName(), nil
	}
	given["Node"] = nil
	var err error
	if r.node != nil {
		given["Node"], err = r.node.Decoded()
	}
	if r.pod != nil && err == nil {
		given["DriverPod"], err = r.pod()
	}
	if err != nil {
		return "", err
	}
	return r.value(p.program, given)
}

// lacks is the error of a value that reads a field which is not there.
func (p *place) lacks() *field.Error {
	whose, example := "Node", "{{ or .Node.metadata.labels.zone \"none\" }}"
	if strings.Contains(p.value, "DriverPod") {
		whose, example = "driver Pod", "{{ or .DriverPod.env.DRIVER_NAME \"gpu.example.com\" }}"
		if strings.Contains(p.value, "Node") {
			whose = "Node or the driver Pod"
		}
	}
	return field.Invalid(p.path, p.value, "the "+whose+" lacks a field that this reads; give a fallback, for example "+example)
}

// fill puts a rendered value in its place. It refuses what Go templates
// print for a missing field, which would end up in a slice.
func (p *place) fill(device *resourcev1.Device, text string) error {
	if strings.Contains(text, noValue) {
		return p.lacks()
	}
	if err := p.set(device, text); err != nil {
		return field.Invalid(p.path, text, err.Error())
	}
	return nil
}

func (p *place) refuse(why string) field.ErrorList {
	return field.ErrorList{field.Invalid(p.path, p.value, why)}
}

// check parses a template, and refuses one that is none, one that takes too much, and
// one that reads what is never there.
func (p *place) check(sample map[string]any) field.ErrorList {
	if !v1alpha1.IsTemplate(p.value) {
		return nil
	}
	var err error
	switch p.program, err = newProgram(p.path.String(), p.value); {
	case errors.Is(err, errUnstable):
		return p.refuse(err.Error())
	case err != nil:
		return p.refuse("is no valid template: " + err.Error())
	}
	given, err := asData(sample)
	if err != nil {
		return field.ErrorList{field.InternalError(p.path, err)}
	}
	// Other errors, such as a label that the sample lacks, another object might not give.
	if _, err := newRendering(1).value(p.program, given); errors.Is(err, errTooMuch) {
		return p.refuse(errTooMuch.Error())
	}
	if problem := checkFields(sample, p.program.tree); problem != "" {
		return p.refuse(problem)
	}
	return nil
}

// fillings are what actions may yield, for each type of value.
var fillings = []string{"1", "true", "1.0", "1.0.0", "1Gi", ""}

// checkAround refuses a template whose text around the actions makes every value
// wrong, as that of "abc{{ .Node.metadata.labels.index }}" for an integer.
func (p *place) checkAround() field.ErrorList {
	var first error
	for _, filling := range fillings {
		text, only := filled(p.program.tree.Root, filling)
		if !only {
			return nil
		}
		err := p.set(&resourcev1.Device{}, text)
		if err == nil {
			return nil
		}
		if first == nil {
			first = fmt.Errorf("yields such as %q: %w", text, err)
		}
	}
	return p.refuse(first.Error())
}

// filled is a template with the filling in place of each action. It reports whether
// there is nothing but text and actions that yield something.
func filled(list *parse.ListNode, filling string) (string, bool) {
	var text strings.Builder
	for _, node := range list.Nodes {
		switch n := node.(type) {
		case *parse.TextNode:
			text.Write(n.Text)
		case *parse.ActionNode:
			if len(n.Pipe.Decl) == 0 {
				text.WriteString(filling)
			}
		default:
			return "", false
		}
	}
	return text.String(), true
}

// readsNode finds an action that reads the Node.
var readsNode = regexp.MustCompile(`{{[^}]*\.Node\b`)

// checkNodeless refuses a value that reads a Node where there is none.
func (p *place) checkNodeless(why string) field.ErrorList {
	if !readsNode.MatchString(p.value) {
		return nil
	}
	return p.refuse("must not read .Node; it " + why)
}

// sample stands in for a node when templates are checked as they are read.
var sample = &corev1.Node{ObjectMeta: metav1.ObjectMeta{
	Name:        "sample",
	UID:         "00000000-0000-0000-0000-000000000000",
	Labels:      map[string]string{"kubernetes.io/hostname": "sample"},
	Annotations: map[string]string{"kwok.x-k8s.io/node": "fake"},
}}

// expandNames makes the names of a group: what the template yields for each
// number, or the stem and the number where there is a count.
func expandNames(stem string, count *int32, path *field.Path) ([]string, field.ErrorList) {
	if count == nil {
		return renderIndexed(stem, 1, path)
	}
	if !v1alpha1.IsTemplate(stem) {
		stem += "-{{ .Index }}"
	}
	return renderIndexed(stem, int(*count), path)
}

// renderIndexed renders a template of .Index for each number. Such values do not
// depend on a node: programs that compare the nodes of a group, as
// cluster-autoscaler does, need the same names on each, and devices are found by
// name without rendering.
func renderIndexed(value string, number int, path *field.Path) ([]string, field.ErrorList) {
	p := &place{path: path, value: value}
	given := func(i int) map[string]any { return map[string]any{"Index": i} }
	errs := p.checkNodeless("sees only .Index, since it must be the same on every node")
	if len(errs) == 0 {
		errs = p.check(given(0))
	}
	if len(errs) > 0 {
		return nil, errs
	}
	return p.renderEach(number, given)
}

// renderEach renders a place for each number, where it sees what is given.
func (p *place) renderEach(number int, given func(int) map[string]any) ([]string, field.ErrorList) {
	values := slices.Repeat([]string{p.value}, number)
	r := newRendering(number)
	for i := 0; i < number && p.program != nil; i++ {
		var err error
		if values[i], err = r.value(p.program, given(i)); err != nil {
			return nil, p.refuse("cannot be rendered: " + err.Error())
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

// listed lists the first few of many names.
func listed(names []string) string {
	const most = 3
	switch {
	case len(names) == 0:
		return "none"
	case len(names) > most:
		return fmt.Sprintf("%s and %d more", strings.Join(names[:most], ", "), len(names)-most)
	}
	return strings.Join(names, ", ")
}
