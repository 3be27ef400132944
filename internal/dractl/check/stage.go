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

	"github.com/kwok-dra/kwok-dra/internal/observe/lifecycle"
)

// checkStage reports all mistakes in a Stage. kwok accepts any Stage: one whose selector does not compile
// matches everything, and a template that does not parse fails only when the Stage is played.
func checkStage(stage *kwokv1alpha1.Stage) field.ErrorList {
	spec := field.NewPath("spec")
	c := &stageCheck{kind: stageKinds[""]}
	if ref := stage.Spec.ResourceRef; stageKinds[ref.Kind] != nil && (ref.APIGroup == "" || ref.APIGroup == "v1") {
		c.kind = stageKinds[ref.Kind]
	}
	if stage.Name == "" {
		c.errs = append(c.errs, field.Required(field.NewPath("metadata", "name"), "name the Stage"))
	}
	if stage.Spec.ResourceRef.Kind == "" {
		c.errs = append(c.errs, field.Required(spec.Child("resourceRef", "kind"), "must be the kind of the objects that the Stage is for, such as Node or Pod"))
	}
	if stage.Spec.Weight < 0 {
		c.errs = append(c.errs, field.Invalid(spec.Child("weight"), stage.Spec.Weight, "must not be negative"))
	}
	if stage.Spec.Selector == nil {
		c.errs = append(c.errs, field.Required(spec.Child("selector"), "without one kwok never plays the Stage; {} selects all objects of the kind"))
	} else {
		_, errs := c.kind.cel.CompileForStage(stage.Spec.Selector, spec.Child("selector"))
		c.errs = append(c.errs, errs...)
	}
	c.checkExpression(stage.Spec.WeightFrom, spec.Child("weightFrom"))
	c.checkDelay(stage.Spec.Delay, spec.Child("delay"))
	if next, path := stage.Spec.Next, spec.Child("next"); next != nil {
		c.checkEvent(next.Event, path.Child("event"))
		c.checkTemplate(next.StatusTemplate, path.Child("statusTemplate"))
		for i := range next.Patches {
			c.checkPatch(&next.Patches[i], path.Child("patches").Index(i))
		}
	}
	for i := range stage.Spec.Steps {
		step, path := &stage.Spec.Steps[i], spec.Child("steps").Index(i)
		c.checkEvent(step.Event, path.Child("event"))
		c.checkPatch(step.Patch, path.Child("patch"))
		if step.Apply != nil {
			c.checkTemplate(step.Apply.Template, path.Child("apply", "template"))
			c.checkPatchType(step.Apply.Type, path.Child("apply", "type"),
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
	"Node": {lifecycle.NodeCEL, &corev1.Node{}, stubFunctions("NodeIP", "NodeName", "NodePort")},
	"Pod":  {lifecycle.PodCEL, &corev1.Pod{}, stubFunctions("NodeIP", "PodIP", "NodeIPWith", "NodeIPsWith", "PodIPWith", "PodIPsWith")},
	"":     {otherCEL, map[string]any{}, nil},
}

// stubFunctions replaces the functions that templates of a kind have besides kwok's own.
func stubFunctions(names ...string) gotpl.FuncMap {
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

// checkExpression checks where a number or a duration is from.
func (c *stageCheck) checkExpression(from *kwokv1alpha1.ExpressionFrom, path *field.Path) {
	if from == nil {
		return
	}
	at, source := path.Child("expressionFrom"), from.ExpressionFrom
	if from.JQ != nil {
		at, source = path.Child("jq", "expression"), from.JQ.Expression
	}
	switch {
	case from.CEL != nil && source != "":
		c.errs = append(c.errs, field.Invalid(path, source, "give either cel or jq"))
	case from.CEL != nil:
		if _, err := c.kind.cel.Program(from.CEL.Expression); err != nil {
			c.errs = append(c.errs, field.Invalid(path.Child("cel", "expression"), from.CEL.Expression, "does not compile: "+err.Error()))
		}
	case source == "":
		c.errs = append(c.errs, field.Required(path, "give cel or jq"))
	default:
		if _, err := expression.NewQuery(source); err != nil {
			c.errs = append(c.errs, field.Invalid(at, source, "does not compile: "+err.Error()))
		}
	}
}

func (c *stageCheck) checkDelay(delay *kwokv1alpha1.StageDelay, path *field.Path) {
	if delay == nil {
		return
	}
	if milliseconds := delay.DurationMilliseconds; milliseconds != nil && *milliseconds < 0 {
		c.errs = append(c.errs, field.Invalid(path.Child("durationMilliseconds"), *milliseconds, "must not be negative"))
	}
	if milliseconds := delay.JitterDurationMilliseconds; milliseconds != nil && *milliseconds < 0 {
		c.errs = append(c.errs, field.Invalid(path.Child("jitterDurationMilliseconds"), *milliseconds, "must not be negative"))
	}
	c.checkExpression(delay.DurationFrom, path.Child("durationFrom"))
	c.checkExpression(delay.JitterDurationFrom, path.Child("jitterDurationFrom"))
	if from := delay.JitterDurationFrom; from != nil && from.CEL != nil {
		c.errs = append(c.errs, field.Forbidden(path.Child("jitterDurationFrom", "cel"), "kwok does not read it; use jq"))
	}
}

func (c *stageCheck) checkEvent(event *kwokv1alpha1.StageEvent, path *field.Path) {
	types := []string{corev1.EventTypeNormal, corev1.EventTypeWarning}
	if event != nil && event.Type != "" && !slices.Contains(types, event.Type) {
		c.errs = append(c.errs, field.NotSupported(path.Child("type"), event.Type, types))
	}
}

func (c *stageCheck) checkPatch(patch *kwokv1alpha1.StagePatch, path *field.Path) {
	if patch == nil {
		return
	}
	c.checkTemplate(patch.Template, path.Child("template"))
	c.checkPatchType(patch.Type, path.Child("type"),
		kwokv1alpha1.StagePatchTypeJSONPatch, kwokv1alpha1.StagePatchTypeMergePatch, kwokv1alpha1.StagePatchTypeStrategicMergePatch)
}

func (c *stageCheck) checkPatchType(typ *kwokv1alpha1.StagePatchType, path *field.Path, known ...kwokv1alpha1.StagePatchType) {
	if typ != nil && !slices.Contains(known, *typ) {
		c.errs = append(c.errs, field.NotSupported(path, *typ, known))
	}
}

// checkTemplate parses a template, and ignores what it does not find in an empty object.
func (c *stageCheck) checkTemplate(source string, path *field.Path) {
	var execution template.ExecError
	_, err := gotpl.NewRenderer(c.kind.funcs).ToText(source, c.kind.sample)
	if err == nil || errors.As(err, &execution) {
		return
	}
	for inner := errors.Unwrap(err); inner != nil; inner = errors.Unwrap(inner) {
		err = inner
	}
	c.errs = append(c.errs, field.Invalid(path, field.OmitValueType{}, "is no valid template: "+err.Error()))
}
