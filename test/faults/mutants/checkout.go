package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// endLimit bounds the wait for a command to end that was told to.
const endLimit = 20 * time.Second

// checkout is a copy of the checkout to put faults into.
type checkout struct{ dir string }

// copyCheckout copies what git knows of or would take, committed or not.
func copyCheckout(ctx context.Context, root, dir string) (checkout, error) {
	list := exec.CommandContext(ctx, "git", "ls-files", "-z", "--cached", "--others", "--exclude-standard")
	list.Dir = root
	names, err := list.Output()
	if err != nil {
		return checkout{}, fmt.Errorf("list the files of the checkout: %w", err)
	}
	for name := range strings.SplitSeq(strings.TrimSuffix(string(names), "\x00"), "\x00") {
		if err := copyFile(filepath.Join(root, name), filepath.Join(dir, name)); err != nil {
			return checkout{}, fmt.Errorf("copy the checkout: %w", err)
		}
	}
	return checkout{dir}, nil
}

// copyFile copies a file or a symbolic link. One that was deleted and is not yet
// committed as such is none.
func copyFile(from, to string) error {
	info, err := os.Lstat(from)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err := errors.Join(err, os.MkdirAll(filepath.Dir(to), 0o755)); err != nil {
		return err
	}
	if info.Mode()&fs.ModeSymlink != 0 {
		target, err := os.Readlink(from)
		return errors.Join(err, os.Symlink(target, to))
	}
	content, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	return os.WriteFile(to, content, info.Mode().Perm())
}

// putFault puts a fault in.
func (c checkout) putFault(ctx context.Context, m mutant) error {
	if out, err := c.commandIn(ctx, ".", "git", "apply", m.patch).CombinedOutput(); err != nil {
		return fmt.Errorf("%s no longer applies, make it anew from today's code: %w\n%s", filepath.Base(m.patch), err, out)
	}
	return nil
}

// buildPackages sees that packages compile with the faults that are in.
func (c checkout) buildPackages(ctx context.Context, packages ...string) error {
	if out, err := c.commandIn(ctx, ".", "go", append([]string{"build"}, packages...)...).CombinedOutput(); err != nil {
		return fmt.Errorf("build %v with the fault: %w\n%s", packages, err, out)
	}
	return nil
}

// removeFault takes a fault out again.
func (c checkout) removeFault(ctx context.Context, m mutant) error {
	if out, err := c.commandIn(ctx, ".", "git", "apply", "--reverse", m.patch).CombinedOutput(); err != nil {
		return fmt.Errorf("take %s out again: %w\n%s", filepath.Base(m.patch), err, out)
	}
	return nil
}

// commandIn is one to run in a directory of the copy.
func (c checkout) commandIn(ctx context.Context, dir, name string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir = filepath.Join(c.dir, dir)
	// To git, the copy is not a part of a repository around it.
	cmd.Env = append(os.Environ(), "GIT_CEILING_DIRECTORIES="+filepath.Dir(c.dir), "CGO_ENABLED=0", "GOWORK=off")
	// A group of its own, to end the command and those that it has started alike. Their
	// clusters end with them.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGTERM) }
	cmd.WaitDelay = endLimit
	return cmd
}
