package devices

import (
	"math"
	"regexp"
	"strconv"
	"strings"

	"github.com/kwok-dra/kwok-dra/pkg/lifecycle"
)

// cost is what a call takes at most before it yields something, by its arguments.
type cost func(arguments []argument) float64

const (
	// growth is how many bytes may become of one.
	growth = 16
	// patternLength is how long a regular expression may be in bytes, patternCost what
	// each of its instructions takes.
	patternLength, patternCost = 1_000, 40
)

func costOfReading(arguments []argument) float64 {
	total := 0.0
	for _, a := range arguments {
		total += weight(a.Value)
	}
	return total
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
	total := costOfReading(arguments)
	if len(arguments) > 0 {
		parts := 1 + strings.Count(arguments[len(arguments)-1].text(), arguments[0].text())
		total += 4 * elementCost * float64(parts)
	}
	return total
}

func costOfCounting(arguments []argument) float64 {
	total := 0.0
	for _, a := range arguments {
		total += elementCost * a.number()
	}
	return total
}

func costOfRepeating(arguments []argument) float64 {
	if len(arguments) == 0 {
		return 0
	}
	times := 1 + arguments[0].number() + float64(len(arguments[0].text()))
	return times * max(0, costOfReading(arguments[1:])-elementCost)
}

func costOfCrossing(arguments []argument) float64 {
	total := 1.0
	for _, a := range arguments {
		total *= 1 + weight(a.Value) - elementCost
	}
	return total
}

// costOfUniq is for a list each element of which is compared with all others.
func costOfUniq(arguments []argument) float64 {
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
	if len(arguments) < 2 {
		return 0
	}
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
// one, and as wide as it says.
func costOfFormat(arguments []argument) float64 {
	if len(arguments) == 0 {
		return 0
	}
	format, rest := arguments[0].text(), arguments[1:]
	all, widest := costOfReading(rest), 0.0
	for _, a := range rest {
		widest = max(widest, a.number())
	}
	total := float64(len(format)) + all
	for _, found := range verb.FindAllString(format, -1) {
		total += all
		for _, number := range width.FindAllString(found, -1) {
			total += widthOf(number, widest)
		}
	}
	return total
}

func widthOf(number string, widest float64) float64 {
	if number == "*" {
		return widest
	}
	given, err := strconv.ParseFloat(strings.TrimLeft(number, "0"), 64)
	if err != nil {
		return 0
	}
	return given
}
