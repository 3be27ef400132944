package lifecycle

import (
	"context"
	"fmt"
	"time"

	resourcev1 "k8s.io/api/resource/v1"
)

// Limits of the evaluation of a selector for an object, so that one without end does
// not delay others. They are counted, not timed: on a busy machine a good selector is
// slow as well. Only what takes thousands of steps is timed too, since a step may
// sort the keys of an object.
const (
	// celCost is a tenth of what Kubernetes lets a selector of devices cost,
	// since a node changes more often: some 10 ms.
	celCost = resourcev1.CELSelectorExpressionMaxCost / 10
	// jqSteps are instructions of jq: some 20 ms, which a Node as large as it may be
	// needs for a loop over all of its annotations.
	jqSteps = 200_000
	// longest is for all expressions of a selector. jq looks at the clock after every
	// jqStepsTimed, except for the first jqStepsUntimed, and CEL after every celRoundsTimed of
	// loops.
	longest                      = 5 * time.Second
	jqStepsUntimed, jqStepsTimed = 1_000, 20
	celRoundsTimed               = 20
)

var (
	errCostly  = fmt.Errorf("costs more than %d steps; look for loops within loops", celCost)
	errEndless = fmt.Errorf("takes more than %d steps or %s; look for a loop without end", jqSteps, longest)
	errSlow    = fmt.Errorf("takes more than %s; look for loops within loops", longest)
)

// steps is a context that is done after some steps of jq, which looks at it
// before each.
type steps struct {
	context.Context
	left     int
	deadline time.Time
}

func newSteps(ctx context.Context) *steps {
	return &steps{ctx, jqSteps, time.Now().Add(longest)}
}

var done = func() <-chan struct{} {
	closed := make(chan struct{})
	close(closed)
	return closed
}()

// Done implements context.Context.
func (s *steps) Done() <-chan struct{} {
	s.left--
	if s.left%jqStepsTimed == 0 && s.left < jqSteps-jqStepsUntimed && time.Now().After(s.deadline) {
		s.left = -1
	}
	if s.left < 0 {
		return done
	}
	return s.Context.Done()
}

// Err implements context.Context.
func (s *steps) Err() error {
	if s.left < 0 {
		return errEndless
	}
	return s.Context.Err()
}
