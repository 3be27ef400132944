// Command image builds the container image of kwok-dra without a container
// engine: it compiles the sidecar for every platform and writes one archive, an
// OCI image layout. The same commit gives the same image wherever it is built.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"

	"github.com/kwok-dra/kwok-dra/test/internal/sidecar"
	"github.com/kwok-dra/kwok-dra/test/tools/release/image"
	"github.com/kwok-dra/kwok-dra/test/tools/release/source"
)

// architectures of the image. All are of Linux.
var architectures = []string{"amd64", "arm64"}

func main() {
	version := flag.String("version", "", "the version of the sidecar, and the tag of its image")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := buildImage(ctx, sidecar.Root(), *version, os.Stdout)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "image:", err)
		os.Exit(1)
	}
}

// buildImage builds the image from the repository at root and tells out about it.
func buildImage(ctx context.Context, root, version string, out io.Writer) error {
	if err := checkTag(version); err != nil {
		return err
	}
	s, err := source.Read(ctx, root, version)
	if err != nil {
		return err
	}
	binaries := map[string]string{}
	for _, architecture := range architectures {
		fmt.Fprintf(out, "Compiling for linux/%s (a minute or two for the first time, seconds later) ...\n", architecture)
		// Where the Dockerfile looks for it.
		binaries[architecture] = filepath.Join(root, "bin", "linux", architecture, "kwok-dra")
		if err := s.Compile(ctx, source.Platform{OS: "linux", Architecture: architecture}, "kwok-dra", binaries[architecture]); err != nil {
			return err
		}
	}
	index, err := image.Index(s, binaries)
	if err != nil {
		return err
	}
	file := archivePath(version)
	if err := image.Write(s, index, filepath.Join(root, file)); err != nil {
		return fmt.Errorf("write %s: %w", file, err)
	}
	return printReport(out, root, version, index)
}

// archivePath is where the archive of a version is, in the repository.
func archivePath(version string) string {
	return filepath.Join("bin", "kwok-dra-"+version+".tar")
}

func checkTag(version string) error {
	if version == "" {
		return errors.New("no version: build in a git clone, or give one, as in: make image VERSION=v1.2.3")
	}
	if err := image.CheckTag(version); err != nil {
		return fmt.Errorf("version %q cannot be the tag of an image, give another, as in make image VERSION=v1.2.3: %w", version, err)
	}
	return nil
}
