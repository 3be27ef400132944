package main

import (
	"archive/tar"
	"bytes"
	"debug/elf"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/types"
	"github.com/google/go-containerregistry/pkg/v1/validate"
	"github.com/stretchr/testify/require"

	"github.com/kwok-dra/kwok-dra/test/tools/release/snapshot"
)

const testVersion = "v1.2.3-test"

func TestImage(t *testing.T) {
	t.Parallel()
	clone := snapshot.Commit(t)
	output := build(t, clone)
	index := readArchive(t, filepath.Join(clone, archivePath(testVersion)))
	images := imagesOf(t, index)

	t.Run("is valid and for all platforms", func(t *testing.T) {
		t.Parallel()
		require.NoError(t, validate.Index(index))
		require.Len(t, images, len(architectures))
		for _, architecture := range architectures {
			require.Contains(t, images, "linux/"+architecture)
		}
	})
	t.Run("is reported", func(t *testing.T) {
		t.Parallel()
		digest, err := index.Digest()
		require.NoError(t, err)
		require.Contains(t, output, "Digest   "+digest.String()+"\n")
		require.Contains(t, output, "kind load image-archive bin/kwok-dra-"+testVersion+".tar\n")
	})
	t.Run("says what it is and runs as nobody special", func(t *testing.T) {
		t.Parallel()
		for platform, image := range images {
			checkConfig(t, platform, image, snapshot.Git(t, clone, "rev-parse", "HEAD"))
		}
	})
	t.Run("has one static binary", func(t *testing.T) {
		t.Parallel()
		machines := map[string]elf.Machine{"linux/amd64": elf.EM_X86_64, "linux/arm64": elf.EM_AARCH64}
		for platform, image := range images {
			checkStatic(t, soleFile(t, image), machines[platform])
		}
	})
	t.Run("runs", func(t *testing.T) {
		t.Parallel()
		image, found := images[runtime.GOOS+"/"+runtime.GOARCH]
		if !found {
			t.Skip("there is no image for this machine")
		}
		binary := filepath.Join(t.TempDir(), "kwok-dra")
		content := soleFile(t, image)
		syscall.ForkLock.RLock() // a process that is started meanwhile has the file open for writing, and such does not run
		err := os.WriteFile(binary, content, 0o700)
		syscall.ForkLock.RUnlock()
		require.NoError(t, err)
		// An image has no environment to speak of.
		command := exec.CommandContext(t.Context(), binary, "--version")
		command.Env = []string{"HOME=/"}
		version, err := command.Output()
		require.NoError(t, err)
		require.Equal(t, "kwok-dra "+testVersion+"\n", string(version))
	})
	t.Run("is the same from another clone", func(t *testing.T) {
		t.Parallel()
		other := snapshot.Clone(t, clone)
		require.Equal(t, output, build(t, other))
		same := bytes.Equal(readFile(t, clone, archivePath(testVersion)), readFile(t, other, archivePath(testVersion)))
		require.True(t, same, "the archives have the same digests, and yet they differ")
	})
}

func TestVersions(t *testing.T) {
	t.Parallel()
	for version, problem := range map[string]string{
		"":             "no version",
		"v1.2.3+build": `version "v1.2.3+build" cannot be the tag of an image`,
	} {
		err := buildImage(t.Context(), t.TempDir(), version, io.Discard)
		require.ErrorContains(t, err, problem)
		require.ErrorContains(t, err, "make image VERSION=v1.2.3")
	}
}

func TestNoClone(t *testing.T) {
	t.Parallel()
	require.ErrorContains(t, buildImage(t.Context(), t.TempDir(), testVersion, io.Discard), "must be a git clone")
}

