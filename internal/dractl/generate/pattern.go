package generate

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// escapeTemplate returns a text that stands for itself in a template.
func escapeTemplate(text string) string {
	return strings.ReplaceAll(text, "{{", `{{ "{{" }}`)
}

// indexTemplate returns a template of .Index that yields the values one by one: what they
// have in common, and between it a number that follows from .Index, or one of a
// list.
func indexTemplate(values []string) string {
	if !slices.ContainsFunc(values, func(value string) bool { return value != values[0] }) {
		return escapeTemplate(values[0])
	}
	before, after := commonEnds(values, isDigit)
	if action := countExpression(withoutEnds(values, before, after)); action != "" {
		return escapeTemplate(before) + "{{ " + action + " }}" + escapeTemplate(after)
	}
	before, after = commonEnds(values, func(r rune) bool { return isDigit(r) || r >= 'a' && r <= 'f' || r >= 'A' && r <= 'F' })
	quoted := withoutEnds(values, before, after)
	for i, value := range quoted {
		quoted[i] = strconv.Quote(value)
	}
	return escapeTemplate(before) + "{{ index (list " + strings.Join(quoted, " ") + ") .Index }}" + escapeTemplate(after)
}

// withoutEnds is what is left of values without their ends.
func withoutEnds(values []string, before, after string) []string {
	middle := make([]string, len(values))
	for i, value := range values {
		middle[i] = value[len(before) : len(value)-len(after)]
	}
	return middle
}

// countExpression returns an expression of .Index that yields the numbers, or empty.
func countExpression(values []string) string {
	numbers := make([]int, len(values))
	for i, value := range values {
		number, err := strconv.Atoi(value)
		if err != nil || strconv.Itoa(number) != value {
			return ""
		}
		numbers[i] = number
	}
	follows := func(of func(index int) int) bool {
		for i, number := range numbers {
			if of(i) != number {
				return false
			}
		}
		return true
	}
	first, by := numbers[0], numbers[1]-numbers[0]
	switch {
	case follows(func(i int) int { return i }):
		return ".Index"
	case follows(func(i int) int { return first + i }):
		return fmt.Sprintf("add %d .Index", first)
	case by != 0 && len(numbers) > 2 && follows(func(i int) int { return first + by*i }):
		return fmt.Sprintf("add %d (mul %d .Index)", first, by)
	}
	for k := 2; k < len(numbers); k++ {
		switch {
		case follows(func(i int) int { return i / k }):
			return fmt.Sprintf("div .Index %d", k)
		case follows(func(i int) int { return i % k }):
			return fmt.Sprintf("mod .Index %d", k)
		}
	}
	return ""
}

// commonEnds returns what all values begin and end with. They do not overlap, and do
// not cut through a number or a character.
func commonEnds(values []string, isPart func(rune) bool) (before, after string) {
	before, after = values[0], values[0]
	shortest := len(values[0])
	for _, value := range values[1:] {
		for !strings.HasPrefix(value, before) {
			before = before[:len(before)-1]
		}
		for !strings.HasSuffix(value, after) {
			after = after[1:]
		}
		shortest = min(shortest, len(value))
	}
	before = strings.TrimRightFunc(strings.ToValidUTF8(before, ""), isPart)
	after = strings.TrimLeftFunc(strings.ToValidUTF8(after, ""), isPart)
	if len(before)+len(after) > shortest {
		after = ""
	}
	return before, after
}

func isDigit(r rune) bool { return r >= '0' && r <= '9' }

// nameDevices returns the name of a group of devices, which is a stem or a template, and a count unless there
// is only one device.
func nameDevices(all []string) (string, *int32) {
	if len(all) == 1 {
		return escapeTemplate(all[0]), nil
	}
	count := int32(len(all))
	stem, numbered := strings.CutSuffix(all[0], "-0")
	for i, name := range all {
		numbered = numbered && name == stem+"-"+strconv.Itoa(i)
	}
	if numbered {
		return escapeTemplate(stem), &count
	}
	return indexTemplate(all), &count
}
