package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kwok-dra/kwok-dra/test/internal/sidecar"
	"github.com/kwok-dra/kwok-dra/test/tools/release/image"
	"github.com/kwok-dra/kwok-dra/test/tools/release/source"
)

// TestDockerfile requires that the Dockerfile makes images like those of this
// command.
func TestDockerfile(t *testing.T) {
	t.Parallel()
	dockerfile := readDockerfile(t, "amd64")
	root := t.TempDir()
	s := &source.Source{Root: root, Version: "unknown", Revision: "unknown"}
	require.NoError(t, os.WriteFile(filepath.Join(root, "kwok-dra"), []byte("binary"), 0o600))
	built, err := image.For(s, "amd64", filepath.Join(root, "kwok-dra"))
	require.NoError(t, err)
	config, err := built.ConfigFile()
	require.NoError(t, err)

	require.Equal(t, []string{"scratch"}, dockerfile["FROM"])
	require.Equal(t, []string{config.Config.User}, dockerfile["USER"])
	require.Len(t, dockerfile["ENTRYPOINT"], 1)
	var entrypoint []string
	require.NoError(t, json.Unmarshal([]byte(dockerfile["ENTRYPOINT"][0]), &entrypoint))
	require.Equal(t, config.Config.Entrypoint, entrypoint)
	require.Equal(t, config.Config.Labels, labelsOf(dockerfile["LABEL"]))
	require.Equal(t, []string{"--chmod=755 bin/linux/amd64/kwok-dra /kwok-dra"}, dockerfile["COPY"])
	for _, instruction := range []string{"RUN", "ADD", "CMD", "ENV"} {
		require.Empty(t, dockerfile[instruction], instruction)
	}
}

// readDockerfile returns the arguments of all instructions, by instruction, with
// the defaults of build arguments put in.
func readDockerfile(t *testing.T, architecture string) map[string][]string {
	content, err := os.ReadFile(filepath.Join(sidecar.Root(), "Dockerfile"))
	require.NoError(t, err)
	instructions := map[string][]string{}
	values := map[string]string{"TARGETARCH": architecture}
	for line := range strings.SplitSeq(strings.ReplaceAll(string(content), "\\\n", ""), "\n") {
		instruction, arguments, _ := strings.Cut(line, " ")
		if instruction == "" || instruction == "#" {
			continue
		}
		arguments = os.Expand(arguments, func(name string) string { return values[name] })
		instructions[instruction] = append(instructions[instruction], arguments)
		if name, value, found := strings.Cut(arguments, "="); found && instruction == "ARG" {
			values[name] = value
		}
	}
	return instructions
}

func labelsOf(instructions []string) map[string]string {
	labels := map[string]string{}
	for _, label := range regexp.MustCompile(`(\S+)="([^"]*)"`).FindAllStringSubmatch(strings.Join(instructions, " "), -1) {
		labels[label[1]] = label[2]
	}
	return labels
}
