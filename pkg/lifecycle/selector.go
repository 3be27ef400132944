package lifecycle

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	celgo "github.com/google/cel-go/cel"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/kwok/pkg/apis/internalversion"
	kwokv1alpha1 "sigs.k8s.io/kwok/pkg/apis/v1alpha1"
	"sigs.k8s.io/kwok/pkg/utils/cel"
	"sigs.k8s.io/kwok/pkg/utils/expression"
)

// Selector is a compiled selector of a KWOK Stage. It matches what the Stage
// would match, since it is built from kwok's own expression packages.
type Selector struct {
	name         string
	labels       labels.Selector
	annotations  labels.Selector
	requirements []*expression.Requirement
	programs     []celgo.Program
}

// CompileForNode compiles a selector on Nodes. kwok itself compiles a Stage's
// selector when it first meets an object, and takes one that does not compile
// as matching everything ever after; here it is refused when it is read. The
// path names the selector in errors.
func CompileForNode(selector *kwokv1alpha1.StageSelector, path *field.Path) (*Selector, field.ErrorList) {
	return compile(selector, path, nodeCEL)
}

// CompileForPod compiles a selector on Pods, as CompileForNode does on Nodes.
func CompileForPod(selector *kwokv1alpha1.StageSelector, path *field.Path) (*Selector, field.ErrorList) {
	return compile(selector, path, podCEL)
}

func compile(selector *kwokv1alpha1.StageSelector, path *field.Path, env *environment) (*Selector, field.ErrorList) {
	compiled := &Selector{
		name:        path.String(),
		labels:      labels.SelectorFromSet(selector.MatchLabels),
		annotations: labels.SelectorFromSet(selector.MatchAnnotations),
	}
	var errs field.ErrorList
	for i, match := range selector.MatchExpressions {
		if err := compiled.add(match, env); err != nil {
			errs = append(errs, field.Invalid(path.Child("matchExpressions").Index(i), describe(match), err.Error()))
		}
	}
	return compiled, errs
}

// add compiles one expression. The flat form is the jq form of older kwok
// releases; kwok converts it in the same way.
func (s *Selector) add(match kwokv1alpha1.MatchExpression, env *environment) error {
	jq := match.JQ
	if jq == nil && match.Key != "" {
		jq = &kwokv1alpha1.SelectorJQ{Key: match.Key, Operator: match.Operator, Values: match.Values}
	}
	switch {
	case jq != nil && match.CEL != nil:
		return fmt.Errorf("give either cel, or jq, or key, operator and values")
	case jq != nil:
		requirement, err := expression.NewRequirement(jq.Key, internalversion.SelectorOperator(jq.Operator), jq.Values)
		if err != nil {
			return fmt.Errorf("does not compile: %w", err)
		}
		s.requirements = append(s.requirements, requirement)
	case match.CEL != nil:
		program, err := env.compile(match.CEL.Expression)
		if err != nil {
			return fmt.Errorf("does not compile: %w", err)
		}
		s.programs = append(s.programs, program)
	default:
		return fmt.Errorf("is empty: give cel, or jq, or key, operator and values")
	}
	return nil
}

func describe(match kwokv1alpha1.MatchExpression) string {
	switch {
	case match.CEL != nil:
		return match.CEL.Expression
	case match.JQ != nil:
		return match.JQ.Key
	}
	return match.Key
}

// environment is a CEL environment as kwok sets it up for Stages of a kind.
// Making one takes milliseconds, so it is made once and only if CEL is used.
type environment struct {
	// empty is an object of the kind.
	empty any
	setUp func() (*cel.Environment, error)
}

var (
	nodeCEL = newEnvironment(&corev1.Node{})
	podCEL  = newEnvironment(&corev1.Pod{})
)

func newEnvironment(empty any) *environment {
	return &environment{empty: empty, setUp: sync.OnceValues(func() (*cel.Environment, error) {
		return cel.NewEnvironment(cel.EnvironmentConfig{
			Types:       slices.Clone(cel.DefaultTypes),
			Conversions: slices.Clone(cel.DefaultConversions),
			Funcs:       maps.Clone(cel.DefaultFuncs),
			Methods:     maps.Clone(cel.FuncsToMethods(cel.DefaultFuncs)),
			Vars:        map[string]any{"self": empty},
		})
	})}
}

// compiling guards the type caches of kwok's CEL package, which are global maps
// without a lock. Evaluation does not use them.
var compiling sync.Mutex

// program compiles an expression of any type.
func (e *environment) program(source string) (celgo.Program, error) {
	compiling.Lock()
	defer compiling.Unlock()
	environment, err := e.setUp()
	if err != nil {
		return nil, fmt.Errorf("set up CEL: %w", err)
	}
	return environment.Compile(source)
}

// compile compiles an expression that gives a bool.
func (e *environment) compile(source string) (celgo.Program, error) {
	program, err := e.program(source)
	if err != nil {
		return nil, err
	}
	// kwok's environment does not tell the type of the result. Where an empty object
	// has what the expression reads, its value does.
	if value, _, err := program.Eval(map[string]any{"self": e.empty}); err == nil {
		if _, err := cel.AsBool(value); err != nil {
			return nil, fmt.Errorf("gives no bool: %w", err)
		}
	}
	return program, nil
}

// jqLimit is how long jq may take for an object. There are programs without end.
const jqLimit = 2 * time.Second

var errEndless = fmt.Errorf("takes longer than %s; look for a loop without end", jqLimit)

// Matches tells whether the selector matches the object. A nil selector matches
// nothing, an empty one everything. An error is one of evaluation, for example
// a CEL expression that reads a field which the object does not have.
func (s *Selector) Matches(ctx context.Context, object *Object) (bool, error) {
	if s == nil || !s.labels.Matches(labels.Set(object.labels)) || !s.annotations.Matches(labels.Set(object.annotations)) {
		return false, nil
	}
	matched, err := s.matchesJQ(ctx, object)
	if err != nil || !matched {
		return false, err
	}
	return s.matchesCEL(ctx, object)
}

func (s *Selector) matchesJQ(ctx context.Context, object *Object) (bool, error) {
	if len(s.requirements) == 0 {
		return true, nil
	}
	decoded, err := object.Decoded()
	if err != nil {
		return false, err
	}
	limited, cancel := context.WithTimeout(ctx, jqLimit)
	defer cancel()
	for _, requirement := range s.requirements {
		matched, err := requirement.Matches(limited, decoded)
		if err == nil && limited.Err() != nil && ctx.Err() == nil {
			err = errEndless // jq that is stopped matches nothing, and says nothing
		}
		if err != nil {
			return false, fmt.Errorf("evaluate %s: %w", s.name, err)
		}
		if !matched {
			return false, nil
		}
	}
	return true, nil
}

func (s *Selector) matchesCEL(ctx context.Context, object *Object) (bool, error) {
	for _, program := range s.programs {
		value, _, err := program.ContextEval(ctx, map[string]any{"self": object.typed})
		if err != nil {
			return false, fmt.Errorf("evaluate %s: %w; guard fields that may be missing with has() or in", s.name, err)
		}
		matched, err := cel.AsBool(value)
		if err != nil {
			return false, fmt.Errorf("evaluate %s: %w", s.name, err)
		}
		if !matched {
			return false, nil
		}
	}
	return true, nil
}
