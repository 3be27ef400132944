package main

import (
	"context"
	"crypto/sha256"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/kwok-dra/kwok-dra/test/tools/release/source"
)

// allPlatforms are those of the programs. The image is for those of Linux, and only the plugin of kubectl for those
// of Windows.
var allPlatforms = []source.Platform{
	{OS: "linux", Architecture: "amd64"},
	{OS: "linux", Architecture: "arm64"},
	{OS: "darwin", Architecture: "amd64"},
	{OS: "darwin", Architecture: "arm64"},
	{OS: "windows", Architecture: "amd64"},
	{OS: "windows", Architecture: "arm64"},
}

// semantic is a semantic version without build metadata, which the tag of an image
// cannot have.
var semantic = regexp.MustCompile(`^v(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)(-[0-9A-Za-z]+([.-][0-9A-Za-z]+)*)?$`)

// release is one that is being made.
type release struct {
	*source.Source
	platforms []source.Platform
	// work is a directory for what is no part of the release.
	work string
	// digest is that of the image, of all platforms.
	digest string
	out    io.Writer
}

// makeRelease makes dist in the repository at root and tells out about it.
func makeRelease(ctx context.Context, root, version string, platforms []source.Platform, out io.Writer) error {
	if !semantic.MatchString(version) {
		return fmt.Errorf("VERSION is %q: give a semantic version, as in: make release VERSION=v1.2.3", version)
	}
	s, err := source.Read(ctx, root, version)
	if err != nil {
		return err
	}
	if changed, err := s.Changed(ctx); err != nil {
		return err
	} else if changed {
		fmt.Fprintf(out, "Warning: files differ from commit %.12s, so nobody can make the same release from it.\n", s.Revision)
	}
	work, err := os.MkdirTemp("", "kwok-dra-release-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(work) }()
	r := &release{Source: s, platforms: platforms, work: work, out: out}
	return r.makeAll(ctx)
}

// makeAll makes all files, the checksums last: without these a release is not
// complete.
func (r *release) makeAll(ctx context.Context) error {
	if err := os.RemoveAll(r.distPath()); err != nil {
		return err
	}
	if err := os.Mkdir(r.distPath(), 0o755); err != nil {
		return err
	}
	for _, step := range []func(context.Context) error{r.writeNotes, r.compilePrograms, r.packArchives, r.writeKrewManifest, r.writeImage, r.writeSBOMs, r.writeManifests, r.writeChecksums} {
		if err := step(ctx); err != nil {
			return fmt.Errorf("release %s: %w", r.Version, err)
		}
	}
	return nil
}

// distPath is that of a file in dist.
func (r *release) distPath(elements ...string) string {
	return filepath.Join(append([]string{r.Root, "dist"}, elements...)...)
}

// writeChecksums writes those of all files, in the format of sha256sum, and lists the
// files.
func (r *release) writeChecksums(context.Context) error {
	files, err := os.ReadDir(r.distPath())
	if err != nil {
		return err
	}
	var sums strings.Builder
	fmt.Fprintf(r.out, "\nRelease %s of commit %.12s:\n", r.Version, r.Revision)
	for _, file := range files {
		content, err := os.ReadFile(r.distPath(file.Name()))
		if err != nil {
			return err
		}
		fmt.Fprintf(&sums, "%x  %s\n", sha256.Sum256(content), file.Name())
		fmt.Fprintf(r.out, "  dist/%-42s %8.1f kB\n", file.Name(), float64(len(content))/1e3)
	}
	fmt.Fprintln(r.out, "  dist/SHA256SUMS")
	return os.WriteFile(r.distPath("SHA256SUMS"), []byte(sums.String()), 0o644)
}
