package build

import (
	"fmt"
	"strings"

	"golang.org/x/mod/modfile"
	"golang.org/x/mod/module"
)

// unreleased are the versions by which a repository requires its own parts: the one that people write, and the one that the go
// command writes.
var unreleased = map[string]bool{"v0.0.0": true, "v0.0.0-00010101000000-000000000000": true}

// scratchModule returns the go.mod of a module that builds source with exactly
// the dependencies that source itself was released with: gomod is the go.mod
// of source. A program cannot be installed straight from a module whose go.mod
// replaces parts by local paths, because those paths exist in its repository only.
//
// parts is the version under which the parts required as v0.0.0 are published,
// as Kubernetes does with its staging modules. Without it, a part below the path of source has the version of source. The other
// locally replaced modules are published under the very version that is required.
func scratchModule(gomod []byte, source module.Version, parts string) ([]byte, error) {
	f, err := modfile.Parse(source.String()+"/go.mod", gomod, nil)
	if err != nil {
		return nil, fmt.Errorf("parse go.mod of %s: %w", source, err)
	}
	local := map[string]bool{}
	for _, replace := range f.Replace {
		local[replace.Old.Path] = modfile.IsDirectoryPath(replace.New.Path)
	}
	versionOf := func(path string) string { return versionOfPart(path, source, parts) }
	scratch := &modfile.File{Syntax: &modfile.FileSyntax{}}
	steps := []func() error{
		func() error { return scratch.AddModuleStmt("scratch") },
		func() error { return addLanguage(scratch, f) },
		func() error { return scratch.AddRequire(source.Path, source.Version) },
		func() error { return addRequires(scratch, f, local, versionOf) },
		func() error { return addReplaces(scratch, f, local) },
	}
	for _, step := range steps {
		if err := step(); err != nil {
			return nil, fmt.Errorf("write scratch module for %s: %w", source, err)
		}
	}
	scratch.SortBlocks()
	scratch.Cleanup()
	return scratch.Format()
}

// addLanguage copies the go version and the godebug settings: they change how
// the compiler and the run time behave, and only those of the main module count.
func addLanguage(scratch, f *modfile.File) error {
	if f.Go != nil {
		if err := scratch.AddGoStmt(f.Go.Version); err != nil {
			return err
		}
	}
	for _, setting := range f.Godebug {
		if err := scratch.AddGodebug(setting.Key, setting.Value); err != nil {
			return err
		}
	}
	return nil
}

// versionOfPart is the version under which a part is published, or "".
func versionOfPart(path string, source module.Version, parts string) string {
	if parts == "" && strings.HasPrefix(path, source.Path+"/") {
		return source.Version
	}
	return parts
}

func addRequires(scratch, f *modfile.File, local map[string]bool, versionOf func(path string) string) error {
	for _, require := range f.Require {
		path, version := require.Mod.Path, require.Mod.Version
		if !local[path] || !unreleased[version] {
			scratch.AddNewRequire(path, version, require.Indirect)
			continue
		}
		parts := versionOf(path)
		if parts == "" {
			return fmt.Errorf("require %s: it is unreleased", path)
		}
		scratch.AddNewRequire(path, parts, require.Indirect)
		// The other modules still ask for v0.0.0, which nobody publishes.
		if err := scratch.AddReplace(path, "", path, parts); err != nil {
			return err
		}
	}
	return nil
}

func addReplaces(scratch, f *modfile.File, local map[string]bool) error {
	for _, replace := range f.Replace {
		if local[replace.Old.Path] {
			continue
		}
		if err := scratch.AddReplace(replace.Old.Path, replace.Old.Version, replace.New.Path, replace.New.Version); err != nil {
			return err
		}
	}
	return nil
}

// stagingVersion is the version of Kubernetes' staging modules that belongs to
// a Kubernetes release: v0.36.3 for v1.36.3.
func stagingVersion(kubernetes string) string {
	return "v0." + strings.TrimPrefix(kubernetes, "v1.")
}
