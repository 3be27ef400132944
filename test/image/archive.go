package main

import (
	"archive/tar"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
)

// writeArchive writes an OCI image layout as a tar. Its top has one entry, the
// index of all platforms: tools take more entries for more images.
func writeArchive(s *source, index v1.ImageIndex, file string) error {
	dir, err := os.MkdirTemp("", "kwok-dra-image-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	top, err := layout.Write(dir, empty.Index)
	if err != nil {
		return fmt.Errorf("write the layout: %w", err)
	}
	err = top.AppendIndex(index, layout.WithAnnotations(map[string]string{
		"org.opencontainers.image.ref.name": s.version,
		// containerd, and with it Docker and Kubernetes, looks images up by their
		// names in full, and this is the full form of a name without a registry.
		"io.containerd.image.name": "docker.io/" + repository + ":" + s.version,
	}))
	if err != nil {
		return fmt.Errorf("write the layout: %w", err)
	}
	// Nobody shall find half an archive after a build that was ended.
	if err := s.pack(dir, file+".part"); err != nil {
		return err
	}
	return os.Rename(file+".part", file)
}

// pack makes a tar of all that is in dir, in the order of the names.
func (s *source) pack(dir, file string) (err error) {
	out, err := os.Create(file)
	if err != nil {
		return err
	}
	defer func() {
		if closeErr := out.Close(); err == nil {
			err = closeErr
		}
	}()
	archive := tar.NewWriter(out)
	err = filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || path == dir {
			return err
		}
		name, err := filepath.Rel(dir, path)
		if err != nil {
			return err
		}
		return s.packEntry(archive, path, filepath.ToSlash(name), entry.IsDir())
	})
	if err != nil {
		return err
	}
	return archive.Close()
}

// packEntry adds a file or directory, without what differs between machines:
// owners, times and umasks.
func (s *source) packEntry(archive *tar.Writer, path, name string, isDir bool) error {
	if isDir {
		return archive.WriteHeader(&tar.Header{Name: name + "/", Typeflag: tar.TypeDir, Mode: 0o755, ModTime: s.date})
	}
	content, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	if err := archive.WriteHeader(&tar.Header{Name: name, Mode: 0o644, Size: int64(len(content)), ModTime: s.date}); err != nil {
		return err
	}
	_, err = archive.Write(content)
	return err
}
