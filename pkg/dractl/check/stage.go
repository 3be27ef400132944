package check

import (
	"errors"
	"slices"
	"text/template"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	kwokv1alpha1 "sigs.k8s.io/kwok/pkg/apis/v1alpha1"
	"sigs.k8s.io/kwok/pkg/utils/expression"
	"sigs.k8s.io/kwok/pkg/utils/gotpl"

	"github.com/kwok-dra/kwok-dra/pkg/lifecycle"
)

// checkStage reports all mistakes in a Stage. kwok accepts any: one whose
// selector does not compile matches everything, and a template that does not
// parse is found out when the Stage is played.
func checkStage(stage *kwokv1alpha1.Stage) field.ErrorList {
	spec := field.NewPath("spec")
	c := &stageCheck{kind: stageKinds[""]}
	if ref := stage.Spec.ResourceRef; stageKinds[ref.Kind] != nil && (ref.APIGroup == "" || ref.APIGroup == "v1") {
		c.kind = stageKinds[ref.Kind]
	}
	if stage.Name == "" {
		c.add(field.Required(field.NewPath("metadata", "name"), "name the Stage"))
	}
	if stage.Spec.ResourceRef.Kind == "" {
		c.add(field.Required(spec.Child("resourceRef", "kind"), "must be the kind of the objects that the Stage is for, such as Node or Pod"))
	}
	if stage.Spec.Weight < 0 {
		c.add(field.Invalid(spec.Child("weight"), stage.Spec.Weight, "must not be negative"))
	}
	if stage.Spec.Selector == nil {
		c.add(field.Required(spec.Child("selector"), "without one kwok never plays the Stage; {} selects all objects of the kind"))
	} else {
		_, errs := lifecycle.CompileForStage(stage.Spec.Selector, spec.Child("selector"), c.kind.cel)
		c.add(errs...)
	}
	c.expression(stage.Spec.WeightFrom, spec.Child("weightFrom"))
	c.delay(stage.Spec.Delay, spec.Child("delay"))
	if next, path := stage.Spec.Next, spec.Child("next"); next != nil {
		c.event(next.Event, path.Child("event"))
		c.template(next.StatusTemplate, path.Child("statusTemplate"))
		for i := range next.Patches {
			c.patch(&next.Patches[i], path.Child("patches").Index(i))
		}
	}
	for i := range stage.Spec.Steps {
		step, path := &stage.Spec.Steps[i], spec.Child("steps").Index(i)
		c.event(step.Event, path.Child("event"))
		if step.Patch != nil {
			c.patch(step.Patch, path.Child("patch"))
		}
		if step.Apply != nil {
			c.template(step.Apply.Template, path.Child("apply", "template"))
			c.patchType(step.Apply.Type, path.Child("apply", "type"),
				kwokv1alpha1.StagePatchTypeApply, kwokv1alpha1.StagePatchTypeMergePatch, kwokv1alpha1.StagePatchTypeStrategicMergePatch)
		}
	}
	return c.errs
}

// stageKind is what Stages see of the objects of a kind.
type stageKind struct {
	cel    *lifecycle.Environment
	sample any
	funcs  gotpl.FuncMap
}

// otherCEL is for all other kinds, whose fields are not known.
var otherCEL = lifecycle.NewEnvironment(map[string]any{})

var stageKinds = map[string]*stageKind{
	"Node": {lifecycle.NodeCEL, &corev1.Node{}, functions("NodeIP", "NodeName", "NodePort")},
	"Pod":  {lifecycle.PodCEL, &corev1.Pod{}, functions("NodeIP", "PodIP", "NodeIPWith", "NodeIPsWith", "PodIPWith", "PodIPsWith")},
	"":     {otherCEL, map[string]any{}, nil},
}

// functions stand in for those that templates of a kind have besides kwok's own.
func functions(names ...string) gotpl.FuncMap {
	all := gotpl.FuncMap{}
	for _, name := range names {
		all[name] = func(...any) string { return "" }
	}
	return all
}

// stageCheck collects what is wrong with a Stage.
type stageCheck struct {
	kind *stageKind
	errs field.ErrorList
}

func (c *stageCheck) add(errs ...*field.Error) { c.errs = append(c.errs, errs...) }

// expression checks where a number or a duration is from.
func (c *stageCheck) expression(from *kwokv1alpha1.ExpressionFrom, path *field.Path) {
	if from == nil {
		return
	}
	at, source := path.Child("expressionFrom"), from.ExpressionFrom
	if from.JQ != nil {
		at, source = path.Child("jq", "expression"), from.JQ.Expression
	}
	switch {
	case from.CEL != nil && source != "":
		c.add(field.Invalid(path, source, "give either cel or jq"))
	case from.CEL != nil:
		if _, err := c.kind.cel.Program(from.CEL.Expression); err != nil {
			c.add(field.Invalid(path.Child("cel", "expression"), from.CEL.Expression, "does not compile: "+err.Error()))
		}
	case source == "":
		c.add(field.Required(path, "give cel or jq"))
	default:
		if _, err := expression.NewQuery(source); err != nil {
			c.add(field.Invalid(at, source, "does not compile: "+err.Error()))
		}
	}
}

func (c *stageCheck) delay(delay *kwokv1alpha1.StageDelay, path *field.Path) {
	if delay == nil {
		return
	}
	c.duration(delay.DurationMilliseconds, path.Child("durationMilliseconds"))
	c.duration(delay.JitterDurationMilliseconds, path.Child("jitterDurationMilliseconds"))
	c.expression(delay.DurationFrom, path.Child("durationFrom"))
	c.expression(delay.JitterDurationFrom, path.Child("jitterDurationFrom"))
	if from := delay.JitterDurationFrom; from != nil && from.CEL != nil {
		c.add(field.Forbidden(path.Child("jitterDurationFrom", "cel"), "kwok does not read it; use jq"))
	}
}

func (c *stageCheck) duration(milliseconds *int64, path *field.Path) {
	if milliseconds != nil && *milliseconds < 0 {
		c.add(field.Invalid(path, *milliseconds, "must not be negative"))
	}
}

func (c *stageCheck) event(event *kwokv1alpha1.StageEvent, path *field.Path) {
	types := []string{corev1.EventTypeNormal, corev1.EventTypeWarning}
	if event != nil && event.Type != "" && !slices.Contains(types, event.Type) {
		c.add(field.NotSupported(path.Child("type"), event.Type, types))
	}
}

func (c *stageCheck) patch(patch *kwokv1alpha1.StagePatch, path *field.Path) {
	c.template(patch.Template, path.Child("template"))
	c.patchType(patch.Type, path.Child("type"),
		kwokv1alpha1.StagePatchTypeJSONPatch, kwokv1alpha1.StagePatchTypeMergePatch, kwokv1alpha1.StagePatchTypeStrategicMergePatch)
}

func (c *stageCheck) patchType(typ *kwokv1alpha1.StagePatchType, path *field.Path, known ...kwokv1alpha1.StagePatchType) {
	if typ != nil && !slices.Contains(known, *typ) {
		c.add(field.NotSupported(path, *typ, known))
	}
}

// template parses a template. What it lacks in an empty object is not held
// against it.
func (c *stageCheck) template(source string, path *field.Path) {
	var execution template.ExecError
	_, err := gotpl.NewRenderer(c.kind.funcs).ToText(source, c.kind.sample)
	if err == nil || errors.As(err, &execution) {
		return
	}
	for inner := errors.Unwrap(err); inner != nil; inner = errors.Unwrap(inner) {
		err = inner
	}
	c.add(field.Invalid(path, field.OmitValueType{}, "is no valid template: "+err.Error()))
}
