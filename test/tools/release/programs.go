package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/kwok-dra/kwok-dra/test/tools/release/image"
	"github.com/kwok-dra/kwok-dra/test/tools/release/sbom"
	"github.com/kwok-dra/kwok-dra/test/tools/release/source"
	"github.com/kwok-dra/kwok-dra/test/tools/release/tarball"
)

// plugin is the plugin of kubectl, which runs wherever kubectl does.
const plugin = "kubectl-dra"

// programsOf are the commands that users of a platform get.
func programsOf(platform source.Platform) []string {
	if platform.OS == "windows" {
		return []string{plugin}
	}
	return []string{"kwok-dra", "kwok-dractl", plugin}
}

// fileOf is the name of a program on a platform.
func fileOf(platform source.Platform, program string) string {
	if platform.OS == "windows" {
		return program + ".exe"
	}
	return program
}

// binaryPath is the path of a program that is compiled.
func (r *release) binaryPath(platform source.Platform, program string) string {
	return filepath.Join(r.work, platform.OS, platform.Architecture, fileOf(platform, program))
}

func (r *release) compilePrograms(ctx context.Context) error {
	for _, platform := range r.platforms {
		fmt.Fprintf(r.out, "Compiling for %s (a minute or two for the first time, seconds later) ...\n", platform)
		for _, program := range programsOf(platform) {
			if err := r.Compile(ctx, platform, program, r.binaryPath(platform, program)); err != nil {
				return err
			}
		}
	}
	return nil
}

// archiveName is the name of the archive of a platform that is called by one of its programs.
func (r *release) archiveName(program string, platform source.Platform) string {
	return fmt.Sprintf("%s-%s-%s-%s.tar.gz", program, r.Version, platform.OS, platform.Architecture)
}

// packArchives packs the programs of each platform, and the plugin of kubectl by itself.
func (r *release) packArchives(context.Context) error {
	license, err := os.ReadFile(filepath.Join(r.Root, "LICENSE"))
	if err != nil {
		return err
	}
	for _, platform := range r.platforms {
		entries := []tarball.Entry{{Name: "LICENSE", Content: license}}
		for _, program := range programsOf(platform) {
			content, err := os.ReadFile(r.binaryPath(platform, program))
			if err != nil {
				return err
			}
			entries = append(entries, tarball.Entry{Name: fileOf(platform, program), Content: content, Executable: true})
		}
		// krew unpacks no links, so the archive of the plugin has none.
		ofPlugin := slices.IndexFunc(entries, func(entry tarball.Entry) bool { return entry.Name == fileOf(platform, plugin) })
		if err := r.writeArchive(plugin, platform, []tarball.Entry{entries[0], entries[ofPlugin]}); err != nil {
			return err
		}
		if platform.OS == "windows" {
			continue
		}
		// kubectl asks a program of this name what completes the arguments of the plugin.
		entries = append(entries, tarball.Entry{Name: "kubectl_complete-dra", Link: plugin})
		if err := r.writeArchive("kwok-dra", platform, entries); err != nil {
			return err
		}
	}
	return nil
}

func (r *release) writeArchive(program string, platform source.Platform, entries []tarball.Entry) error {
	name := r.archiveName(program, platform)
	if err := tarball.Write(r.distPath(name), entries, r.Date); err != nil {
		return fmt.Errorf("write %s: %w", name, err)
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
		for _, program := range programsOf(platform) {
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
