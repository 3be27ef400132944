package devices

import (
	"errors"
	"regexp"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/kwok-dra/kwok-dra/pkg/api/defaults"
	"github.com/kwok-dra/kwok-dra/pkg/lifecycle"
)

// noValue is what Go templates print for a field that is not there.
const noValue = "<no value>"

// text is what is rendered of a template.
type text struct {
	poolName place
	// values is how many there are for a node.
	values int
}

// newText checks and parses the pool's name, the labels and the places of all groups.
func newText(poolName place, labels []place, groups []group) (*text, field.ErrorList) {
	t := &text{poolName: poolName, values: 1 + len(labels)}
	c := &checker{refused: map[string]bool{}}
	c.place(&t.poolName, sampleNode)
	for i := range labels {
		c.place(&labels[i], sampleNode)
	}
	for i := range groups {
		c.group(&groups[i])
		t.values += len(groups[i].devices) * len(groups[i].places)
	}
	return t, c.errs
}

// view renders a template for a node, or for none.
type view struct {
	node      *lifecycle.Object
	rendering *rendering
}

// value is what a place yields where it sees what is given, and the Node.
func (v *view) value(p *place, given map[string]any) (string, error) {
	switch {
	case p.program == nil:
		return p.value, nil
	case p.value == defaults.PoolName && v.node != nil:
		return v.node.Name(), nil
	}
	given["Node"] = nil
	if v.node != nil {
		var err error
		if given["Node"], err = v.node.Decoded(); err != nil {
			return "", err
		}
	}
	return v.rendering.value(p.program, given)
}

// sample stands in for a node when templates are checked as they are read.
var sample = &corev1.Node{ObjectMeta: metav1.ObjectMeta{
	Name:        "sample",
	UID:         "00000000-0000-0000-0000-000000000000",
	Labels:      map[string]string{"kubernetes.io/hostname": "sample"},
	Annotations: map[string]string{"kwok.x-k8s.io/node": "fake"},
}}

// sampleNode is what the name of a pool and labels see of the sample.
var sampleNode = map[string]any{"Node": sample}

// readsNode finds an action that reads the Node.
var readsNode = regexp.MustCompile(`{{[^}]*\.Node\b`)

// checkNodeless refuses a value that reads a Node where there is none.
func checkNodeless(p place, why string) field.ErrorList {
	if !readsNode.MatchString(p.value) {
		return nil
	}
	return field.ErrorList{field.Invalid(p.path, p.value, "must not read .Node; it "+why)}
}

// checkShared refuses values that read a Node in a pool that nodes share.
func checkShared(t *Template) field.ErrorList {
	places := slices.Clone(t.labels)
	for i := range t.groups {
		places = append(places, t.groups[i].places...)
	}
	var errs field.ErrorList
	for _, p := range places {
		errs = append(errs, checkNodeless(p, "is of a pool that nodes share")...)
	}
	return errs
}

// check parses a template, and refuses one that is none, one that takes too much, and
// one that reads what is never there.
func check(sample map[string]any, p *place) field.ErrorList {
	var err error
	switch p.program, err = newProgram(p.path.String(), p.value); {
	case errors.Is(err, errUnstable):
		return field.ErrorList{field.Invalid(p.path, p.value, err.Error())}
	case err != nil:
		return field.ErrorList{field.Invalid(p.path, p.value, "is no valid template: "+err.Error())}
	}
	given, err := asData(sample)
	if err != nil {
		return field.ErrorList{field.InternalError(p.path, err)}
	}
	// Other errors, such as a label that the sample lacks, another object might not give.
	if _, err := newRendering(1).value(p.program, given); errors.Is(err, errTooMuch) {
		return field.ErrorList{field.Invalid(p.path, p.value, errTooMuch.Error())}
	}
	return checkFields(sample, *p, p.program.tree)
}
