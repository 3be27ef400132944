package build

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"golang.org/x/mod/module"

	"github.com/kwok-dra/kwok-dra/test/cluster/gomod"
	"github.com/kwok-dra/kwok-dra/test/cluster/progress"
)

// Patched is a program of Kubernetes with a fault.
type Patched struct {
	// Kubernetes is the version, in full.
	Kubernetes string
	// Program is its name, such as kube-scheduler.
	Program string
	// Patch is the path of a patch. It names files by the import paths of their packages.
	Patch string
}

// patchedFile is where a patch names a file that it changes.
var patchedFile = regexp.MustCompile(`(?m)^\+\+\+ b/(\S+)$`)

// EnsurePatched builds a program with a patch, if the cache lacks it, and returns the path of the program.
func EnsurePatched(ctx context.Context, p Patched, output io.Writer) (string, error) {
	u, err := patchedUnit(p)
	if err != nil {
		return "", err
	}
	return ensureOne(ctx, u, output)
}

// PatchedModule is a program of a checkout, with a fault in a module that it requires.
type PatchedModule struct {
	// Dir is the directory of the go.mod, and Package is the program's, such as ./provider.
	Dir, Package string
	// Module is the path of the module with the fault.
	Module string
	// Patch is the path of a patch. It names files by the import paths of their packages.
	Patch string
}

// Build builds the program, and puts it at a path.
func (p PatchedModule) Build(ctx context.Context, program string, output io.Writer) (err error) {
	scratch, err := os.MkdirTemp("", scratchPrefix)
	if err != nil {
		return fmt.Errorf("create scratch directory: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(scratch)) }()
	for _, name := range []string{"go.mod", "go.sum"} {
		if err := copyText(filepath.Join(p.Dir, name), filepath.Join(scratch, name)); err != nil {
			return err
		}
	}
	guard, err := startGuard()
	if err != nil {
		return err
	}
	defer guard.endAll()
	w := workshop{dir: scratch, module: p.Dir, guard: guard, flags: "-buildvcs=false -modfile=" + filepath.Join(scratch, "go.mod")}
	u := unit{source: module.Version{Path: p.Module}, patch: p.Patch, packages: []string{p.Package}, program: filepath.Base(program)}
	if w.buildFlags, err = w.patchModules(ctx, u); err != nil {
		return err
	}
	step := progress.Start(output, "Compiling "+filepath.Base(program))
	err = w.compileUnit(ctx, filepath.Dir(program), u, step)
	step.Finish(err)
	return err
}

func patchedUnit(p Patched) (unit, error) {
	content, err := os.ReadFile(p.Patch)
	if err != nil {
		return unit{}, fmt.Errorf("read patch: %w", err)
	}
	u := kubernetesUnit(p.Kubernetes)
	u.packages = []string{kubernetesModule + "/cmd/" + p.Program}
	u.program, u.others, u.cpu = p.Program, true, 200
	if u.patch, err = filepath.Abs(p.Patch); err != nil {
		return unit{}, fmt.Errorf("find patch: %w", err)
	}
	// Another patch of the same name makes another program.
	u.name = fmt.Sprintf("%s-%s-%.4x", u.name, strings.TrimSuffix(filepath.Base(p.Patch), ".patch"), sha256.Sum256(content))
	return u, nil
}

// patchModules applies the patch of u to copies of the files that it changes, and returns the flags with which the go
// command takes these for the files of their modules.
//
// The go command replaces no files below its own cache of modules, so each module that is changed becomes a directory
// beside the copies, which is a link.
func (w workshop) patchModules(ctx context.Context, u unit) ([]string, error) {
	patch, err := os.ReadFile(u.patch)
	if err != nil {
		return nil, fmt.Errorf("read patch: %w", err)
	}
	copies, links := filepath.Join(w.dir, "patched"), filepath.Join(w.dir, "modules")
	replaced := map[string]string{}
	var edits []string
	for _, match := range patchedFile.FindAllSubmatch(patch, -1) {
		name := string(match[1])
		changed := changedModule(name, u)
		link := filepath.Join(links, changed.Path)
		file := filepath.Join(link, strings.TrimPrefix(name, changed.Path))
		replaced[file] = filepath.Join(copies, name)
		if edit := fmt.Sprintf("-replace=%s=%s", changed.Path, link); !slices.Contains(edits, edit) {
			downloaded, err := gomod.Read(w.goCommand(ctx, "mod", "download", "-json", changed.String()), changed.String())
			if err != nil {
				return nil, err
			}
			if err := os.MkdirAll(filepath.Dir(link), 0o755); err != nil {
				return nil, fmt.Errorf("make directory for modules: %w", err)
			}
			if err := os.Symlink(downloaded.Dir, link); err != nil {
				return nil, fmt.Errorf("link module %s: %w", changed, err)
			}
			edits = append(edits, edit)
		}
		if err := copyText(file, replaced[file]); err != nil {
			return nil, err
		}
	}
	if len(replaced) == 0 {
		return nil, fmt.Errorf("read patch %s: it changes no file", u.patch)
	}
	apply := exec.CommandContext(ctx, "git", "apply", u.patch)
	apply.Dir = copies
	// To git, the copies are not a part of a repository around them.
	apply.Env = append(os.Environ(), "GIT_CEILING_DIRECTORIES="+w.dir)
	if out, err := apply.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("%s does not apply to %s: %w\n%s", filepath.Base(u.patch), u.source, err, out)
	}
	if _, err := commandOutput(w.goCommand(ctx, append([]string{"mod", "edit"}, edits...)...)); err != nil {
		return nil, fmt.Errorf("replace the changed modules: %w", err)
	}
	overlay, err := json.Marshal(map[string]any{"Replace": replaced})
	if err != nil {
		return nil, fmt.Errorf("list the changed files: %w", err)
	}
	list := filepath.Join(w.dir, "overlay.json")
	if err := os.WriteFile(list, overlay, 0o644); err != nil {
		return nil, fmt.Errorf("list the changed files: %w", err)
	}
	return []string{"-overlay", list}, nil
}

// changedModule returns the module of a file: that of u, or one of its parts, whose paths have two elements.
func changedModule(name string, u unit) module.Version {
	if strings.HasPrefix(name, u.source.Path+"/") {
		return u.source
	}
	elements := strings.SplitN(name, "/", 3)
	return module.Version{Path: path.Join(elements[:min(2, len(elements))]...), Version: u.parts}
}

func copyText(from, to string) error {
	content, err := os.ReadFile(from)
	if err != nil {
		return fmt.Errorf("copy file: %w", err)
	}
	if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
		return fmt.Errorf("copy file: %w", err)
	}
	if err := os.WriteFile(to, content, 0o644); err != nil {
		return fmt.Errorf("copy file: %w", err)
	}
	return nil
}
