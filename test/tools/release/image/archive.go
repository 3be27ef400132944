// Package image makes the container image of kwok-dra without a container engine,
// as one archive, an OCI image layout.
package image

import (
	"cmp"
	"fmt"
	"os"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"

	"github.com/kwok-dra/kwok-dra/test/tools/release/source"
	"github.com/kwok-dra/kwok-dra/test/tools/release/tarball"
)

// defaultRepository is the name that the manifests in kustomize have, without a registry.
const defaultRepository = "kwok-dra/kwok-dra"

// Repository is the name of the image, with that of a registry where it is pushed to one: make
// passes its variable IMAGE in the environment.
func Repository() string { return cmp.Or(os.Getenv("IMAGE"), defaultRepository) }

// Name is the image of a version.
func Name(version string) string { return Repository() + ":" + version }

// CheckTag refuses a version that cannot be the tag of an image: git allows more
// in a tag than images do.
func CheckTag(version string) error {
	_, err := name.NewTag(Name(version))
	return err
}

// Write writes an OCI image layout as a tar. Its top has one entry, the index of
// all platforms: tools take more entries for more images.
func Write(s *source.Source, index v1.ImageIndex, file string) error {
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
		"org.opencontainers.image.ref.name": s.Version,
		// containerd, and with it Docker and Kubernetes, looks images up by their
		// names in full, and this is the full form of a name without a registry.
		"io.containerd.image.name": "docker.io/" + Name(s.Version),
	}))
	if err != nil {
		return fmt.Errorf("write the layout: %w", err)
	}
	return tarball.WriteDirectory(file, dir, s.Date)
}
