package build

import (
	"context"
	"io"
	"os"
	"path"
	"path/filepath"

	"golang.org/x/mod/module"
)

// Tests are the tests of a package of a module, which become one program.
type Tests struct {
	// Module is where the package is from. Its go.mod chooses the versions of all else.
	Module module.Version
	// Package is the import path.
	Package string
	// Tags are build tags, separated by commas. Optional.
	Tags string
}

// testsFile is the name of a program of tests.
const testsFile = "e2e.test"

// EnsureTests builds the tests of a package, if the cache lacks them, and returns the
// path of the program.
func EnsureTests(ctx context.Context, t Tests, output io.Writer) (string, error) {
	cache, err := Cache()
	if err != nil {
		return "", err
	}
	if output == nil {
		output = os.Stderr
	}
	wanted := []unit{testsUnit(t)}
	if len(missing(cache, wanted)) > 0 {
		if err := buildMissing(ctx, cache, wanted, output); err != nil {
			return "", err
		}
	}
	return filepath.Join(cache, wanted[0].name, testsFile), nil
}

func testsUnit(t Tests) unit {
	u := unit{
		name:     path.Base(t.Module.Path) + "-" + t.Module.Version + "-" + path.Base(t.Package),
		source:   t.Module,
		packages: []string{t.Package},
		program:  testsFile,
		tests:    true,
		tags:     t.Tags,
		cpu:      240,
	}
	if t.Module.Path == kubernetesModule {
		u.parts = stagingVersion(t.Module.Version)
	}
	return u
}
