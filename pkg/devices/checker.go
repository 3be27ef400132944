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

	"github.com/kwok-dra/kwok-dra/pkg/api/defaults"
	"github.com/kwok-dra/kwok-dra/pkg/api/v1alpha1"
	"github.com/kwok-dra/kwok-dra/pkg/suggest"
)

// checker checks the places of a template as it is read.
type checker struct {
	// refused are the paths of places that are wrong.
	refused map[string]bool
	errs    field.ErrorList
}

func (c *checker) place(p *place, sample map[string]any) {
	if v1alpha1.IsTemplate(p.value) && !c.refused[p.path.String()] {
		c.refuse(p, check(sample, p))
	}
}

// refuse tells what is wrong with a place, if anything is, once for each path.
func (c *checker) refuse(p *place, errs field.ErrorList) {
	path := p.path.String()
	if !c.refused[path] {
		c.errs = append(c.errs, errs...)
	}
	c.refused[path] = c.refused[path] || len(errs) > 0
}

// group checks the places of a group. It leaves those that are to be rendered for each
// node, since they read it; values of others are put into the devices.
func (c *checker) group(g *group) {
	places := g.places
	g.places = nil
	for _, p := range places {
		c.place(&p, g.sample())
		switch {
		case c.refused[p.path.String()]:
		case p.program != nil && reads(p.value, "Node"):
			c.refuse(&p, checkAround(p))
			g.places = append(g.places, p)
		default:
			c.refuse(&p, g.fix(p))
		}
	}
}

// sample is what the places of the group see of the sample.
func (g *group) sample() map[string]any {
	given := g.given(0)
	given["Node"] = sample
	return given
}

// fillings are what actions may yield, for each type of value.
var fillings = []string{"1", "true", "1.0", "1.0.0", "1Gi", ""}

// checkAround refuses a template whose text around the actions makes every value
// wrong, as that of "abc{{ .Node.metadata.labels.index }}" for an integer.
func checkAround(p place) field.ErrorList {
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
	return field.ErrorList{field.Invalid(p.path, p.value, first.Error())}
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

// checkPoolName refuses a name that is the same on every node: their pools would
// be one to the scheduler, and never complete.
func checkPoolName(spec *v1alpha1.ResourcePoolTemplateSpec, p place) field.ErrorList {
	if spec.SharedWith != nil || reads(p.value, "Node") || selectsOneNode(spec.NodeSelector) {
		return nil
	}
	return field.ErrorList{field.Invalid(p.path, p.value, fmt.Sprintf("must differ from node to node; leave it out for the node's name, or use for example %q; for one pool that nodes share set sharedWith",
		strings.TrimSuffix(defaults.PoolName+"-"+suggest.Label(p.value), "-")))}
}

// selectsOneNode reports whether a selector names one node.
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
