package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/mod/modfile"
	"golang.org/x/mod/module"

	"github.com/kwok-dra/kwok-dra/test/cluster/build"
	"github.com/kwok-dra/kwok-dra/test/cluster/gomod"
	"github.com/kwok-dra/kwok-dra/test/internal/sidecar"
)

const ginkgoModule = "github.com/onsi/ginkgo/v2"

// inParallel returns how Ginkgo's own program runs several processes of a suite, up to the path of the suite's.
// Both have to have the same version.
func (s *suite) inParallel(ctx context.Context, program string) ([]string, error) {
	source, err := gomod.Download(ctx, sidecar.Root(), s.tests.Module.String())
	if err != nil {
		return nil, err
	}
	version, err := requiredVersion(filepath.Join(source.Dir, "go.mod"), ginkgoModule)
	if err != nil {
		return nil, err
	}
	ginkgo, err := build.EnsureCommand(ctx, version, ginkgoModule+"/ginkgo", os.Stderr)
	return []string{ginkgo, fmt.Sprintf("-procs=%d", s.parallel), program}, err
}

// requiredVersion returns the version of a module that a go.mod requires.
func requiredVersion(file, path string) (module.Version, error) {
	content, err := os.ReadFile(file)
	if err != nil {
		return module.Version{}, fmt.Errorf("read what a suite requires: %w", err)
	}
	parsed, err := modfile.ParseLax(file, content, nil)
	if err != nil {
		return module.Version{}, fmt.Errorf("parse what a suite requires: %w", err)
	}
	for _, required := range parsed.Require {
		if required.Mod.Path == path {
			return required.Mod, nil
		}
	}
	return module.Version{}, fmt.Errorf("read %s: it requires no %s", file, path)
}
