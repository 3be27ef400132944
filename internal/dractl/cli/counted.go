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
