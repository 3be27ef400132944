// Package tarball writes tar archives that are the same on all machines: what is
// in them has no owner, no umask and no time but a given one.
package tarball

import (
	"archive/tar"
	"compress/gzip"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// Entry is a file, a link or a directory, whose name ends in a slash.
type Entry struct {
	Name    string
	Content []byte
	// Executable says that anybody may run the file.
	Executable bool
	// Link is what the entry links to. Optional.
	Link string
}

// Write writes a tar of the entries in their order, compressed where the name of
// the file ends in gz. The file appears when it is complete.
func Write(file string, entries []Entry, date time.Time) error {
	return writeAtomically(file, func(out io.Writer) error { return writeTarball(out, file, entries, date) })
}

func writeTarball(out io.Writer, file string, entries []Entry, date time.Time) error {
	if !strings.HasSuffix(file, "gz") {
		return packEntries(out, entries, date)
	}
	compressed := gzip.NewWriter(out)
	if err := packEntries(compressed, entries, date); err != nil {
		return err
	}
	return compressed.Close()
}

func packEntries(out io.Writer, entries []Entry, date time.Time) error {
	archive := tar.NewWriter(out)
	for _, entry := range entries {
		if err := archive.WriteHeader(entry.tarHeader(date)); err != nil {
			return fmt.Errorf("pack %s: %w", entry.Name, err)
		}
		if _, err := archive.Write(entry.Content); err != nil {
			return fmt.Errorf("pack %s: %w", entry.Name, err)
		}
	}
	return archive.Close()
}

func (e *Entry) tarHeader(date time.Time) *tar.Header {
	header := &tar.Header{Name: e.Name, Typeflag: tar.TypeReg, Mode: 0o644, Size: int64(len(e.Content)), ModTime: date}
	switch {
	case e.Link != "":
		header.Typeflag, header.Linkname, header.Mode = tar.TypeSymlink, e.Link, 0o777
	case strings.HasSuffix(e.Name, "/"):
		header.Typeflag, header.Mode = tar.TypeDir, 0o755
	case e.Executable:
		header.Mode = 0o755
	}
	return header
}

// WriteDirectory writes a tar of all that is in a directory, in the order of the
// names.
func WriteDirectory(file, directory string, date time.Time) error {
	var entries []Entry
	err := filepath.WalkDir(directory, func(path string, found fs.DirEntry, err error) error {
		if err != nil || path == directory {
			return err
		}
		name, err := filepath.Rel(directory, path)
		if err != nil {
			return err
		}
		entry := Entry{Name: filepath.ToSlash(name)}
		if found.IsDir() {
			entry.Name += "/"
		} else if entry.Content, err = os.ReadFile(path); err != nil {
			return err
		}
		entries = append(entries, entry)
		return nil
	})
	if err != nil {
		return fmt.Errorf("read %s: %w", directory, err)
	}
	return Write(file, entries, date)
}

// writeAtomically has nobody find half a file after a build that was ended.
func writeAtomically(file string, write func(io.Writer) error) error {
	out, err := os.Create(file + ".part")
	if err != nil {
		return err
	}
	if err := write(out); err != nil {
		_ = out.Close()
		return err
	}
	if err := out.Close(); err != nil {
		return err
	}
	return os.Rename(file+".part", file)
}
