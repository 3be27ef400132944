package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// versionVariable is what the linker sets to the version.
const versionVariable = "github.com/kwok-dra/kwok-dra/pkg/app.version"

// source is what an image is built from.
type source struct {
	root     string
	version  string
	revision string
	// date of the commit. It is the only time in an image: a clock would make
	// every image another one.
	date time.Time
}

// readSource asks git for the commit that the work tree at root is at.
func readSource(ctx context.Context, root, version string) (*source, error) {
	git := exec.CommandContext(ctx, "git", "log", "-1", "--no-show-signature", "--format=%H %ct")
	git.Dir = root
	output, err := git.Output()
	if err != nil {
		return nil, fmt.Errorf("find the commit of %s, which must be a git clone: %w", root, withStderr(err))
	}
	revision, date, _ := strings.Cut(strings.TrimSpace(string(output)), " ")
	seconds, err := strconv.ParseInt(date, 10, 64)
	if err != nil {
		return nil, fmt.Errorf("read the date of commit %s: %w", revision, err)
	}
	return &source{root: root, version: version, revision: revision, date: time.Unix(seconds, 0).UTC()}, nil
}

// compile builds the static binary for an architecture and returns its path,
// which is where the Dockerfile looks for it.
func (s *source) compile(ctx context.Context, architecture string) (string, error) {
	binary := filepath.Join(s.root, "bin", "linux", architecture, "kwok-dra")
	build := exec.CommandContext(ctx, "go", "build",
		// Go's record of the work tree and its build id would tell one build from another.
		"-buildvcs=false", "-trimpath", "-ldflags=-s -w -buildid= -X "+versionVariable+"="+s.version,
		"-o", binary, "./cmd/kwok-dra")
	build.Dir = s.root
	build.Env = append(os.Environ(), "CGO_ENABLED=0", "GOWORK=off", "GOOS=linux", "GOARCH="+architecture,
		// What a user has set for other builds must not change this one. An empty
		// GOFLAGS would not override "go env -w".
		"GOFLAGS=-trimpath", "GOAMD64=v1", "GOARM64=v8.0")
	if output, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("compile kwok-dra for linux/%s: %w\n%s", architecture, err, output)
	}
	return binary, nil
}

// withStderr adds what a command said to its exit code.
func withStderr(err error) error {
	if exit, is := errors.AsType[*exec.ExitError](err); is {
		return fmt.Errorf("%w: %s", err, strings.TrimSpace(string(exit.Stderr)))
	}
	return err
}
