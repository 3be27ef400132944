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

// Write replaces a file so that readers see all of it or what was there before, even after a loss of
// power. A failed Write leaves nothing behind.
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
	// To sync a file does not sync its name, which is in the folder.
	folder, err := os.OpenFile(filepath.Dir(path), os.O_RDONLY, 0)
	if err == nil {
		if err = syncFile(folder); errors.Is(err, syscall.EINVAL) { // a file system that syncs no folders
			err = nil
		}
		err = errors.Join(err, folder.Close())
	}
	if err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	return nil
}
