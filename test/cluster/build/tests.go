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
	return ensureOne(ctx, testsUnit(t), output)
}

// EnsureCommand builds a command of a module, if the cache lacks it, and returns the path
// of the program. The go.mod of the module chooses the versions of all else.
func EnsureCommand(ctx context.Context, source module.Version, command string, output io.Writer) (string, error) {
	return ensureOne(ctx, commandUnit(source, command), output)
}

func ensureOne(ctx context.Context, u unit, output io.Writer) (string, error) {
	cache, err := Cache()
	if err != nil {
		return "", err
	}
	if output == nil {
		output = os.Stderr
	}
	wanted := []unit{u}
	if len(missingUnits(cache, wanted)) > 0 {
		if err := buildMissing(ctx, cache, wanted, output); err != nil {
			return "", err
		}
	}
	return filepath.Join(cache, u.name, u.program), nil
}

func testsUnit(t Tests) unit {
	u := commandUnit(t.Module, t.Package)
	u.program, u.tests, u.tags = testsFile, true, t.Tags
	return u
}

func commandUnit(source module.Version, command string) unit {
	program := baseName(command)
	u := unit{
		name:     baseName(source.Path) + "-" + source.Version + "-" + program,
		source:   source,
		packages: []string{command},
		program:  program,
		others:   true,
		cpu:      240,
	}
	if source.Path == kubernetesModule {
		u.parts = stagingVersion(source.Version)
		u.cpu = 600
	}
	return u
}

// baseName is the last element of a path that does not say the major version.
func baseName(importPath string) string {
	prefix, _, ok := module.SplitPathVersion(importPath)
	if !ok {
		prefix = importPath
	}
	return path.Base(prefix)
}
