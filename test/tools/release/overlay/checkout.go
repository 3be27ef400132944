// Package overlay renders the kustomizations of the repository without a network:
// what they take from other repositories is read from the Go modules of the same
// repositories.
package overlay

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/kwok-dra/kwok-dra/test/cluster/gomod"
)

// Checkout is a copy of the kustomizations, in which what they refer to on the
// network is on disk.
type Checkout struct {
	// Dir has the directories kustomize and stages.
	Dir  string
	root string
}

// The forms in which the kustomizations refer to other repositories: a directory
// of kwok, and a file of Karpenter.
var (
	remoteDirectory = regexp.MustCompile(`"?https://github\.com/kubernetes-sigs/kwok/(kustomize/[^?\s]+)\?ref=(v[0-9.]+)"?`)
	remoteFile      = regexp.MustCompile(`https://raw\.githubusercontent\.com/kubernetes-sigs/karpenter/(v[0-9.]+)/(\S+)`)
)

// Copy copies the kustomizations of the repository at root to dir, and has those
// below the given directories of kustomize refer to files on disk.
func Copy(ctx context.Context, root, dir string, overlays ...string) (*Checkout, error) {
	dir, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return nil, err
	}
	c := &Checkout{Dir: dir, root: root}
	for _, tree := range []string{"kustomize", "stages"} {
		if err := os.CopyFS(filepath.Join(dir, tree), os.DirFS(filepath.Join(root, tree))); err != nil {
			return nil, fmt.Errorf("copy %s: %w", tree, err)
		}
	}
	for _, overlay := range overlays {
		if err := c.localizeBelow(ctx, filepath.Join(dir, "kustomize", overlay)); err != nil {
			return nil, err
		}
	}
	return c, nil
}

// localizeBelow localizes the kustomizations of a directory and of those in it.
func (c *Checkout) localizeBelow(ctx context.Context, directory string) error {
	for _, depth := range []string{"", "*"} {
		files, err := filepath.Glob(filepath.Join(directory, depth, "kustomization.yaml"))
		if err != nil {
			return err
		}
		for _, file := range files {
			if err := c.localizeFile(ctx, file); err != nil {
				return err
			}
		}
	}
	return nil
}

func (c *Checkout) localizeFile(ctx context.Context, file string) error {
	content, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	local, err := c.Local(ctx, string(content), filepath.Dir(file))
	if err != nil {
		return fmt.Errorf("read what %s refers to: %w", file, err)
	}
	return os.WriteFile(file, []byte(local), 0o600)
}

// Local has a text that is read in a directory refer to files on disk.
func (c *Checkout) Local(ctx context.Context, text, directory string) (string, error) {
	for _, found := range remoteDirectory.FindAllStringSubmatch(text, -1) {
		local, err := c.kwokPath(ctx, found[1], found[2], directory)
		if err != nil {
			return "", err
		}
		text = strings.ReplaceAll(text, found[0], local)
	}
	for _, found := range remoteFile.FindAllStringSubmatch(text, -1) {
		local, err := c.copyKarpenterFile(ctx, found[2], found[1], directory)
		if err != nil {
			return "", err
		}
		text = strings.ReplaceAll(text, found[0], local)
	}
	return text, nil
}

// kwokPath returns the path of a directory of kwok, relative to another directory.
func (c *Checkout) kwokPath(ctx context.Context, path, version, directory string) (string, error) {
	copied := filepath.Join(c.Dir, "remote", "kwok@"+version)
	if _, err := os.Stat(copied); err != nil {
		module, err := gomod.Download(ctx, c.root, "sigs.k8s.io/kwok@"+KwokModule(version))
		if err != nil {
			return "", err
		}
		if err := os.CopyFS(filepath.Join(copied, "kustomize"), os.DirFS(filepath.Join(module.Dir, "kustomize"))); err != nil {
			return "", err
		}
	}
	return filepath.Rel(directory, filepath.Join(copied, path))
}

// KwokModule is the version of the module of a release of kwok: 0.6.0 has a tag and
// no module. Its directory kustomize is that of 0.6.1.
func KwokModule(version string) string {
	if version == "v0.6.0" {
		return "v0.6.1"
	}
	return version
}

// copyKarpenterFile copies a file of Karpenter into a directory and returns its name.
func (c *Checkout) copyKarpenterFile(ctx context.Context, path, version, directory string) (string, error) {
	module, err := gomod.Download(ctx, c.root, "sigs.k8s.io/karpenter@"+version)
	if err != nil {
		return "", err
	}
	content, err := os.ReadFile(filepath.Join(module.Dir, path))
	if err != nil {
		return "", err
	}
	name := filepath.Base(path)
	return name, os.WriteFile(filepath.Join(directory, name), content, 0o600)
}
