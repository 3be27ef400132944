package sidecar

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"sync"

	"github.com/kwok-dra/kwok-dra/test/cluster/gomod"
)

// Names of the built programs.
const (
	sidecarName = "kwok-dra"
	ctlName     = "kwok-dractl"
	pluginName  = "kubectl-dra"
)

// pluginCompleter is the name under which kubectl finds what completes the arguments of the plugin.
const pluginCompleter = "kubectl_complete-dra"

// Programs builds kwok-dra, kwok-dractl and the plugin of kubectl and returns the directory that has
// them. It builds once per process.
var Programs = sync.OnceValues(func() (string, error) {
	dir := filepath.Join(Root(), "bin")
	// The compiler would write through a link, which this name once was.
	if _, err := os.Readlink(filepath.Join(dir, pluginName)); err == nil {
		if err := os.Remove(filepath.Join(dir, pluginName)); err != nil {
			return "", fmt.Errorf("remove the link %s: %w", pluginName, err)
		}
	}
	if err := Build(Root(), dir+string(filepath.Separator), "./cmd/"+sidecarName, "./cmd/"+ctlName, "./cmd/"+pluginName); err != nil {
		return "", err
	}
	return dir, ensureLink(pluginName, filepath.Join(dir, pluginCompleter))
})

// Binary builds the sidecar and returns its path. It builds once per process.
func Binary() (string, error) {
	dir, err := Programs()
	if err != nil {
		return "", err
	}
	return filepath.Join(dir, sidecarName), nil
}

// Build builds packages of the module in dir, which may be one of its
// directories, into output. Everything that is built in this repository has the
// same flags, so that nothing is compiled twice; without the state of the checkout
// in it, a program is not linked again after each commit.
func Build(dir, output string, packages ...string) error {
	build := exec.Command("go", append([]string{"build", "-trimpath", "-buildvcs=false", "-o", output}, packages...)...)
	build.Dir = dir
	build.Env = append(os.Environ(), "CGO_ENABLED=0", "GOWORK=off")
	if out, err := build.CombinedOutput(); err != nil {
		return fmt.Errorf("build %v: %w\n%s", packages, err, out)
	}
	return nil
}

// ensureLink makes path a symbolic link to target, unless it is one.
func ensureLink(target, path string) error {
	if there, err := os.Readlink(path); err == nil && there == target {
		return nil
	}
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("link %s: %w", path, err)
	}
	// Another process may link it at the same time.
	if err := os.Symlink(target, path); err != nil && !errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("link %s: %w", path, err)
	}
	return nil
}

// Root is the top of the repository. It panics where there is none: the tests and
// commands of this module run in a checkout only.
var Root = sync.OnceValue(func() string {
	root, err := gomod.Root("github.com/kwok-dra/kwok-dra")
	if err != nil {
		panic(err)
	}
	return root
})

// ModuleDir is the directory of a module that kwok-dra requires.
func ModuleDir(ctx context.Context, module string) (string, error) {
	m, err := gomod.Download(ctx, Root(), module)
	return m.Dir, err
}
