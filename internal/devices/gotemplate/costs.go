package gotemplate

import (
	"math"
	"reflect"
	"regexp"
	"strconv"
	"strings"

	"github.com/kwok-dra/kwok-dra/internal/observe/lifecycle"
)

// callCost returns what a call costs at most before it returns, by its arguments. There are as many
// as the function requires.
type callCost func(arguments []argument) float64

const (
	// growth is how many bytes a function may make of one.
	growth = 16
	// maxPatternLength limits regular expressions, in bytes; patternCost is for each instruction
	// of one.
	maxPatternLength, patternCost = 1_000, 40
)

func costOfReading(arguments []argument) (total float64) {
	for _, a := range arguments {
		total += weightOf(a.Value)
	}
	return total
}

func costOfRest(arguments []argument) float64 {
	return float64(len(arguments[0].stringValue())) + costOfReading(arguments[1:])
}

// costOfJSON is for a text, whose elements weigh more than their text is long.
func costOfJSON(arguments []argument) float64 {
	total := costOfReading(arguments)
	for _, a := range arguments {
		for _, mark := range []string{"[", "{", ":", ","} {
			total += 2 * elementCost * float64(strings.Count(a.stringValue(), mark))
		}
	}
	return total
}

// costOfSplitting is for a separator and a text, which is the last argument.
func costOfSplitting(arguments []argument) float64 {
	parts := 1 + strings.Count(arguments[len(arguments)-1].stringValue(), arguments[0].stringValue())
	return costOfReading(arguments) + 4*elementCost*float64(parts)
}

func costOfCounting(arguments []argument) (total float64) {
	for _, a := range arguments {
		total += elementCost * a.magnitudeOf()
	}
	return total
}

func costOfRepeating(arguments []argument) float64 {
	times := 1 + arguments[0].magnitudeOf() + float64(len(arguments[0].stringValue()))
	return times * max(0, costOfReading(arguments[1:])-elementCost)
}

// costOfIndenting is for a number of blanks, which even an empty text is given, and a text.
func costOfIndenting(arguments []argument) float64 {
	lines := 2 + strings.Count(arguments[1].stringValue(), "\n")
	return arguments[0].magnitudeOf()*float64(lines) + costOfReading(arguments)
}

// costOfVersions is for a constraint and a version. Long ones are refused.
func costOfVersions(arguments []argument) float64 {
	total := costOfRest(arguments)
	if total > maxPatternLength {
		return math.Inf(1)
	}
	return total * patternCost
}

func costOfCrossing(arguments []argument) float64 {
	total := 1.0
	for _, a := range arguments {
		total *= 1 + weightOf(a.Value) - elementCost
	}
	return total
}

// costOfPairs is for a list whose elements are all compared with each other, or for factors, whose
// product has the digits of all of them.
func costOfPairs(arguments []argument) float64 {
	return math.Pow(costOfReading(arguments), 2) / elementCost
}

// costOfYAML is for a value and an indent.
func costOfYAML(arguments []argument) float64 {
	cost := growth * costOfReading(arguments)
	for _, a := range arguments {
		cost *= 1 + 2*a.magnitudeOf()
	}
	return cost
}

// costOfMatching is for a regular expression, a text, and what replaces the matches.
func costOfMatching(arguments []argument) float64 {
	pattern, text, rest := arguments[0].stringValue(), arguments[1].stringValue(), arguments[2:]
	if len(pattern) > maxPatternLength {
		return math.Inf(1)
	}
	size := lifecycle.PatternSize(pattern)
	if size > lifecycle.MaxPatternSize {
		return math.Inf(1)
	}
	return float64(size*patternCost) + float64(1+len(text))*(float64(size)+growth+costOfReading(rest))
}

var (
	// formatVerb matches a verb of a format up to its letter.
	formatVerb = regexp.MustCompile(`%[^a-zA-Z%]*`)
	// verbWidth matches a width or precision of a verb.
	verbWidth = regexp.MustCompile(`[0-9]+|\*`)
)

// costOfFormat is for printf: each verb may name any argument, and print each element of it as wide
// as the verb says.
func costOfFormat(arguments []argument) float64 {
	format, rest := arguments[0].stringValue(), arguments[1:]
	all, widest := costOfReading(rest), 0.0
	elements := 1 + all/elementCost
	for _, a := range rest {
		widest = max(widest, a.magnitudeOf())
	}
	total := growth*float64(len(format)) + all
	for _, found := range formatVerb.FindAllString(format, -1) {
		total += all
		for _, number := range verbWidth.FindAllString(found, -1) {
			if number == "*" {
				total += widest * elements
			} else if given, err := strconv.ParseFloat(number, 64); err == nil {
				total += given * elements
			}
		}
	}
	return total
}

// weightOf returns about how many bytes a value takes. It is infinite above textBudget.
func weightOf(value reflect.Value) float64 {
	left := subtractWeight(textBudget, value, maxDepth)
	if left < 0 {
		return math.Inf(1)
	}
	return float64(textBudget - left)
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
