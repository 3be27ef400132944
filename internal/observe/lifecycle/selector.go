package lifecycle

import (
	"context"
	"errors"
	"fmt"

	celgo "github.com/google/cel-go/cel"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/kwok/pkg/apis/internalversion"
	kwokv1alpha1 "sigs.k8s.io/kwok/pkg/apis/v1alpha1"
	"sigs.k8s.io/kwok/pkg/utils/cel"
	"sigs.k8s.io/kwok/pkg/utils/expression"
)

// Selector is a compiled selector of a KWOK Stage. It matches what the Stage would match: it is built
// from kwok's own expression packages.
type Selector struct {
	name         string
	labels       labels.Selector
	annotations  labels.Selector
	requirements []*expression.Requirement
	programs     []celgo.Program
}

// CompileForNode compiles a selector on Nodes. kwok compiles the selector of a Stage when it first
// meets an object, and takes one that does not compile to match everything; CompileForNode refuses
// it. The path names the selector in errors.
func CompileForNode(selector *kwokv1alpha1.StageSelector, path *field.Path) (*Selector, field.ErrorList) {
	return compileSelector(selector, path, NodeCEL, false)
}

// CompileForPod compiles a selector on Pods, as CompileForNode does on Nodes.
func CompileForPod(selector *kwokv1alpha1.StageSelector, path *field.Path) (*Selector, field.ErrorList) {
	return compileSelector(selector, path, PodCEL, false)
}

// CompileForStage compiles a selector that kwok evaluates, which accepts any jq.
func CompileForStage(selector *kwokv1alpha1.StageSelector, path *field.Path, env *Environment) (*Selector, field.ErrorList) {
	return compileSelector(selector, path, env, true)
}

func compileSelector(selector *kwokv1alpha1.StageSelector, path *field.Path, env *Environment, isEvaluatedByKwok bool) (*Selector, field.ErrorList) {
	compiled := &Selector{
		name:        path.String(),
		labels:      labels.SelectorFromSet(selector.MatchLabels),
		annotations: labels.SelectorFromSet(selector.MatchAnnotations),
	}
	var errs field.ErrorList
	for i, match := range selector.MatchExpressions {
		if match.JQ == nil && match.Key != "" { // the form in older releases of kwok, which converts it in the same way
			match.JQ = &kwokv1alpha1.SelectorJQ{Key: match.Key, Operator: match.Operator, Values: match.Values}
		}
		var source string
		var err error
		switch {
		case match.JQ != nil && match.CEL != nil:
			source, err = match.CEL.Expression, errors.New("give either cel, or jq, or key, operator and values")
		case match.JQ != nil:
			source, err = match.JQ.Key, compiled.addJQ(match.JQ, isEvaluatedByKwok)
		case match.CEL != nil:
			source, err = match.CEL.Expression, compiled.addCEL(match.CEL.Expression, env)
		default:
			err = errors.New("is empty: give cel, or jq, or key, operator and values")
		}
		if err != nil {
			errs = append(errs, field.Invalid(path.Child("matchExpressions").Index(i), source, err.Error()))
		}
	}
	return compiled, errs
}

func (s *Selector) addJQ(jq *kwokv1alpha1.SelectorJQ, isEvaluatedByKwok bool) error {
	source := jq.Key
	if !isEvaluatedByKwok {
		var err error
		if source, err = boundJQ(source); err != nil {
			return err
		}
	}
	requirement, err := expression.NewRequirement(source, internalversion.SelectorOperator(jq.Operator), jq.Values)
	if err != nil {
		return fmt.Errorf("does not compile: %w", err)
	}
	s.requirements = append(s.requirements, requirement)
	return nil
}

func (s *Selector) addCEL(source string, env *Environment) error {
	program, err := env.Program(source)
	if err != nil {
		return fmt.Errorf("does not compile: %w", err)
	}
	// kwok's environment does not know the type of the result. The value for an empty object shows
	// it, if that has what the expression reads.
	value, _, err := program.Eval(map[string]any{"self": env.empty})
	if isTooCostly(err) {
		return fmt.Errorf("does not compile: %w", errCostly)
	}
	if err == nil {
		if _, err := cel.AsBool(value); err != nil {
			return fmt.Errorf("does not compile: gives no bool: %w", err)
		}
	}
	s.programs = append(s.programs, program)
	return nil
}

// Matches reports whether the selector matches the object. A nil selector matches nothing, an empty
// one everything. The error is of an evaluation, such as a CEL expression that reads a field which
// the object lacks.
func (s *Selector) Matches(ctx context.Context, object *Object) (bool, error) {
	if s == nil || !s.labels.Matches(labels.Set(object.GetLabels())) || !s.annotations.Matches(labels.Set(object.GetAnnotations())) {
		return false, nil
	}
	matched, err := s.matchesJQ(ctx, object)
	if matched && err == nil {
		matched, err = s.matchesCEL(ctx, object)
	}
	if err != nil {
		return false, fmt.Errorf("evaluate %s: %w", s.name, err)
	}
	return matched, nil
}

func (s *Selector) matchesJQ(ctx context.Context, object *Object) (bool, error) {
	if len(s.requirements) == 0 {
		return true, nil
	}
	decoded, err := object.Decoded()
	if err != nil {
		return false, err
	}
	within := newStepLimit(ctx)
	for _, requirement := range s.requirements {
		matched, err := requirement.Matches(within, decoded) //nolint:contextcheck // it is within ctx
		if err == nil && within.left < 0 {
			err = errEndless // a jq that was stopped matches nothing, and returns no error
		}
		if err != nil || !matched {
			return false, err
		}
	}
	return true, nil
}

func (s *Selector) matchesCEL(ctx context.Context, object *Object) (bool, error) {
	if len(s.programs) == 0 {
		return true, nil
	}
	within, cancel := context.WithTimeout(ctx, evaluationTimeout)
	defer cancel()
	for _, program := range s.programs {
		value, _, err := program.ContextEval(within, map[string]any{"self": object.Object})
		switch {
		case isTooCostly(err):
			return false, errCostly
		case err != nil && ctx.Err() != nil:
			return false, ctx.Err()
		case err != nil && within.Err() != nil:
			return false, errSlow
		}
		if err != nil {
			return false, fmt.Errorf("%w; guard fields that may be missing with has() or in", err)
		}
		if matched, err := cel.AsBool(value); err != nil || !matched {
			return false, err
		}
	}
	return true, nil
}
