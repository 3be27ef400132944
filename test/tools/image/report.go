package main

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"

	"github.com/kwok-dra/kwok-dra/test/tools/release/image"
)

// loadCommands take an archive for several platforms; all but the last need no
// registry.
const loadCommands = `Load it with the one that fits:
  kind load image-archive ARCHIVE
  podman load -i ARCHIVE
  docker load -i ARCHIVE  # if Docker uses the containerd image store
  ctr -n k8s.io images import ARCHIVE
  skopeo copy --all oci-archive:ARCHIVE docker://REGISTRY/IMAGE
`

// printReport tells what was built and how to use it.
func printReport(out io.Writer, root, version string, index v1.ImageIndex) error {
	file := archivePath(version)
	info, err := os.Stat(filepath.Join(root, file))
	if err != nil {
		return err
	}
	digest, err := index.Digest()
	if err != nil {
		return fmt.Errorf("digest the image: %w", err)
	}
	manifest, err := index.IndexManifest()
	if err != nil {
		return fmt.Errorf("read the index: %w", err)
	}
	fmt.Fprintf(out, "\nImage    %s\nDigest   %s\nArchive  %s (%s, OCI image layout)\n",
		image.Name(version), digest, file, inMegabytes(info.Size()))
	for _, platform := range manifest.Manifests {
		one, err := index.Image(platform.Digest)
		if err != nil {
			return fmt.Errorf("read the image for %s: %w", platform.Platform, err)
		}
		size, err := pullSize(one)
		if err != nil {
			return fmt.Errorf("measure the image for %s: %w", platform.Platform, err)
		}
		fmt.Fprintf(out, "         %s: %s to pull, %s\n", platform.Platform, inMegabytes(size), platform.Digest)
	}
	fmt.Fprint(out, "\n", strings.NewReplacer("ARCHIVE", file, "IMAGE", image.Name(version)).Replace(loadCommands))
	return nil
}

// pullSize is the size of the compressed layers.
func pullSize(one v1.Image) (int64, error) {
	manifest, err := one.Manifest()
	if err != nil {
		return 0, err
	}
	var size int64
	for _, layer := range manifest.Layers {
		size += layer.Size
	}
	return size, nil
}

func inMegabytes(bytes int64) string {
	return fmt.Sprintf("%.1f MB", float64(bytes)/1e6)
}