func checkConfig(t *testing.T, platform string, image v1.Image, revision string) {
	config, err := image.ConfigFile()
	require.NoError(t, err)
	require.Equal(t, platform, config.OS+"/"+config.Architecture)
	require.Equal(t, []string{"/kwok-dra"}, config.Config.Entrypoint)
	require.Empty(t, config.Config.Cmd)
	// Kubernetes tells that a user is not root by its number only.
	require.Regexp(t, `^[1-9]\d*:[1-9]\d*$`, config.Config.User)
	require.Equal(t, map[string]string{
		"org.opencontainers.image.title":       "kwok-dra",
		"org.opencontainers.image.description": "Gives the fake nodes of KWOK fake devices",
		"org.opencontainers.image.source":      "https://github.com/kwok-dra/kwok-dra",
		"org.opencontainers.image.licenses":    "Apache-2.0",
		"org.opencontainers.image.revision":    revision,
		"org.opencontainers.image.version":     testVersion,
	}, config.Config.Labels)
	require.Equal(t, snapshot.Date, config.Created.UTC().Format("2006-01-02T15:04:05Z"))
}

// checkStatic requires a program that needs no other file, not even a loader.
func checkStatic(t *testing.T, binary []byte, machine elf.Machine) {
	program, err := elf.NewFile(bytes.NewReader(binary))
	require.NoError(t, err)
	require.Equal(t, machine, program.Machine)
	require.Equal(t, elf.ET_EXEC, program.Type)
	for _, segment := range program.Progs {
		require.NotEqual(t, elf.PT_INTERP, segment.Type)
		require.NotEqual(t, elf.PT_DYNAMIC, segment.Type)
	}
}

// build builds the image and returns what is told about it.
func build(t *testing.T, root string) string {
	var output strings.Builder
	require.NoError(t, buildImage(t.Context(), root, testVersion, &output))
	return output.String()
}

// readArchive returns the index for all platforms.
func readArchive(t *testing.T, file string) v1.ImageIndex {
	dir := t.TempDir()
	for name, content := range untar(t, bytes.NewReader(readFile(t, file))) {
		path := filepath.Join(dir, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o700))
		require.NoError(t, os.WriteFile(path, content, 0o600))
	}
	top, err := layout.ImageIndexFromPath(dir)
	require.NoError(t, err)
	manifest, err := top.IndexManifest()
	require.NoError(t, err)
	require.Len(t, manifest.Manifests, 1)
	entry := manifest.Manifests[0]
	require.Equal(t, types.OCIImageIndex, entry.MediaType)
	require.Equal(t, map[string]string{
		"io.containerd.image.name":          "docker.io/kwok-dra/kwok-dra:" + testVersion,
		"org.opencontainers.image.ref.name": testVersion,
	}, entry.Annotations)
	index, err := top.ImageIndex(entry.Digest)
	require.NoError(t, err)
	return index
}

// imagesOf returns the images of an index by their platforms.
func imagesOf(t *testing.T, index v1.ImageIndex) map[string]v1.Image {
	manifest, err := index.IndexManifest()
	require.NoError(t, err)
	images := map[string]v1.Image{}
	for _, entry := range manifest.Manifests {
		images[entry.Platform.String()], err = index.Image(entry.Digest)
		require.NoError(t, err)
	}
	return images
}

// soleFile returns the binary, which must be all there is in an image.
func soleFile(t *testing.T, image v1.Image) []byte {
	layers, err := image.Layers()
	require.NoError(t, err)
	require.Len(t, layers, 1)
	content, err := layers[0].Uncompressed()
	require.NoError(t, err)
	defer func() { _ = content.Close() }()
	files := untar(t, content)
	require.Len(t, files, 1)
	require.Contains(t, files, "kwok-dra")
	return files["kwok-dra"]
}

// untar returns the files of a tar, which must be alike on all machines.
func untar(t *testing.T, archive io.Reader) map[string][]byte {
	files := map[string][]byte{}
	last := ""
	for reader := tar.NewReader(archive); ; {
		header, err := reader.Next()
		if errors.Is(err, io.EOF) {
			return files
		}
		require.NoError(t, err)
		require.Less(t, last, header.Name, "entries are not sorted")
		require.Equal(t, snapshot.Date, header.ModTime.UTC().Format("2006-01-02T15:04:05Z"))
		require.Zero(t, header.Uid+header.Gid)
		last = header.Name
		if header.Typeflag == tar.TypeDir {
			continue
		}
		files[header.Name], err = io.ReadAll(reader)
		require.NoError(t, err)
	}
}

func readFile(t *testing.T, elements ...string) []byte {
	content, err := os.ReadFile(filepath.Join(elements...))
	require.NoError(t, err)
	return content
}
