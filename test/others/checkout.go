package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"strings"

	"golang.org/x/mod/modfile"
	"golang.org/x/mod/module"

	"github.com/kwok-dra/kwok-dra/test/cluster/build"
)

// An origin is a project that publishes no module which has the suite. Who wants to run it
// names a checkout.
type origin struct {
	// module is the path in the go.mod, which is in the folder, "." for the top.
	module, folder string
	// url is what to clone, and commit one on which the suite has passed.
	url, commit string
}

// advice says how to run a suite that was skipped for want of a checkout.
func (o *origin) advice(suite string) string {
	dir := "../" + path.Base(o.url)
	return fmt.Sprintf(`since no module of it is published; it runs from a checkout:
  git clone %s %s && git -C %s checkout %s
  SRC=%s make test-others SUITE=%s`, o.url, dir, dir, o.commit, dir, suite)
}

// read looks at a checkout, and changes nothing there.
func (o *origin) read(ctx context.Context, dir string) (build.Checkout, error) {
	file := filepath.Join(dir, o.folder, "go.mod")
	content, err := os.ReadFile(file)
	if err != nil {
		return build.Checkout{}, fmt.Errorf("find a checkout of %s in %s: %w", o.url, dir, err)
	}
	if got := modfile.ModulePath(content); got != o.module {
		return build.Checkout{}, fmt.Errorf("find a checkout of %s in %s: go.mod is of module %s, want %s", o.url, dir, got, o.module)
	}
	// A release has its name, and everything else its commit.
	cmd := exec.CommandContext(ctx, "git", "-C", dir, "describe", "--always", "--dirty", "--abbrev=12", "--tags", "--match="+o.commit)
	// Else it would write what it has found out about the files.
	cmd.Env = append(os.Environ(), "GIT_OPTIONAL_LOCKS=0")
	said, err := cmd.Output()
	if err != nil {
		if exit, ok := errors.AsType[*exec.ExitError](err); ok {
			err = fmt.Errorf("%w: %s", err, strings.TrimSpace(string(exit.Stderr)))
		}
		return build.Checkout{}, fmt.Errorf("find the commit of the checkout %s: %w", dir, err)
	}
	commit := strings.TrimSpace(string(said))
	return build.Checkout{
		Module:  module.Version{Path: o.module, Version: commit},
		Dir:     filepath.Join(dir, o.folder),
		Changed: strings.HasSuffix(commit, "-dirty"),
	}, nil
}

// selection is what the user wants to run: the suites of a name, and from which checkout.
type selection struct{ name, source string }

// suites are the chosen ones, each with its checkout.
func (s selection) suites(ctx context.Context) ([]suite, error) {
	chosen, err := choose(s.name)
	if err != nil || s.source == "" {
		return chosen, err
	}
	if s.name == "" {
		return nil, fmt.Errorf("read SRC=%s: want SUITE too, of which it is the checkout: one of %s", s.source, strings.Join(unpublished(), ", "))
	}
	for i := range chosen {
		if chosen[i].origin == nil {
			return nil, fmt.Errorf("read SRC=%s: suite %s needs no checkout, those that do are %s", s.source, chosen[i].name, strings.Join(unpublished(), ", "))
		}
		if chosen[i].checkout, err = chosen[i].origin.read(ctx, s.source); err != nil {
			return nil, err
		}
	}
	return chosen, nil
}

// unpublished names the suites that need a checkout.
func unpublished() []string {
	var all []string
	for _, s := range suites {
		if s.origin != nil {
			all = append(all, s.name)
		}
	}
	return all
}
