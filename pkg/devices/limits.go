package devices

import (
	"errors"
	"math"
	"reflect"
	"strings"
	"time"
)

// Limits of rendering, so that a template that never ends, or yields more than there
// is memory, neither delays nor harms anything else.
//
// Values do not change once they are made, since no function changes its arguments.
// So what a value takes is known when a function makes it. Each call pays for what it
// reads before it is made and for what it yields after that, in bytes, and each round
// of a loop pays too.
const (
	// valueBudget is for one value: an annotation as large as it may be is read as
	// JSON. renderBudget with budgetPerValue is for all values that are rendered for
	// one object, outputBudget with outputPerValue for what these yield.
	valueBudget                  = 2 << 20
	renderBudget, budgetPerValue = 64 << 20, 256 << 10
	outputBudget, outputPerValue = 64 << 10, 1 << 10
	// stepCost is for each call and each round, elementCost for each element of a
	// list or map besides the bytes of its text.
	stepCost, elementCost = 64, 16
	// renderTime and timePerValue are for what costs no memory, such as comparisons.
	// The clock is looked at after every stepsUntimed.
	renderTime, timePerValue, stepsUntimed = 10 * time.Second, time.Millisecond, 256
	// deepest is how deep maps and lists may be nested.
	deepest = 100
)

var errTooMuch = errors.New("takes too much time or memory: loops have too many rounds, or values are too large")

// budget is what is left for one rendering, and the output of the value that is
// rendered now.
type budget struct {
	all, value, outputs float64
	steps               int
	deadline            time.Time
	output              strings.Builder
}

func newBudget(values int) budget {
	return budget{
		all:      renderBudget + float64(values)*budgetPerValue,
		outputs:  outputBudget + float64(values)*outputPerValue,
		deadline: time.Now().Add(renderTime + time.Duration(values)*timePerValue),
	}
}

// next begins the next value.
func (b *budget) next() {
	b.value = valueBudget
	b.output.Reset()
}

func (b *budget) pay(cost float64) error {
	b.all -= cost
	b.value -= cost
	b.steps++
	left := b.all >= 0 && b.value >= 0 // false for what is no number, too
	if !left || b.steps%stepsUntimed == 0 && time.Now().After(b.deadline) {
		return errTooMuch
	}
	return nil
}

// round is called in each round of a loop. It yields nothing.
func (b *budget) round() (string, error) {
	return "", b.pay(stepCost)
}

// Write takes output.
func (b *budget) Write(text []byte) (int, error) {
	b.outputs -= float64(len(text))
	if b.outputs < 0 {
		return 0, errTooMuch
	}
	return b.output.Write(text)
}

// weight is how many bytes a value takes, about. It is endless for more than a value
// may take.
func weight(value reflect.Value) float64 {
	left := lighten(valueBudget, value, deepest)
	if left < 0 {
		return math.Inf(1)
	}
	return float64(valueBudget - left)
}

// lighten takes the weight of a value off what is left, and stops below zero.
func lighten(left int, value reflect.Value, depth int) int {
	left -= elementCost
	switch {
	case left < 0 || depth == 0:
		return -1
	case !value.IsValid():
		return left
	}
	switch value.Kind() {
	case reflect.String:
		return left - value.Len()
	case reflect.Interface, reflect.Pointer:
		return lighten(left+elementCost, value.Elem(), depth)
	case reflect.Slice, reflect.Array:
		for i := 0; i < value.Len() && left >= 0; i++ {
			left = lighten(left, value.Index(i), depth-1)
		}
	case reflect.Map:
		for entries := value.MapRange(); left >= 0 && entries.Next(); {
			left = lighten(lighten(left, entries.Key(), depth-1), entries.Value(), depth-1)
		}
	}
	return left
}
