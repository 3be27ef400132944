package docs

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"

	"github.com/kwok-dra/kwok-dra/pkg/dractl"
	"github.com/kwok-dra/kwok-dra/pkg/dractl/cli"
	"github.com/kwok-dra/kwok-dra/test/internal/sidecar"
)

var (
	// component is a profile in the kustomization of the page about profiles.
	component = regexp.MustCompile(`(?m)^- kwok-dra/kustomize/profiles/(\S+)\n`)
	// classOfRequest is a DeviceClass that a claim names.
	classOfRequest = regexp.MustCompile(`deviceClassName: (\S+)`)
)

// TestProfiles has both recipes of the page about profiles work with every profile
// by its name alone: its template is there, and every DeviceClass that its sample
// names and does not have.
func TestProfiles(t *testing.T) {
	t.Parallel()
	profiles := filepath.Join(sidecar.Root(), "kustomize", "profiles")
	names := profileNames(t, profiles)
	require.Contains(t, names, "amd-mi300x/auto-partition")
	for _, name := range names {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			sample, err := os.ReadFile(filepath.Join(profiles, name, "sample.yaml"))
			require.NoError(t, err)
			dashed := strings.ReplaceAll(name, "/", "-")
			for recipe, made := range map[string]string{"kustomization": kustomized(t, name), "generate": generated(t, dashed)} {
				require.Contains(t, made, "\n  name: "+dashed+"\n", recipe)
				made += string(sample) // which has those of a chart
				for _, class := range classOfRequest.FindAllStringSubmatch(string(sample), -1) {
					require.Regexp(t, `(?m)^  name: `+regexp.QuoteMeta(strings.Trim(class[1], `"'`))+`$`, made, recipe)
				}
			}
		})
	}
}

// TestProfileAloneIsExplained: a profile is no kustomization of its own. What kubectl says of one
// is in the pages, with what to do.
func TestProfileAloneIsExplained(t *testing.T) {
	t.Parallel()
	const says = "cannot merge or replace"
	_, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(filesys.MakeFsOnDisk(), filepath.Join(sidecar.Root(), "kustomize", "profiles", "nvidia-h100"))
	require.ErrorContains(t, err, says)
	for _, page := range []string{"docs/reference/profiles.md", "docs/troubleshooting.md"} {
		content, err := os.ReadFile(filepath.Join(sidecar.Root(), page))
		require.NoError(t, err)
		require.Contains(t, string(content), says, page)
	}
}

// profileNames are the directories of all profiles.
func profileNames(t *testing.T, profiles string) []string {
	t.Helper()
	var names []string
	for _, depth := range []string{"*", "*/*"} {
		files, err := filepath.Glob(filepath.Join(profiles, depth, "template.yaml"))
		require.NoError(t, err)
		for _, file := range files {
			name, err := filepath.Rel(profiles, filepath.Dir(file))
			require.NoError(t, err)
			names = append(names, filepath.ToSlash(name))
		}
	}
	return names
}

// kustomized renders the kustomization of the page with one profile. What the
// ConfigMap holds is not indented, as it is in a file.
func kustomized(t *testing.T, profile string) string {
	t.Helper()
	read := readPages(t)["docs/reference/profiles.md"]
	require.NotNil(t, read)
	kustomization := ""
	for _, step := range read.Steps {
		if component.MatchString(step.Text) {
			kustomization = component.ReplaceAllString(step.Text, "")
		}
	}
	require.NotEmpty(t, kustomization, "the page has no kustomization with profiles")
	dir, err := filepath.EvalSymlinks(t.TempDir())
	require.NoError(t, err)
	require.NoError(t, os.CopyFS(filepath.Join(dir, "kwok-dra", "kustomize"), os.DirFS(filepath.Join(sidecar.Root(), "kustomize"))))
	kustomization += "- kwok-dra/kustomize/profiles/" + profile + "\n"
	require.NoError(t, os.WriteFile(filepath.Join(dir, "kustomization.yaml"), []byte(kustomization), 0o600))
	rendered, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(filesys.MakeFsOnDisk(), dir)
	require.NoError(t, err)
	text, err := rendered.AsYaml()
	require.NoError(t, err)
	return strings.ReplaceAll(string(text), "\n    ", "\n")
}

// generated is what kwok-dractl generate prints for a profile.
func generated(t *testing.T, profile string) string {
	t.Helper()
	var out, errOut bytes.Buffer
	command := dractl.New(cli.Name, cli.Streams{In: strings.NewReader(""), Out: &out, ErrOut: &errOut})
	command.SetArgs([]string{"generate", "--profile", profile, "--nodes", "1"})
	require.NoError(t, command.ExecuteContext(t.Context()), errOut.String())
	require.Contains(t, out.String(), "kind: Node\n")
	return out.String()
}
