package gotemplate

import (
	"errors"
	"math"
	"reflect"
	"strings"
)

// A budget bounds what rendering may cost, so that a template which never ends, or makes more than
// there is memory, neither delays nor harms anything else. It is the only such bound. All is paid
// from it in bytes: what a call reads, before it is made; what it returns; each round of a loop;
// and the output.
//
// No function changes its arguments, so a value costs what it weighs when a function returns it.
// Costs do not depend on a clock: what is refused is the same on a busy machine, and in all
// replicas.
const (
	// valueBudget is for one text. It lets an annotation of the largest size be read as JSON.
	valueBudget = 2 << 20
	// rendererBudget and budgetPerText are for all texts of a renderer, of which all budgetPerText
	// are at most maxPerTexts.
	rendererBudget, budgetPerText = 64 << 20, 256 << 10
	maxPerTexts                   = 1 << 30
	// stepCost is for each call, each round of a loop and each comparison in it, elementCost for
	// each element of a list or map besides the bytes of its text.
	stepCost, elementCost = 64, 16
	// outputCost is for each byte of output, which lives on in API objects: a text has at most
	// 73 KiB.
	outputCost = 28
	// maxDepth is how deep maps and lists may be nested.
	maxDepth = 100
)

var errTooMuch = errors.New("takes too much time or memory: loops have too many rounds, or values are too large")

// budget is what is left for the text that is rendered now, and for all texts. It takes the
// output.
type budget struct {
	allTexts, text float64
	output         strings.Builder
}

func (b *budget) pay(cost float64) error {
	b.allTexts -= cost
	b.text -= cost
	if b.allTexts >= 0 && b.text >= 0 { // neither is true for NaN
		return nil
	}
	return errTooMuch
}

// Write pays for output.
func (b *budget) Write(text []byte) (int, error) {
	if err := b.pay(outputCost * float64(len(text))); err != nil {
		return 0, err
	}
	return b.output.Write(text)
}

// payRound pays for the steps of one round of a loop. It prints nothing.
func (b *budget) payRound(steps int) (string, error) {
	return "", b.pay(stepCost * float64(steps))
}

// payRange pays for what a loop does before its first round: it sorts a map.
func (b *budget) payRange(over any) (any, error) {
	if value := reflect.ValueOf(over); value.Kind() == reflect.Map {
		return over, b.pay(float64(elementCost * value.Len()))
	}
	return over, nil
}

// weightOf returns about how many bytes a value takes. It is infinite above valueBudget.
func weightOf(value reflect.Value) float64 {
	left := subtractWeight(valueBudget, value, maxDepth)
	if left < 0 {
		return math.Inf(1)
	}
	return float64(valueBudget - left)
}

// subtractWeight takes the weight of a value off what is left, and stops below zero.
func subtractWeight(left int, value reflect.Value, depth int) int {
	left -= elementCost
	if left < 0 || depth == 0 {
		return -1
	}
	switch value.Kind() {
	case reflect.String:
		return left - value.Len()
	case reflect.Interface, reflect.Pointer:
		return subtractWeight(left+elementCost, value.Elem(), depth)
	case reflect.Slice, reflect.Array:
		for i := 0; i < value.Len() && left >= 0; i++ {
			left = subtractWeight(left, value.Index(i), depth-1)
		}
	case reflect.Map:
		for entries := value.MapRange(); left >= 0 && entries.Next(); {
			left = subtractWeight(subtractWeight(left, entries.Key(), depth-1), entries.Value(), depth-1)
		}
	}
	return left
}
