package devices

import (
	"errors"
	"math"
	"reflect"
	"regexp"
	"strconv"
	"strings"

	"github.com/kwok-dra/kwok-dra/pkg/lifecycle"
)

// Limits of rendering, so that a template that never ends, or yields more than there
// is memory, neither delays nor harms anything else.
//
// Values do not change once they are made, since no function changes its arguments.
// So what a value takes is known when a function makes it. Each call pays for what it
// reads before it is made and for what it yields after that, in bytes, and each round
// of a loop pays too. No clock is looked at: what is refused is the same on a busy
// machine, and in all replicas.
const (
	// valueBudget is for one value: an annotation as large as it may be is read as
	// JSON. renderBudget with budgetPerValue is for all values that are rendered for
	// one object, of which mostPerValues is for all values however many there are.
	// outputBudget with outputPerValue is for what these yield.
	valueBudget                  = 2 << 20
	renderBudget, budgetPerValue = 64 << 20, 256 << 10
	mostPerValues                = 1 << 30
	outputBudget, outputPerValue = 64 << 10, 1 << 10
	// stepCost is for each call, each round of a loop and each comparison in it,
	// elementCost for each element of a list or map besides the bytes of its text.
	stepCost, elementCost = 64, 16
	// deepest is how deep maps and lists may be nested.
	deepest = 100
)

var errTooMuch = errors.New("takes too much time or memory: loops have too many rounds, or values are too large")

// budget is what is left for one rendering, and the output of the value that is
// rendered now.
type budget struct {
	all, value, outputs float64
	output              strings.Builder
}

func (b *budget) pay(cost float64) error {
	b.all -= cost
	b.value -= cost
	if b.all >= 0 && b.value >= 0 { // neither is true for what is no number
		return nil
	}
	return errTooMuch
}

// round is called in each round of a loop. It yields nothing.
func (b *budget) round() (string, error) {
	return "", b.pay(stepCost)
}

// each is called with what a loop goes over, and yields it. A map is sorted before the first
// round.
func (b *budget) each(over any) (any, error) {
	if value := reflect.ValueOf(over); value.Kind() == reflect.Map {
		return over, b.pay(float64(elementCost * value.Len()))
	}
	return over, nil
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
	if left < 0 || depth == 0 {
		return -1
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

// cost is what a call takes at most before it yields something, by its arguments. There
// are as many as the function has to have.
type cost func(arguments []argument) float64

const (
	// growth is how many bytes may become of one.
	growth = 16
	// patternLength is how long a regular expression may be in bytes, patternCost what
	// each of its instructions takes.
	patternLength, patternCost = 1_000, 40
)

func costOfReading(arguments []argument) (total float64) {
	for _, a := range arguments {
		total += weight(a.Value)
	}
	return total
}

func costOfRest(arguments []argument) float64 {
	return float64(len(arguments[0].text())) + costOfReading(arguments[1:])
}

// costOfJSON is for a text, each element of which takes more than it is long.
func costOfJSON(arguments []argument) float64 {
	total := costOfReading(arguments)
	for _, a := range arguments {
		for _, mark := range []string{"[", "{", ":", ","} {
			total += 2 * elementCost * float64(strings.Count(a.text(), mark))
		}
	}
	return total
}

// costOfSplitting is for a separator and, as the last argument, a text.
func costOfSplitting(arguments []argument) float64 {
	parts := 1 + strings.Count(arguments[len(arguments)-1].text(), arguments[0].text())
	return costOfReading(arguments) + 4*elementCost*float64(parts)
}

func costOfCounting(arguments []argument) (total float64) {
	for _, a := range arguments {
		total += elementCost * a.number()
	}
	return total
}

func costOfRepeating(arguments []argument) float64 {
	times := 1 + arguments[0].number() + float64(len(arguments[0].text()))
	return times * max(0, costOfReading(arguments[1:])-elementCost)
}

// costOfIndenting is for a number of blanks, which are made even for no text, and a text.
func costOfIndenting(arguments []argument) float64 {
	lines := 2 + strings.Count(arguments[1].text(), "\n")
	return arguments[0].number()*float64(lines) + costOfReading(arguments)
}

// costOfVersions is for a constraint and a version, of which long ones take much.
func costOfVersions(arguments []argument) float64 {
	total := costOfRest(arguments)
	if total > patternLength {
		return math.Inf(1)
	}
	return total * patternCost
}

func costOfCrossing(arguments []argument) float64 {
	total := 1.0
	for _, a := range arguments {
		total *= 1 + weight(a.Value) - elementCost
	}
	return total
}

// costOfPairs is for a list each element of which is compared with all others, or for factors,
// whose product has the digits of all.
func costOfPairs(arguments []argument) float64 {
	return math.Pow(costOfReading(arguments), 2) / elementCost
}

// costOfYAML is for a value and an indent.
func costOfYAML(arguments []argument) float64 {
	cost := growth * costOfReading(arguments)
	for _, a := range arguments {
		cost *= 1 + 2*a.number()
	}
	return cost
}

// costOfMatching is for a regular expression, the text and what replaces the matches.
func costOfMatching(arguments []argument) float64 {
	pattern, text, rest := arguments[0].text(), arguments[1].text(), arguments[2:]
	if len(pattern) > patternLength {
		return math.Inf(1)
	}
	size := lifecycle.PatternSize(pattern)
	if size > lifecycle.MaxPatternSize {
		return math.Inf(1)
	}
	return float64(size*patternCost) + float64(1+len(text))*(float64(size)+growth+costOfReading(rest))
}

var (
	// verb finds a verb of a format, with what is before its letter.
	verb = regexp.MustCompile(`%[^a-zA-Z%]*`)
	// width finds the widths and precisions of a verb.
	width = regexp.MustCompile(`[0-9]+|\*`)
)

// costOfFormat is for printf: each verb may print all arguments, since it may name
// one, and each element of them as wide as it says.
func costOfFormat(arguments []argument) float64 {
	format, rest := arguments[0].text(), arguments[1:]
	all, widest := costOfReading(rest), 0.0
	elements := 1 + all/elementCost
	for _, a := range rest {
		widest = max(widest, a.number())
	}
	total := growth*float64(len(format)) + all
	for _, found := range verb.FindAllString(format, -1) {
		total += all
		for _, number := range width.FindAllString(found, -1) {
			if number == "*" {
				total += widest * elements
			} else if given, err := strconv.ParseFloat(number, 64); err == nil {
				total += given * elements
			}
		}
	}
	return total
}
