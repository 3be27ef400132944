package devices

import (
	"fmt"
	"slices"
	"strings"
	"text/template/parse"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/kwok-dra/kwok-dra/pkg/api/v1alpha1"
	"github.com/kwok-dra/kwok-dra/pkg/suggest"
)

// checker checks the places of a template as it is read, and adds them to a program.
type checker struct {
	program *program
	// numbers are those of the places that have been checked, by path.
	numbers map[string]int
	// refused are the paths of places that are wrong.
	refused map[string]bool
	errs    field.ErrorList
}

// place checks a place once for each path, and numbers it.
func (c *checker) place(p *place, sample map[string]any) {
	path := p.path.String()
	if _, checked := c.numbers[path]; !checked && v1alpha1.IsTemplate(p.value) {
		if errs := check(sample, *p); len(errs) > 0 {
			c.refuse(path, errs...)
		}
		// Where there is an error, it has been reported.
		c.numbers[path], _ = c.program.add(path, p.value)
	}
	p.number = c.numbers[path]
}

func (c *checker) refuse(path string, errs ...*field.Error) {
	if !c.refused[path] {
		c.errs = append(c.errs, errs...)
	}
	c.refused[path] = true
}

// group checks the places of a group, and the values that they yield on any node.
func (c *checker) group(g *group) {
	for i := range g.places {
		c.place(&g.places[i], g.sample())
	}
	for _, p := range g.places {
		if path := p.path.String(); !c.refused[path] {
			if err := checkValue(g, p); err != nil {
				c.refuse(path, err)
			}
		}
	}
}

// sample is what the places of the group see of the sample.
func (g *group) sample() map[string]any {
	given := g.given(0)
	given["Node"] = sample
	return given
}

// checkValue refuses a value that is wrong on every node. One that does not read the
// Node is known, so it is rendered for each device. Of one that does, only the
// text around the actions is known.
func checkValue(g *group, p place) *field.Error {
	if reads(p.value, "Node") {
		return checkAround(p)
	}
	texts, err := renderEach(p, len(g.devices), g.given)
	if err != nil {
		return field.Invalid(p.path, p.value, "cannot be rendered: "+err.Error())
	}
	for i, text := range texts {
		device := resourcev1.Device{Name: g.devices[i].Name}
		if err := p.set(&device, text); err != nil {
			return field.Invalid(p.path, p.value, fmt.Sprintf("yields %q for device %s: %v", text, device.Name, err))
		}
	}
	return nil
}

// fillings are what actions may yield, for each type of value.
var fillings = []string{"1", "true", "1.0", "1.0.0", "1Gi", ""}

// checkAround refuses a template whose text around the actions makes every value
// wrong, as that of "abc{{ .Node.metadata.labels.index }}" for an integer.
func checkAround(p place) *field.Error {
	tree, err := parseTemplate(p.path.String(), p.value)
	if err != nil {
		return nil //nolint:nilerr // what is no template is refused elsewhere
	}
	var first error
	for _, filling := range fillings {
		text, only := filled(tree.Root, filling)
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
	return field.Invalid(p.path, p.value, first.Error())
}

// filled is a template with the filling in place of each action. It tells whether
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

// checkPoolName refuses a name that is the same on every node: their pools would
// be one to the scheduler, and never complete.
func checkPoolName(spec *v1alpha1.ResourcePoolTemplateSpec, p place) field.ErrorList {
	if spec.SharedWith != nil || reads(p.value, "Node") || selectsOneNode(spec.NodeSelector) {
		return nil
	}
	return field.ErrorList{field.Invalid(p.path, p.value, fmt.Sprintf("must differ from node to node; leave it out for the node's name, or use for example %q; for one pool that nodes share set sharedWith",
		strings.TrimSuffix(v1alpha1.DefaultPoolName+"-"+suggest.Label(p.value), "-")))}
}

// selectsOneNode tells whether a selector names one node.
func selectsOneNode(selector *corev1.NodeSelector) bool {
	if selector == nil {
		return false
	}
	names := map[string]bool{}
	for _, term := range selector.NodeSelectorTerms {
		i := slices.IndexFunc(term.MatchFields, func(r corev1.NodeSelectorRequirement) bool {
			return r.Key == metav1.ObjectNameField && r.Operator == corev1.NodeSelectorOpIn && len(r.Values) == 1
		})
		if i < 0 {
			return false
		}
		names[term.MatchFields[i].Values[0]] = true
	}
	return len(names) == 1
}
