package build

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/kwok-dra/kwok-dra/test/cluster/compile"
	"github.com/kwok-dra/kwok-dra/test/cluster/gomod"
	"github.com/kwok-dra/kwok-dra/test/cluster/progress"
	"github.com/kwok-dra/kwok-dra/test/cluster/release"
)

// A workshop is where one unit is built.
type workshop struct {
	dir string
	// module is the directory of the module that is built, if that is not dir.
	module string
	guard  *guard
	// flags are those of the go command, and buildFlags more of them for what it builds.
	flags      string
	buildFlags []string
}

// buildUnit puts the programs of u, built from its module, and its Stages into the
// directory made.
func (w workshop) buildUnit(ctx context.Context, made string, u unit, p *progress.Step) error {
	if u.checkout != "" {
		// It is somebody's: nothing is written there, and Git is not asked about it.
		w.module, w.flags = u.checkout, "-mod=readonly -buildvcs=false"
		return w.compileUnit(ctx, made, u, p)
	}
	source, err := w.writeModule(ctx, u)
	if err != nil {
		return err
	}
	if u.patch != "" {
		if w.buildFlags, err = w.patchModules(ctx, u); err != nil {
			return err
		}
	}
	if err := w.compileUnit(ctx, made, u, p); err != nil {
		return err
	}
	return copyStages(source, made, u)
}

// downloadUnit puts the programs of u as they were released, and its Stages, into
// the directory made. What is not complete yet is kept in partial.
func (w workshop) downloadUnit(ctx context.Context, partial, made string, u unit, p *progress.Step) error {
	if err := os.Mkdir(made, 0o755); err != nil {
		return fmt.Errorf("create directory of programs: %w", err)
	}
	d := release.Downloader{Partial: partial, Hurry: u.compiled != nil, Progress: func(f release.File, done, of int64) {
		if of < 0 {
			p.State("%s %d MiB", f.Program, done>>20)
			return
		}
		p.State("%s %d of %d MiB", f.Program, done>>20, of>>20)
	}}
	for _, f := range u.release {
		if err := d.Download(ctx, f, made); err != nil {
			return err
		}
	}
	if u.stages == nil {
		return nil
	}
	module, err := w.fetchSource(ctx, u)
	if err != nil {
		return err
	}
	return copyStages(module.Dir, made, u)
}

func (w workshop) fetchSource(ctx context.Context, u unit) (gomod.Module, error) {
	return gomod.Read(w.goCommand(ctx, "mod", "download", "-json", u.source.String()), u.source.String())
}

// writeModule writes the module in which u is built, and returns the directory
// with the source of u.
func (w workshop) writeModule(ctx context.Context, u unit) (source string, err error) {
	downloaded, err := w.fetchSource(ctx, u)
	if err != nil {
		return "", err
	}
	required, err := os.ReadFile(downloaded.GoMod)
	if err != nil {
		return "", fmt.Errorf("read go.mod of %s: %w", u.source, err)
	}
	scratch, err := scratchModule(required, u.source, u.parts)
	if err != nil {
		return "", err
	}
	if err := os.WriteFile(filepath.Join(w.dir, "go.mod"), scratch, 0o644); err != nil {
		return "", fmt.Errorf("write scratch module: %w", err)
	}
	return downloaded.Dir, nil
}

// copyStages puts the Stages of u into one file beside its programs.
func copyStages(source, made string, u unit) error {
	if u.stages == nil {
		return nil
	}
	var all bytes.Buffer
	for _, name := range u.stages {
		stage, err := os.ReadFile(filepath.Join(source, name))
		if err != nil {
			return fmt.Errorf("read default Stage of %s: %w", u.source, err)
		}
		fmt.Fprintf(&all, "---\n%s\n", stage)
	}
	if err := os.WriteFile(filepath.Join(made, stagesFile), all.Bytes(), 0o644); err != nil {
		return fmt.Errorf("write default Stages: %w", err)
	}
	return nil
}

// compileUnit builds the programs of u into the directory made.
func (w workshop) compileUnit(ctx context.Context, made string, u unit, p *progress.Step) error {
	packages := 0
	// Only an estimate for the progress; a real problem shows in the build.
	if deps, err := commandOutput(w.goCommand(ctx, append([]string{"list", "-deps"}, u.packages...)...)); err == nil {
		packages = bytes.Count(deps, []byte("\n"))
	}
	ldflags := strings.Join(append([]string{"-s", "-w"}, u.ldflags...), " ")
	// With a name the only program gets it, without one each its package's.
	target := made + string(filepath.Separator) + u.program
	// The linker drops what debuggers need; a compiler that does not write it saves
	// an eighth of the time.
	args := slices.Concat(u.goCommand(), w.buildFlags, []string{"-trimpath", "-gcflags=all=-dwarf=false", "-ldflags", ldflags, "-o", target}, u.packages)
	cmd := w.goCommand(ctx, args...)
	if tail, err := compile.Run(cmd, packages, p); err != nil {
		return explainFailure(ctx, err, tail)
	}
	return nil
}

// goCommand runs the go command in the workshop, untouched by settings that are
// meant for the module of the caller.
func (w workshop) goCommand(ctx context.Context, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, "go", args...)
	w.guard.endWithParent(cmd)
	cmd.Dir = cmp.Or(w.module, w.dir)
	ours := []string{
		"CGO_ENABLED=0",
		// Never empty: an empty variable does not override "go env -w".
		"GOFLAGS=" + w.flags,
		"GOWORK=off",
		"GO111MODULE=on",
		"GOOS=" + runtime.GOOS,
		"GOARCH=" + runtime.GOARCH,
	}
	cmd.Env = append(slices.DeleteFunc(os.Environ(), func(entry string) bool {
		return strings.HasPrefix(entry, "GOBIN=")
	}), ours...)
	cmd.WaitDelay = 10 * time.Second
	return cmd
}

func commandOutput(cmd *exec.Cmd) ([]byte, error) {
	out, err := cmd.Output()
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		return nil, fmt.Errorf("%w:\n%s", err, bytes.TrimSpace(append(exit.Stderr, out...)))
	}
	return out, err
}

func explainFailure(ctx context.Context, err error, tail string) error {
	if ctx.Err() != nil {
		return fmt.Errorf("run the compiler: %w", context.Cause(ctx))
	}
	return fmt.Errorf("run the compiler: %w, its last lines:\n%s", err, tail)
}
