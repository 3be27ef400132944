// Package namedfile reads files that the user of the program names, which may be pipes. A read never
// waits for another program, and what it returns is bounded.
package namedfile

import (
	"errors"
	"fmt"
	"io"
	"os"
)

// ErrTooLarge is the error of what is over its limit.
var ErrTooLarge = errors.New("too large")

// Read reads a file of at most limit bytes. A pipe without a writer is empty.
func Read(path string, limit int64) ([]byte, error) {
	file, err := os.OpenFile(path, OpenFlags, 0)
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }()
	return ReadAtMost(path, file, limit)
}

// ReadAtMost reads the rest of an open file of at most limit bytes.
func ReadAtMost(path string, file *os.File, limit int64) ([]byte, error) {
	content, err := io.ReadAll(io.LimitReader(file, limit+1))
	if err == nil && int64(len(content)) > limit {
		err = fmt.Errorf("read %s: it has more than %d bytes: %w", path, limit, ErrTooLarge)
	}
	if err != nil {
		return nil, err
	}
	return content, nil
}
