package lifecycle

import (
	"context"
	"fmt"
	"time"

	resourcev1 "k8s.io/api/resource/v1"
)

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

func newStepLimit(ctx context.Context) *stepLimit {
	return &stepLimit{ctx, jqSteps, time.Now().Add(evaluationTimeout)}
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
