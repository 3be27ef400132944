package config

import (
	"errors"
	"fmt"
	"os"
)

// FilesCarrier is the carrier of the configuration files.
const FilesCarrier = "files"

// ReadFiles reads the documents of all files. The error names every problem of
// every file.
func ReadFiles(paths []string) (*Documents, error) {
	documents := &Documents{}
	var errs []error
	for _, path := range paths {
		data, err := os.ReadFile(path)
		if err != nil {
			errs = append(errs, fmt.Errorf("read configuration: %w", err))
			continue
		}
		read, err := Decode(path, data)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		documents.merge(read)
	}
	return documents, errors.Join(errs...)
}
