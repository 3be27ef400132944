package config

import (
	"context"
	"errors"
	"fmt"
	"os"

	"k8s.io/klog/v2"
)

// FilesCarrier is the carrier of the configuration files.
const FilesCarrier = "files"

// ReadFiles reads the documents of all files, and warns of a file that has none.
// The error names every problem of every file.
func ReadFiles(ctx context.Context, paths []string) (*Documents, error) {
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
		if len(read.templates)+len(read.configurations) == 0 {
			klog.FromContext(ctx).Error(nil, "A configuration file has no documents, so it configures nothing", "file", path)
		}
		documents.merge(read)
	}
	return documents, errors.Join(errs...)
}
