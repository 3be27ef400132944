package suggest

import (
	"slices"
	"strings"
)

// Part finds the shortest of the known names of which the parts of the given one
// are some, in any order: nvidia-h100 for h100. Parts are separated by hyphens.
func Part(name string, known []string) string {
	found := ""
	for _, candidate := range known {
		if containsAll(parts(candidate), parts(name)) && (found == "" || len(candidate) < len(found)) {
			found = candidate
		}
	}
	return found
}

func parts(name string) []string {
	return strings.FieldsFunc(strings.ToLower(name), func(r rune) bool { return strings.ContainsRune("-_. /", r) })
}

func containsAll(all, some []string) bool {
	return len(some) > 0 && !slices.ContainsFunc(some, func(part string) bool { return !slices.Contains(all, part) })
}
