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
