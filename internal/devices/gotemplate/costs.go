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

type argument struct {
	value reflect.Value
	// text is empty for other values than strings.
	text string
	// magnitude is the absolute value of an integer, and 0 for other values.
	magnitude float64
}

const (
	// growth is how many bytes a function may make of one.
	growth = 16
	// maxPatternLength limits regular expressions, in bytes; patternCost is for each instruction
	// of one.
	maxPatternLength, patternCost = 1_000, 40
)

var (
	// formatVerb matches a verb of a format up to its letter.
	formatVerb = regexp.MustCompile(`%[^a-zA-Z%]*`)
	// verbWidth matches a width or precision of a verb.
	verbWidth = regexp.MustCompile(`[0-9]+|\*`)
)

// functionCosts has the functions that templates may call, with what a call costs, or nil for those
// that cost nothing. None changes its arguments, and all return text, numbers, bools, lists and
// maps.
var functionCosts = func() map[string]callCost {
	all := map[string]callCost{}
	for _, group := range []struct {
		names string
		cost  callCost
	}{
		// Of Go templates.
		{`and eq ge gt index le len lt ne not or`, nil},
		// They return a part of their arguments, or little, and read nothing long.
		{`coalesce default dig empty fail first get hasKey kindIs kindOf last mustFirst mustLast ternary typeIs typeOf`, nil},
		// They read all but a list that comes first.
		{`mustSlice slice typeIsLike`, func(arguments []argument) float64 {
			return float64(len(arguments[0].text)) + costOfReading(arguments[1:])
		}},
		// They read their arguments, and return as much.
		{`Quote abbrev abbrevboth add add1 add1f addf adler32sum all any append atoi b32dec b32enc b64dec b64enc base
		biggest camelcase cat ceil clean compact concat contains deepEqual dict dir div divf ext float64 floor has
		hasPrefix hasSuffix html initial initials int int64 isAbs js kebabcase keys list lower max maxf min minf mod
		mul mustAppend mustCompact mustHas mustInitial mustPrepend mustRest mustReverse mustToJson
		mustToPrettyJson mustToRawJson nospace omit pick pluck plural prepend print println quote regexQuoteMeta rest
		reverse sha1sum sha256sum sha512sum snakecase sortAlpha squote sub subf substr swapcase title
		toDecimal toJson toPrettyJson toRawJson toString toStrings trim trimPrefix trimSuffix trunc tuple untitle
		upper urlJoin urlParse urlquery uuid values wrap`, costOfReading},
		// They make a text into elements, which weigh more than their text is long.
		{`fromJson mustFromJson`, func(arguments []argument) float64 {
			total := costOfReading(arguments)
			for _, mark := range []string{"[", "{", ":", ","} {
				total += 2 * elementCost * float64(strings.Count(arguments[0].text, mark))
			}
			return total
		}},
		// They split a text, the last argument, by a separator.
		{`split splitList splitn`, func(arguments []argument) float64 {
			parts := 1 + strings.Count(arguments[len(arguments)-1].text, arguments[0].text)
			return costOfReading(arguments) + 4*elementCost*float64(parts)
		}},
		// They may process each argument for each byte of others.
		{`mustWithout replace trimAll trimall without wrapWith`, func(arguments []argument) float64 {
			total := 1.0
			for _, a := range arguments {
				total *= 1 + weightOf(a.value) - elementCost
			}
			return total
		}},
		// Their arguments say how many elements they return.
		{`seq until untilStep`, func(arguments []argument) (total float64) {
			for _, a := range arguments {
				total += elementCost * a.magnitude
			}
			return total
		}},
		// They process the other arguments as often as the first one says, or for its length.
		{`join repeat`, func(arguments []argument) float64 {
			times := 1 + arguments[0].magnitude + float64(len(arguments[0].text))
			return times * max(0, costOfReading(arguments[1:])-elementCost)
		}},
		// They put a number of blanks before each line of a text, even of an empty one.
		{`indent nindent`, func(arguments []argument) float64 {
			lines := 2 + strings.Count(arguments[1].text, "\n")
			return arguments[0].magnitude*float64(lines) + costOfReading(arguments)
		}},
		{`mustRegexFind mustRegexFindAll mustRegexMatch mustRegexReplaceAll mustRegexReplaceAllLiteral mustRegexSplit
		regexFind regexFindAll regexMatch regexReplaceAll regexReplaceAllLiteral regexSplit`, func(arguments []argument) float64 {
			pattern, text, replacement := arguments[0].text, arguments[1].text, arguments[2:]
			if len(pattern) > maxPatternLength {
				return math.Inf(1)
			}
			size := lifecycle.PatternSize(pattern)
			if size > lifecycle.MaxPatternSize {
				return math.Inf(1)
			}
			return float64(size*patternCost) + float64(1+len(text))*(float64(size)+growth+costOfReading(replacement))
		}},
		// Each verb may name any argument, and print each element of it as wide as the verb says.
		{`printf`, func(arguments []argument) float64 {
			format, rest := arguments[0].text, arguments[1:]
			all, widest := costOfReading(rest), 0.0
			elements := 1 + all/elementCost
			for _, a := range rest {
				widest = max(widest, a.magnitude)
			}
			total := growth*float64(len(format)) + all
			for _, verb := range formatVerb.FindAllString(format, -1) {
				total += all
				for _, number := range verbWidth.FindAllString(verb, -1) {
					if number == "*" {
						total += widest * elements
					} else if width, err := strconv.ParseFloat(number, 64); err == nil {
						total += width * elements
					}
				}
			}
			return total
		}},
		// It takes a value and an indent.
		{`YAML`, func(arguments []argument) float64 {
			cost := growth * costOfReading(arguments)
			for _, a := range arguments {
				cost *= 1 + 2*a.magnitude
			}
			return cost
		}},
		// It takes a constraint and a version. Long ones are refused.
		{`semverCompare`, func(arguments []argument) float64 {
			total := float64(len(arguments[0].text)) + weightOf(arguments[1].value)
			if total > maxPatternLength {
				return math.Inf(1)
			}
			return total * patternCost
		}},
		// They compare all elements of a list with each other, or multiply factors, whose product has
		// the digits of all.
		{`mulf mustUniq uniq`, func(arguments []argument) float64 {
			return math.Pow(costOfReading(arguments), 2) / elementCost
		}},
	} {
		for name := range strings.FieldsSeq(group.names) {
			all[name] = group.cost
		}
	}
	return all
}()

func costOfReading(arguments []argument) (total float64) {
	for _, a := range arguments {
		total += weightOf(a.value)
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
