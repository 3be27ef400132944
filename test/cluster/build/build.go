// Package build makes the programs of a Kubernetes cluster from their Go
// modules: etcd, the control plane, kubectl, kwok and kwokctl; or it downloads
// their official release binaries, where their servers answer. They are kept in a
// cache outside the work tree, one directory per version, and a directory is there
// only when everything in it is. The first build takes minutes, every later call
// finds the work done.
package build

import (
	"context"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"github.com/kwok-dra/kwok-dra/test/cluster/internal/filelock"
	"github.com/kwok-dra/kwok-dra/test/cluster/progress"
	"github.com/kwok-dra/kwok-dra/test/cluster/release"
)

// Options say what to build and where to tell about it.
type Options struct {
	Versions
	// Output receives the progress of a build; nothing is written when there is
	// nothing to build. Optional, default is os.Stderr.
	Output io.Writer
}

// Programs are the built programs of one set of versions.
type Programs struct {
	// Versions are the resolved versions.
	Versions Versions
	// Stages is a file with the default Stages of the kwok among the programs. It
	// is empty where kwokctl provides them, which it does for its own version only.
	Stages string
	paths  map[string]string
}

// Path returns where the program with the given name is, or "" for a name that
// is not one of the programs.
func (p *Programs) Path(name string) string { return p.paths[name] }

// Names are the names of the programs, sorted.
func (p *Programs) Names() []string { return slices.Sorted(maps.Keys(p.paths)) }

// Cache is the directory below which everything is kept: $KWOK_DRA_CACHE, or
// kwok-dra in the user's cache directory.
func Cache() (string, error) {
	if dir := os.Getenv(CacheEnv); dir != "" {
		return filepath.Abs(dir)
	}
	dir, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("find the user's cache directory (set %s to choose one): %w", CacheEnv, err)
	}
	return filepath.Join(dir, "kwok-dra"), nil
}

// Ensure builds what the cache lacks. Concurrent calls, also of different
// processes, wait for each other: a build keeps all processors busy anyway.
func Ensure(ctx context.Context, o Options) (*Programs, error) {
	versions, err := o.Resolve()
	if err != nil {
		return nil, err
	}
	cache, err := Cache()
	if err != nil {
		return nil, err
	}
	wanted, err := unitsOf(versions, os.Getenv(ReleaseEnv), release.Platform{OS: runtime.GOOS, Arch: runtime.GOARCH})
	if err != nil {
		return nil, err
	}
	if len(missingUnits(cache, wanted)) > 0 {
		if o.Output == nil {
			o.Output = os.Stderr
		}
		if err := buildMissing(ctx, cache, wanted, o.Output); err != nil {
			return nil, err
		}
	}
	return newPrograms(cache, versions, wanted), nil
}

func newPrograms(cache string, versions Versions, wanted []unit) *Programs {
	p := &Programs{Versions: versions, paths: map[string]string{}}
	for _, u := range wanted {
		u = u.cachedUnit(cache)
		for _, program := range u.programNames() {
			p.paths[program] = filepath.Join(cache, u.name, program)
		}
		if u.stages != nil {
			p.Stages = filepath.Join(cache, u.name, stagesFile)
		}
	}
	return p
}

func missingUnits(cache string, wanted []unit) []unit {
	var rest []unit
	for _, u := range wanted {
		if !isComplete(filepath.Join(cache, u.cachedUnit(cache).name), u) {
			rest = append(rest, u)
		}
	}
	return rest
}

// cachedUnit returns what the cache has of u: u itself, or what may stand in for it.
func (u unit) cachedUnit(cache string) unit {
	if u.compiled != nil && isComplete(filepath.Join(cache, u.compiled.name), u) {
		return *u.compiled
	}
	return u
}

func isComplete(dir string, u unit) bool {
	for _, file := range u.outputFiles() {
		if info, err := os.Stat(filepath.Join(dir, file)); err != nil || !info.Mode().IsRegular() {
			return false
		}
	}
	return true
}

func buildMissing(ctx context.Context, cache string, wanted []unit, output io.Writer) error {
	lock, err := filelock.Wait(ctx, filepath.Join(cache, "build.lock"), func() {
		fmt.Fprintln(output, "Waiting for another process that builds the cluster's programs ...")
	})
	if err != nil {
		return err
	}
	defer lock.Unlock()
	removeLeftovers(cache)

	// Whoever had the lock may have built them.
	rest := missingUnits(cache, wanted)
	if len(rest) == 0 {
		return nil
	}
	rest = chooseSources(ctx, rest)
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	fmt.Fprintln(output, announceBuild(cache, rest, runtime.NumCPU()))
	for i, u := range rest {
		title := fmt.Sprintf("[%d/%d] ", i+1, len(rest))
		err := makeWithProgress(ctx, cache, title, u, output)
		if err != nil && u.compiled != nil && ctx.Err() == nil {
			fmt.Fprintf(output, "%sCompiling it instead: %v. With %d cores this takes %s.\n", title, err, runtime.NumCPU(), estimateDuration(u.cpu, runtime.NumCPU()))
			err = makeWithProgress(ctx, cache, title, *u.compiled, output)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func makeWithProgress(ctx context.Context, cache, title string, u unit, output io.Writer) error {
	p := progress.Start(output, title+u.String())
	err := makeUnit(ctx, cache, u, p)
	p.Finish(err)
	switch {
	case err != nil && u.release != nil && u.compiled == nil:
		return fmt.Errorf("download %s: %w (%s=0 compiles it instead)", u, err, ReleaseEnv)
	case err != nil && u.release == nil:
		return fmt.Errorf("build %s: %w", u, err)
	}
	return err
}

const scratchPrefix = "building-"

// removeLeftovers removes what interrupted builds left. The caller has the
// lock, so no build that is still going on owns any of it.
func removeLeftovers(cache string) {
	leftovers, _ := filepath.Glob(filepath.Join(cache, scratchPrefix+"*"))
	for _, dir := range leftovers {
		_ = os.RemoveAll(dir) // what stays behind is in nobody's way
	}
}

// makeUnit makes u in a directory of its own and moves the result into place
// in one step, so that nobody ever sees half of it.
func makeUnit(ctx context.Context, cache string, u unit, p *progress.Step) error {
	scratch, err := os.MkdirTemp(cache, scratchPrefix)
	if err != nil {
		return fmt.Errorf("create scratch directory: %w", err)
	}
	defer func() { _ = os.RemoveAll(scratch) }()
	guard, err := startGuard()
	if err != nil {
		return err
	}
	defer guard.endAll()

	w := workshop{dir: scratch, guard: guard, flags: "-mod=mod"}
	made := filepath.Join(scratch, "bin")
	if u.release != nil {
		err = w.downloadUnit(ctx, filepath.Join(cache, "downloads"), made, u, p)
	} else {
		err = w.buildUnit(ctx, made, u, p)
	}
	if err != nil {
		return err
	}
	if !isComplete(made, u) {
		return fmt.Errorf("look for %s in %s: not all are there", strings.Join(u.outputFiles(), ", "), made)
	}
	final := filepath.Join(cache, u.name)
	if err := os.RemoveAll(final); err != nil {
		return fmt.Errorf("remove incomplete %s: %w", final, err)
	}
	if err := os.Rename(made, final); err != nil {
		return fmt.Errorf("move programs into place: %w", err)
	}
	return nil
}
