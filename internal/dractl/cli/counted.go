package cli

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Counted lists kinds with how many objects of each there are.
func Counted(kinds map[string]int) string {
	var all []string
	for _, kind := range slices.Sorted(maps.Keys(kinds)) {
		all = append(all, fmt.Sprintf("%d %s", kinds[kind], kind))
	}
	return strings.Join(all, ", ")
}

// CountWith names a number of things, such as 1 device or 3 devices.
func CountWith(count int, one, several string) string {
	if count == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", count, several)
}
