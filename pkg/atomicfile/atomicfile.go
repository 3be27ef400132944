// Package atomicfile writes files at once.
package atomicfile

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// Write writes a file so that whoever reads it sees all of it or what was there before.
func Write(path string, content []byte, mode fs.FileMode) error {
	written, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".*")
	if err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	_, err = written.Write(content)
	err = errors.Join(err, written.Chmod(mode), written.Close()) // the umask would cut the mode
	if err == nil {
		err = os.Rename(written.Name(), path)
	}
	if err != nil {
		return fmt.Errorf("write %s: %w", path, errors.Join(err, os.Remove(written.Name())))
	}
	return nil
}
