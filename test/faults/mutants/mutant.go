package main

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

const (
	// patches is where the patches are, in the checkout.
	patches     = "test/faults/mutants"
	patchSuffix = ".patch"
)

// mutant is a fault that can be put back.
type mutant struct {
	name  string
	patch string
	// about says what the fault does.
	about string
	// unit is the package of the unit test that fails with the fault, and test its name.
	unit, test string
	// features, if there is any, is a regular expression of the features of the suite that find
	// it. Without, whole seeds are run.
	features string
	// packages are those that the patch changes.
	packages []string
}

// What a patch has before the changes, and where it names a file.
var (
	header  = regexp.MustCompile(`^(\S.*\.)\nUnit test: (\./\S+) (Test\w+)\n(?:Features: (\S.*)\n)?\n`)
	changes = regexp.MustCompile(`(?m)^\+\+\+ b/(\S+)$`)
)

func readMutant(path string) (mutant, error) {
	content, err := os.ReadFile(path)
	if err != nil {
		return mutant{}, fmt.Errorf("read patch: %w", err)
	}
	match := header.FindStringSubmatch(string(content))
	if match == nil {
		return mutant{}, fmt.Errorf("read patch %s: begin it with a sentence that says what the fault does, and a line \"Unit test: PACKAGE TEST\", which \"Features: REGEXP\" may follow", path)
	}
	m := mutant{name: strings.TrimSuffix(filepath.Base(path), patchSuffix), patch: path, about: match[1], unit: match[2], test: match[3], features: match[4]}
	for _, change := range changes.FindAllStringSubmatch(string(content), -1) {
		m.packages = append(m.packages, "./"+filepath.Dir(change[1]))
	}
	m.packages = slices.Compact(m.packages)
	if len(m.packages) == 0 {
		return mutant{}, fmt.Errorf("read patch %s: it changes no file", path)
	}
	return m, nil
}

// arguments have the suite run what finds the fault.
func (m *mutant) arguments() []string {
	if m.features == "" {
		return nil
	}
	return []string{"-features", m.features}
}
