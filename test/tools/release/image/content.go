package image

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"

	"github.com/kwok-dra/kwok-dra/test/tools/release/source"
)

// What the image runs, and as whom. The Dockerfile says the same.
const (
	entrypoint = "/kwok-dra"
	user       = "65532:65532"
)

// imageLabels of the image. The Dockerfile has the same.
func imageLabels(s *source.Source) map[string]string {
	return map[string]string{
		"org.opencontainers.image.title":       "kwok-dra",
		"org.opencontainers.image.description": "Gives the fake nodes of KWOK fake devices",
		"org.opencontainers.image.source":      "https://github.com/kwok-dra/kwok-dra",
		"org.opencontainers.image.licenses":    "Apache-2.0",
		"org.opencontainers.image.revision":    s.Revision,
		"org.opencontainers.image.version":     s.Version,
	}
}

// Index is the image for all platforms. It takes the paths of the binaries by
// their architectures; all are of Linux.
func Index(s *source.Source, binaries map[string]string) (v1.ImageIndex, error) {
	index := mutate.IndexMediaType(empty.Index, types.OCIImageIndex)
	for _, architecture := range slices.Sorted(maps.Keys(binaries)) {
		image, err := For(s, architecture, binaries[architecture])
		if err != nil {
			return nil, fmt.Errorf("make the image for linux/%s: %w", architecture, err)
		}
		index = mutate.AppendManifests(index, mutate.IndexAddendum{
			Add:        image,
			Descriptor: v1.Descriptor{Platform: &v1.Platform{OS: "linux", Architecture: architecture}},
		})
	}
	return index, nil
}

// For is the image for one architecture: the binary and nothing else.
func For(s *source.Source, architecture, binary string) (v1.Image, error) {
	content, err := layerOf(s, binary)
	if err != nil {
		return nil, err
	}
	open := func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(content)), nil }
	layer, err := tarball.LayerFromOpener(open, tarball.WithMediaType(types.OCILayer),
		tarball.WithCompressionLevel(gzip.DefaultCompression), tarball.WithCompressedCaching)
	if err != nil {
		return nil, fmt.Errorf("compress the layer: %w", err)
	}
	created := v1.Time{Time: s.Date}
	image := mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), types.OCIConfigJSON)
	image, err = mutate.ConfigFile(image, &v1.ConfigFile{
		OS:           "linux",
		Architecture: architecture,
		Created:      created,
		Config:       v1.Config{Entrypoint: []string{entrypoint}, User: user, Labels: imageLabels(s)},
		RootFS:       v1.RootFS{Type: "layers"},
	})
	if err != nil {
		return nil, fmt.Errorf("set the configuration: %w", err)
	}
	return mutate.Append(image, mutate.Addendum{Layer: layer, History: v1.History{Created: created, CreatedBy: "make image"}})
}

// layerOf is a tar of the binary, which belongs to root, so that the sidecar
// cannot change it.
func layerOf(s *source.Source, binary string) ([]byte, error) {
	content, err := os.ReadFile(binary)
	if err != nil {
		return nil, fmt.Errorf("read the binary: %w", err)
	}
	var layer bytes.Buffer
	writer := tar.NewWriter(&layer)
	header := &tar.Header{Name: entrypoint[1:], Mode: 0o755, Size: int64(len(content)), ModTime: s.Date}
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
