package release

import (
	"archive/tar"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
)

// installProgram writes the program in the verified file to target.
func installProgram(f File, file, target string) (err error) {
	in, err := os.Open(file)
	if err != nil {
		return fmt.Errorf("install %s: %w", f.Program, err)
	}
	defer func() { _ = in.Close() }() // only read
	program, err := f.openProgram(in)
	if err != nil {
		return fmt.Errorf("install %s: %w", f.Program, err)
	}
	out, err := os.OpenFile(target, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o755)
	if err != nil {
		return fmt.Errorf("install %s: %w", f.Program, err)
	}
	_, err = io.Copy(out, program)
	if err := errors.Join(err, out.Close()); err != nil {
		return fmt.Errorf("install %s: %w", f.Program, err)
	}
	return nil
}

// openProgram returns the program in a file, which is the file or a member of it.
func (f File) openProgram(file io.Reader) (io.Reader, error) {
	if f.Member == "" {
		return file, nil
	}
	unzipped, err := gzip.NewReader(file)
	if err != nil {
		return nil, fmt.Errorf("read archive %s: %w", f.URL, err)
	}
	archive := tar.NewReader(unzipped)
	for {
		header, err := archive.Next()
		switch {
		case errors.Is(err, io.EOF):
			return nil, fmt.Errorf("read archive %s: %s is not in it", f.URL, f.Member)
		case err != nil:
			return nil, fmt.Errorf("read archive %s: %w", f.URL, err)
		case path.Clean(header.Name) == f.Member:
			return archive, nil
		}
	}
}
