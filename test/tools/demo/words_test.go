package main

import (
	"strings"
)

// commands are those of the last words.
func commands(words string) []string {
	var found []string
	for line := range strings.Lines(words) {
		if command, ok := strings.CutPrefix(line, "  "); ok && !strings.HasPrefix(command, " ") {
			found = append(found, strings.TrimSpace(command))
		}
	}
	return found
}
