package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"os"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// What the image runs, and as whom. The Dockerfile says the same.
const (
	entrypoint = "/kwok-dra"
	user       = "65532:65532"
)

// labels of the image. The Dockerfile has the same.
func (s *source) labels() map[string]string {
	return map[string]string{
		"org.opencontainers.image.title":       "kwok-dra",
		"org.opencontainers.image.description": "Gives the fake nodes of KWOK fake devices",
		"org.opencontainers.image.source":      "https://github.com/kwok-dra/kwok-dra",
		"org.opencontainers.image.licenses":    "Apache-2.0",
		"org.opencontainers.image.revision":    s.revision,
		"org.opencontainers.image.version":     s.version,
	}
}

// index is the image for all platforms. It takes the paths of the binaries by
// their architectures.
func (s *source) index(binaries map[string]string) (v1.ImageIndex, error) {
	index := mutate.IndexMediaType(empty.Index, types.OCIImageIndex)
	for _, architecture := range architectures {
		image, err := s.image(architecture, binaries[architecture])
		if err != nil {
			return nil, fmt.Errorf("for linux/%s: %w", architecture, err)
		}
		index = mutate.AppendManifests(index, mutate.IndexAddendum{
			Add:        image,
			Descriptor: v1.Descriptor{Platform: &v1.Platform{OS: "linux", Architecture: architecture}},
		})
	}
	return index, nil
}

// image is the image for one architecture: the binary and nothing else.
func (s *source) image(architecture, binary string) (v1.Image, error) {
	content, err := s.layer(binary)
	if err != nil {
		return nil, err
	}
	open := func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(content)), nil }
	layer, err := tarball.LayerFromOpener(open, tarball.WithMediaType(types.OCILayer),
		tarball.WithCompressionLevel(gzip.DefaultCompression), tarball.WithCompressedCaching)
	if err != nil {
		return nil, fmt.Errorf("compress the layer: %w", err)
	}
	created := v1.Time{Time: s.date}
	image := mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), types.OCIConfigJSON)
	image, err = mutate.ConfigFile(image, &v1.ConfigFile{
		OS:           "linux",
		Architecture: architecture,
		Created:      created,
		Config:       v1.Config{Entrypoint: []string{entrypoint}, User: user, Labels: s.labels()},
		RootFS:       v1.RootFS{Type: "layers"},
	})
	if err != nil {
		return nil, fmt.Errorf("set the configuration: %w", err)
	}
	return mutate.Append(image, mutate.Addendum{Layer: layer, History: v1.History{Created: created, CreatedBy: "make image"}})
}

// layer is a tar of the binary, which belongs to root, so that the sidecar
// cannot change it.
func (s *source) layer(binary string) ([]byte, error) {
	content, err := os.ReadFile(binary)
	if err != nil {
		return nil, fmt.Errorf("read the binary: %w", err)
	}
	var layer bytes.Buffer
	writer := tar.NewWriter(&layer)
	header := &tar.Header{Name: entrypoint[1:], Mode: 0o755, Size: int64(len(content)), ModTime: s.date}
	if err := writer.WriteHeader(header); err != nil {
		return nil, fmt.Errorf("write the layer: %w", err)
	}
	if _, err := writer.Write(content); err != nil {
		return nil, fmt.Errorf("write the layer: %w", err)
	}
	if err := writer.Close(); err != nil {
		return nil, fmt.Errorf("write the layer: %w", err)
	}
	return layer.Bytes(), nil
}
