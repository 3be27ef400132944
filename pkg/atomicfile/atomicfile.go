// Package atomicfile writes files at once.
package atomicfile

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// syncFile is replaced by tests, which see what is synced, and when.
var syncFile = (*os.File).Sync

// Write writes a file so that whoever reads it sees all of it or what was there before, also after
// the machine has lost its power. Where it fails, nothing of it is left.
func Write(path string, content []byte, mode fs.FileMode) error {
	written, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".*")
	if err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	_, err = written.Write(content)
	if err == nil {
		err = errors.Join(written.Chmod(mode), syncFile(written)) // the umask would cut the mode
	}
	err = errors.Join(err, written.Close())
	if err == nil {
		err = os.Rename(written.Name(), path)
	}
	if err != nil {
		return fmt.Errorf("write %s: %w", path, errors.Join(err, os.Remove(written.Name())))
	}
	if err := syncFolder(filepath.Dir(path)); err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	return nil
}

// syncFolder has the names in a folder outlive a loss of power. The content of a file alone does not
// bring its name.
func syncFolder(folder string) error {
	opened, err := os.OpenFile(folder, os.O_RDONLY, 0)
	if err != nil {
		return err
	}
	err = syncFile(opened)
	if errors.Is(err, syscall.EINVAL) { // a file system that syncs no folders
		err = nil
	}
	return errors.Join(err, opened.Close())
}
