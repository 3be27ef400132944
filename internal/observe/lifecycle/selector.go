package lifecycle

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	celgo "github.com/google/cel-go/cel"
	"github.com/google/cel-go/interpreter"
	"github.com/wzshiming/easycel"
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
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

// CompileSelector compiles a selector on objects of the kind. kwok compiles the selector of a Stage
// when it first meets an object, and takes one that does not compile to match everything;
// CompileSelector refuses it. The path names the selector in errors.
func (e *Environment) CompileSelector(selector *kwokv1alpha1.StageSelector, path *field.Path) (*Selector, field.ErrorList) {
	return e.compileStageSelector(selector, path, false)
}

// CompileForStage compiles a selector that kwok evaluates, which accepts any jq.
func (e *Environment) CompileForStage(selector *kwokv1alpha1.StageSelector, path *field.Path) (*Selector, field.ErrorList) {
	return e.compileStageSelector(selector, path, true)
}

func (e *Environment) compileStageSelector(selector *kwokv1alpha1.StageSelector, path *field.Path, isEvaluatedByKwok bool) (*Selector, field.ErrorList) {
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
			source, err = match.CEL.Expression, compiled.addCEL(match.CEL.Expression, e)
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
	within := &stepLimit{ctx, jqSteps, time.Now().Add(evaluationTimeout)}
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

// Limits of evaluating a selector for an object, so that one without end does not delay others. They
// count steps, not time: on a busy machine a good selector is slow too. What takes thousands of steps
// also has a time limit, since a step may sort the keys of an object.
const (
	// celCost is a tenth of what Kubernetes allows a selector of devices, since a Node changes more
	// often: about 10 ms.
	celCost = resourcev1.CELSelectorExpressionMaxCost / 10
	// jqSteps are instructions of jq: about 20 ms, which is enough to loop over all annotations of
	// a Node of the largest size.
	jqSteps = 200_000
	// evaluationTimeout is for all expressions of a selector. jq reads the clock after every
	// jqStepsTimed, except for the first jqStepsUntimed, and CEL after every celRoundsTimed of
	// loops.
	evaluationTimeout            = 5 * time.Second
	jqStepsUntimed, jqStepsTimed = 1_000, 20
	celRoundsTimed               = 20
)

var (
	errCostly  = fmt.Errorf("costs more than %d steps; look for loops within loops", celCost)
	errEndless = fmt.Errorf("takes more than %d steps or %s; look for a loop without end", jqSteps, evaluationTimeout)
	errSlow    = fmt.Errorf("takes more than %s; look for loops within loops", evaluationTimeout)
)

// stepLimit is a context that is done after jqSteps. jq looks at it before each step.
type stepLimit struct {
	context.Context
	left     int
	deadline time.Time
}

var closedChannel = func() <-chan struct{} {
	closed := make(chan struct{})
	close(closed)
	return closed
}()

// Done implements context.Context.
func (s *stepLimit) Done() <-chan struct{} {
	s.left--
	if s.left%jqStepsTimed == 0 && s.left < jqSteps-jqStepsUntimed && time.Now().After(s.deadline) {
		s.left = -1
	}
	if s.left < 0 {
		return closedChannel
	}
	return s.Context.Done()
}

// Err implements context.Context.
func (s *stepLimit) Err() error {
	if s.left < 0 {
		return errEndless
	}
	return s.Context.Err()
}

// Environment is a CEL environment as kwok sets it up for Stages of a kind.
type Environment struct {
	// empty is an object of the kind, without content.
	empty any
	// setUp takes milliseconds, so it runs once, and only if CEL is used.
	setUp func() (*easycel.Environment, error)
}

// The environments for Nodes and Pods.
var (
	NodeCEL = NewEnvironment(&corev1.Node{})
	PodCEL  = NewEnvironment(&corev1.Pod{})
)

// NewEnvironment makes an Environment for objects like an empty one. It does what kwok's own
// NewEnvironment does, which cannot limit the cost of an evaluation.
func NewEnvironment(empty any) *Environment {
	return &Environment{empty: empty, setUp: sync.OnceValues(func() (*easycel.Environment, error) {
		registry := easycel.NewRegistry("kwok.ext", easycel.WithTagName("json"))
		errs := []error{registry.RegisterVariable("self", empty)}
		for _, conversion := range cel.DefaultConversions {
			errs = append(errs, registry.RegisterConversion(conversion))
		}
		for _, one := range cel.DefaultTypes {
			errs = append(errs, registry.RegisterType(one))
		}
		for name, overloads := range cel.DefaultFuncs {
			for _, overload := range overloads {
				errs = append(errs, registry.RegisterFunction(name, overload))
			}
		}
		for name, overloads := range cel.FuncsToMethods(cel.DefaultFuncs) {
			for _, overload := range overloads {
				errs = append(errs, registry.RegisterMethod(name, overload))
			}
		}
		if err := errors.Join(errs...); err != nil {
			return nil, err
		}
		return easycel.NewEnvironment(celgo.Lib(registry))
	})}
}

// celCaches guards the type caches of the packages that kwok uses for CEL: global maps without a
// lock. Evaluation does not use them.
var celCaches sync.Mutex

// Program compiles an expression of any type.
func (e *Environment) Program(source string) (celgo.Program, error) {
	celCaches.Lock()
	defer celCaches.Unlock()
	environment, err := e.setUp()
	if err != nil {
		return nil, fmt.Errorf("set up CEL: %w", err)
	}
	return environment.Program(source, celgo.CostLimit(celCost), celgo.InterruptCheckFrequency(celRoundsTimed))
}

// isTooCostly reports whether an evaluation was stopped because of its cost.
func isTooCostly(err error) bool {
	var stopped interpreter.EvalCancelledError
	return errors.As(err, &stopped) && stopped.Cause == interpreter.CostLimitExceeded
}
