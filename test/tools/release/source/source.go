// Package source is what releases and images are built from: a commit of a git
// clone. The same commit gives the same bytes wherever and whenever it is built.
package source

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path"
	"strconv"
	"strings"
	"time"
)

// versionVariable is what the linker sets to the version.
const versionVariable = "github.com/kwok-dra/kwok-dra/internal/util/version.version"

// Source is a commit under a version.
type Source struct {
	// Root is the top of the work tree.
	Root string
	// Version is that of the programs, such as v1.2.3.
	Version string
	// Revision is the commit.
	Revision string
	// Date of the commit. It is the only time in what is built: a clock would give
	// every build other bytes.
	Date time.Time
}

// Read asks git for the commit that the work tree at root is at.
func Read(ctx context.Context, root, version string) (*Source, error) {
	output, err := runGit(ctx, root, "log", "-1", "--no-show-signature", "--format=%H %ct")
	if err != nil {
		return nil, fmt.Errorf("find the commit of %s, which must be a git clone: %w", root, err)
	}
	revision, date, _ := strings.Cut(output, " ")
	seconds, err := strconv.ParseInt(date, 10, 64)
	if err != nil {
		return nil, fmt.Errorf("read the date of commit %s: %w", revision, err)
	}
	return &Source{Root: root, Version: version, Revision: revision, Date: time.Unix(seconds, 0).UTC()}, nil
}

// Changed reports whether the work tree differs from the commit in files that git
// knows.
func (s *Source) Changed(ctx context.Context) (bool, error) {
	output, err := runGit(ctx, s.Root, "status", "--porcelain", "--untracked-files=no")
	if err != nil {
		return false, fmt.Errorf("compare %s with commit %s: %w", s.Root, s.Revision, err)
	}
	return output != "", nil
}

func runGit(ctx context.Context, root string, arguments ...string) (string, error) {
	command := exec.CommandContext(ctx, "git", arguments...)
	command.Dir = root
	output, err := command.Output()
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		err = fmt.Errorf("%w: %s", err, strings.TrimSpace(string(exit.Stderr)))
	}
	return strings.TrimSpace(string(output)), err
}

// Platform is an operating system and an architecture, in Go's words.
type Platform struct {
	OS, Architecture string
}

// String is the usual form, such as linux/amd64.
func (p Platform) String() string { return p.OS + "/" + p.Architecture }

// Compile builds the static binary of a program below cmd for a platform.
func (s *Source) Compile(ctx context.Context, platform Platform, program, binary string) error {
	build := exec.CommandContext(ctx, "go", "build",
		// Go's record of the work tree and its build id would tell one build from another.
		// What is for debuggers only is not even compiled, as in all builds here, which
		// share what is compiled.
		"-buildvcs=false", "-trimpath", "-gcflags=all=-dwarf=false", "-ldflags=-s -w -buildid= -X "+versionVariable+"="+s.Version,
		"-o", binary, "./"+path.Join("cmd", program))
	build.Dir = s.Root
	build.Env = append(os.Environ(), "CGO_ENABLED=0", "GOWORK=off", "GOOS="+platform.OS, "GOARCH="+platform.Architecture,
		// What a user has set for other builds must not change this one. An empty
		// GOFLAGS would not override "go env -w".
		"GOFLAGS=-trimpath", "GOAMD64=v1", "GOARM64=v8.0")
	if output, err := build.CombinedOutput(); err != nil {
		return fmt.Errorf("compile %s for %s: %w\n%s", program, platform, err, output)
	}
	return nil
}
