package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/kwok-dra/kwok-dra/test/tools/release/image"
	"github.com/kwok-dra/kwok-dra/test/tools/release/sbom"
	"github.com/kwok-dra/kwok-dra/test/tools/release/source"
	"github.com/kwok-dra/kwok-dra/test/tools/release/tarball"
)

// programs are the commands that users get.
var programs = []string{"kwok-dra", "kwok-dractl"}

// pluginLinks are the names under which kubectl finds kwok-dractl, and what
// completes it.
var pluginLinks = []string{"kubectl-dra", "kubectl_complete-dra"}

// binaryPath is the path of a program that is compiled.
func (r *release) binaryPath(platform source.Platform, program string) string {
	return filepath.Join(r.work, platform.OS, platform.Architecture, program)
}

func (r *release) compilePrograms(ctx context.Context) error {
	for _, platform := range r.platforms {
		fmt.Fprintf(r.out, "Compiling for %s (a minute or two for the first time, seconds later) ...\n", platform)
		for _, program := range programs {
			if err := r.Compile(ctx, platform, program, r.binaryPath(platform, program)); err != nil {
				return err
			}
		}
	}
	return nil
}

// packArchives packs the programs of each platform.
func (r *release) packArchives(context.Context) error {
	license, err := os.ReadFile(filepath.Join(r.Root, "LICENSE"))
	if err != nil {
		return err
	}
	for _, platform := range r.platforms {
		entries := []tarball.Entry{{Name: "LICENSE", Content: license}}
		for _, program := range programs {
			content, err := os.ReadFile(r.binaryPath(platform, program))
			if err != nil {
				return err
			}
			entries = append(entries, tarball.Entry{Name: program, Content: content, Executable: true})
		}
		for _, link := range pluginLinks {
			entries = append(entries, tarball.Entry{Name: link, Link: "kwok-dractl"})
		}
		name := fmt.Sprintf("kwok-dra-%s-%s-%s.tar.gz", r.Version, platform.OS, platform.Architecture)
		if err := tarball.Write(r.distPath(name), entries, r.Date); err != nil {
			return fmt.Errorf("write %s: %w", name, err)
		}
	}
	return nil
}

// writeImage writes the image of the sidecar, which is for Linux.
func (r *release) writeImage(context.Context) error {
	binaries := map[string]string{}
	for _, platform := range r.platforms {
		if platform.OS == "linux" {
			binaries[platform.Architecture] = r.binaryPath(platform, "kwok-dra")
		}
	}
	index, err := image.Index(r.Source, binaries)
	if err != nil {
		return err
	}
	digest, err := index.Digest()
	if err != nil {
		return fmt.Errorf("digest of the image: %w", err)
	}
	r.digest = digest.String()
	return image.Write(r.Source, index, r.distPath("kwok-dra-"+r.Version+"-image.tar"))
}

// writeSBOMs writes what the programs consist of, as they say themselves.
func (r *release) writeSBOMs(context.Context) error {
	var read []*sbom.Program
	for _, platform := range r.platforms {
		for _, program := range programs {
			found, err := sbom.Read(program, r.binaryPath(platform, program))
			if err != nil {
				return err
			}
			read = append(read, found)
		}
	}
	content, err := sbom.Encode(r.Source, read)
	if err != nil {
		return err
	}
	return os.WriteFile(r.distPath("kwok-dra-"+r.Version+"-sbom.cdx.json"), content, 0o644)
}
