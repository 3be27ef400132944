package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/kwok-dra/kwok-dra/test/internal/sidecar"
)

// lacking is the suite with a kwok-dra that does not do something: its specs that need
// this have to fail. Each file of the folder takes one thing away.
func (s suite) lacking(without string) (suite, error) {
	if without == "" {
		return s, nil
	}
	folder := filepath.Join(sidecar.Root(), "test", "others", "manifests", "without")
	entries, err := os.ReadDir(folder)
	if err != nil {
		return s, fmt.Errorf("list what suites may be without: %w", err)
	}
	var names []string
	for _, entry := range entries {
		names = append(names, strings.TrimSuffix(entry.Name(), ".yaml"))
	}
	if !slices.Contains(names, without) {
		return s, fmt.Errorf("read -without %q: want %s", without, strings.Join(names, " or "))
	}
	s.sidecar = append(slices.Clone(s.sidecar), "--config", filepath.Join(folder, without+".yaml"))
	return s, nil
}
