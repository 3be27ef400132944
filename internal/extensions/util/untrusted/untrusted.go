package untrusted

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/kwok-dra/kwok-dra/internal/util/namedfile"
)

// ReadFile reads a regular file of at most limit bytes. A symbolic link is refused: the program
// that makes such a file makes none.
func ReadFile(path string, limit int64) ([]byte, error) {
	look := func() (fs.FileInfo, error) { return os.Lstat(path) }
	return readRegular(path, limit, look, func() (*os.File, error) { return os.OpenFile(path, namedfile.OpenFlags|noFollow, 0) })
}

// ReadLinked is ReadFile that follows symbolic links: the files of a mounted ConfigMap are links.
func ReadLinked(path string, limit int64) ([]byte, error) {
	look := func() (fs.FileInfo, error) { return os.Stat(path) }
	return readRegular(path, limit, look, func() (*os.File, error) { return os.OpenFile(path, namedfile.OpenFlags, 0) })
}

// ReadFileIn is ReadFile that follows symbolic links as long as they stay in a folder: its owner
// may arrange it, and gets nothing read that it could not read itself.
func ReadFileIn(folder, path string, limit int64) ([]byte, error) {
	resolved, err := filepath.EvalSymlinks(path)
	if errors.Is(err, fs.ErrNotExist) {
		if _, linked := os.Lstat(path); linked == nil {
			return nil, fmt.Errorf("read %s: it is a symbolic link to nothing", path)
		}
	}
	if err != nil {
		return nil, err
	}
	if folder, err = filepath.EvalSymlinks(folder); err != nil {
		return nil, err
	}
	below, isBelow := strings.CutPrefix(resolved, strings.TrimSuffix(folder, "/")+"/")
	if !isBelow {
		return nil, fmt.Errorf("read %s: it is a symbolic link out of %s: put the file there", path, folder)
	}
	// Whoever replaces a folder by a link meanwhile does not get out either.
	root, err := os.OpenRoot(folder)
	if err != nil {
		return nil, err
	}
	defer func() { _ = root.Close() }()
	look := func() (fs.FileInfo, error) { return root.Lstat(below) }
	return readRegular(path, limit, look, func() (*os.File, error) { return root.OpenFile(below, namedfile.OpenFlags, 0) })
}

// ReadTail reads the last bytes of a regular file.
func ReadTail(path string, limit int64) ([]byte, error) {
	file, err := os.OpenFile(path, namedfile.OpenFlags|noFollow, 0)
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }()
	info, err := file.Stat()
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, notRegular(path, info.Mode())
	}
	if _, err := file.Seek(max(0, info.Size()-limit), io.SeekStart); err != nil {
		return nil, err
	}
	return io.ReadAll(io.LimitReader(file, limit))
}

// readRegular looks at a file before it opens it: some devices do something when they are opened.
func readRegular(path string, limit int64, look func() (fs.FileInfo, error), open func() (*os.File, error)) ([]byte, error) {
	info, err := look()
	if err == nil && !info.Mode().IsRegular() {
		return nil, notRegular(path, info.Mode())
	}
	file, err := open()
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }()
	if info, err = file.Stat(); err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, notRegular(path, info.Mode())
	}
	return namedfile.ReadAtMost(path, file, limit)
}

func notRegular(path string, mode fs.FileMode) error {
	kind := "a device"
	switch mode.Type() {
	case fs.ModeDir:
		kind = "a directory"
	case fs.ModeNamedPipe:
		kind = "a FIFO"
	case fs.ModeSocket:
		kind = "a socket"
	case fs.ModeSymlink:
		kind = "a symbolic link"
	}
	return fmt.Errorf("read %s: it is %s, and must be a regular file", path, kind)
}

// entriesPerRead is how many entries of a folder are read at a time.
const entriesPerRead = 1000

// ReadDir lists a folder of at most limit entries, in no order.
func ReadDir(path string, limit int) ([]fs.DirEntry, error) {
	folder, err := os.OpenFile(path, namedfile.OpenFlags|onlyFolder, 0)
	if err != nil {
		return nil, err
	}
	defer func() { _ = folder.Close() }()
	var all []fs.DirEntry
	for {
		entries, err := folder.ReadDir(entriesPerRead)
		all = append(all, entries...)
		switch {
		case len(all) > limit:
			return nil, fmt.Errorf("list %s: it has more than %d entries: %w", path, limit, namedfile.ErrTooLarge)
		case errors.Is(err, io.EOF):
			return all, nil
		case err != nil:
			return nil, err
		}
	}
}
