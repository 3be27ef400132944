package main

import (
	"fmt"
	"os"
	"regexp"
)

// patchHeader is what a patch has before the changes.
var patchHeader = regexp.MustCompile(`(?s)^\S.*\.\nProgram: (\S+)\n\n?--- a/`)

// readPatchedProgram reads which program of Kubernetes a patch is for.
func readPatchedProgram(path string) (string, error) {
	content, err := os.ReadFile(path)
	if err != nil {
		return "", fmt.Errorf("read patch: %w", err)
	}
	match := patchHeader.FindSubmatch(content)
	if match == nil {
		return "", fmt.Errorf("read patch %s: begin it with sentences that say what the program does, and a line \"Program: kube-scheduler\"", path)
	}
	return string(match[1]), nil
}
