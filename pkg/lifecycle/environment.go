package lifecycle

import (
	"errors"
	"fmt"
	"sync"

	celgo "github.com/google/cel-go/cel"
	"github.com/google/cel-go/interpreter"
	"github.com/wzshiming/easycel"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/kwok/pkg/utils/cel"
)

// Environment is a CEL environment as kwok sets it up for Stages of a kind.
type Environment struct {
	// empty is an object of the kind.
	empty any
	// setUp takes milliseconds, so it is done once and only if CEL is used.
	setUp func() (*easycel.Environment, error)
}

// The environments for Nodes and Pods.
var (
	NodeCEL = NewEnvironment(&corev1.Node{})
	PodCEL  = NewEnvironment(&corev1.Pod{})
)

// NewEnvironment does for objects like an empty one what kwok's own NewEnvironment
// does. That one knows no limits of what an evaluation may cost.
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
		errs = append(errs, register(cel.DefaultFuncs, registry.RegisterFunction),
			register(cel.FuncsToMethods(cel.DefaultFuncs), registry.RegisterMethod))
		if err := errors.Join(errs...); err != nil {
			return nil, err
		}
		return easycel.NewEnvironment(celgo.Lib(registry))
	})}
}

func register(functions map[string][]any, register func(string, any) error) error {
	var errs []error
	for name, overloads := range functions {
		for _, overload := range overloads {
			errs = append(errs, register(name, overload))
		}
	}
	return errors.Join(errs...)
}

// compiling guards the type caches of the packages that kwok takes for CEL, which
// are global maps without a lock. Evaluation does not use them.
var compiling sync.Mutex

// Program compiles an expression of any type.
func (e *Environment) Program(source string) (celgo.Program, error) {
	compiling.Lock()
	defer compiling.Unlock()
	environment, err := e.setUp()
	if err != nil {
		return nil, fmt.Errorf("set up CEL: %w", err)
	}
	return environment.Program(source, celgo.CostLimit(celCost), celgo.InterruptCheckFrequency(celRoundsTimed))
}

// compile compiles an expression that gives a bool.
func (e *Environment) compile(source string) (celgo.Program, error) {
	program, err := e.Program(source)
	if err != nil {
		return nil, err
	}
	// kwok's environment does not know the type of the result. Where an empty object
	// has what the expression reads, its value does.
	value, _, err := program.Eval(map[string]any{"self": e.empty})
	if tooCostly(err) {
		return nil, errCostly
	}
	if err == nil {
		if _, err := cel.AsBool(value); err != nil {
			return nil, fmt.Errorf("gives no bool: %w", err)
		}
	}
	return program, nil
}

// tooCostly reports whether an evaluation was stopped, since it cost too much.
func tooCostly(err error) bool {
	var stopped interpreter.EvalCancelledError
	return errors.As(err, &stopped) && stopped.Cause == interpreter.CostLimitExceeded
}
