// Package gomod finds the files of Go modules: the checkout that a program runs
// in, and modules of others in the module cache.
package gomod

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"

	"golang.org/x/mod/modfile"
)

// Root returns the directory of the module with the given path. It is the
// working directory or one above it, as in "go test" and "go run".
func Root(path string) (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", fmt.Errorf("find module %s: %w", path, err)
	}
	for from := dir; ; dir = filepath.Dir(dir) {
		content, err := os.ReadFile(filepath.Join(dir, "go.mod"))
		if err == nil && modfile.ModulePath(content) == path {
			return dir, nil
		}
		if dir == filepath.Dir(dir) {
			return "", fmt.Errorf("find module %s: no go.mod of it in %s or above", path, from)
		}
	}
}

// A Module is a module in the module cache.
type Module struct {
	// Dir is the directory with its source.
	Dir string
	// GoMod is the path of its go.mod.
	GoMod string
}

// Download returns the module that a query such as sigs.k8s.io/kwok@v0.8.0
// names, and downloads it if need be. Without a version it is the one that the
// module in dir requires. "go list -m" would not do: it prints nothing for a
// module that has not been downloaded yet.
func Download(ctx context.Context, dir, query string) (Module, error) {
	cmd := exec.CommandContext(ctx, "go", "mod", "download", "-json", query)
	cmd.Dir = dir
	return Read(cmd, query)
}

// Read runs a "go mod download -json" for one module and returns where the module is.
func Read(cmd *exec.Cmd, query string) (Module, error) {
	out, err := cmd.Output()
	var m struct {
		Module
		Error string
	}
	if decodeErr := json.Unmarshal(out, &m); decodeErr != nil && err == nil {
		err = decodeErr
	}
	switch exit, ok := errors.AsType[*exec.ExitError](err); {
	case m.Error != "":
		return Module{}, fmt.Errorf("download module %s: %s", query, m.Error)
	case ok:
		return Module{}, fmt.Errorf("download module %s: %w: %s", query, err, bytes.TrimSpace(exit.Stderr))
	case err != nil:
		return Module{}, fmt.Errorf("download module %s: %w", query, err)
	case m.Dir == "" || m.GoMod == "":
		return Module{}, fmt.Errorf("download module %s: the go command names no directory", query)
	}
	return m.Module, nil
}
