package main

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

const (
	// patches is where the folders of patches are, in the checkout. Each has the name of a program.
	patches     = "test/conformance/mutants"
	patchSuffix = ".patch"
)

// mutant is a fault of a scheduler or an autoscaler.
type mutant struct {
	// program is the name of what has the fault, and name begins with it.
	program, name string
	patch         string
	// about says what the program does.
	about string
	// statements are those that it breaks.
	statements []string
	// restarts says that the program has to be restarted to show the fault.
	restarts bool
}

// header is what a patch has before the changes.
var header = regexp.MustCompile(`^(\S.*\.)\nStatements: ([a-z -]+)\n(Restart: yes\n)?\n--- a/`)

// readMutants reads those below a folder whose names match.
func readMutants(folder string, matches *regexp.Regexp) ([]mutant, error) {
	paths, err := filepath.Glob(filepath.Join(folder, "*", "*"+patchSuffix))
	if err != nil {
		return nil, fmt.Errorf("find patches: %w", err)
	}
	var mutants []mutant
	for _, path := range paths {
		content, err := os.ReadFile(path)
		if err != nil {
			return nil, fmt.Errorf("read patch: %w", err)
		}
		match := header.FindStringSubmatch(string(content))
		if match == nil {
			return nil, fmt.Errorf("read patch %s: begin it with a sentence that says what the program does, a line \"Statements: ID ...\", and perhaps \"Restart: yes\"", path)
		}
		program := filepath.Base(filepath.Dir(path))
		m := mutant{
			program: program, name: program + "/" + strings.TrimSuffix(filepath.Base(path), patchSuffix), patch: path,
			about: match[1], statements: strings.Fields(match[2]), restarts: match[3] != "",
		}
		if matches.MatchString(m.name) {
			mutants = append(mutants, m)
		}
	}
	if len(mutants) == 0 {
		return nil, fmt.Errorf("find patches below %s: none matches %q", folder, matches)
	}
	return mutants, nil
}
