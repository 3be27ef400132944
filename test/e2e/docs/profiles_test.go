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

	"github.com/kwok-dra/kwok-dra/internal/dractl"
	"github.com/kwok-dra/kwok-dra/internal/dractl/cli"
	"github.com/kwok-dra/kwok-dra/test/internal/sidecar"
)

var (
	// component is a profile in the kustomization of the page about profiles.
	component = regexp.MustCompile(`(?m)^- \.\./kustomize/profiles/(\S+)\n`)
	// classOfRequest is a DeviceClass that a claim names.
	classOfRequest = regexp.MustCompile(`deviceClassName: (\S+)`)
)

// TestProfiles has all recipes of the page about profiles work with every profile
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
			recipes := map[string]string{"alone": rendered(t, filepath.Join(profiles, name)), "kustomization": kustomized(t, name), "generate": generated(t, dashed)}
			for recipe, made := range recipes {
				require.Contains(t, made, "\n  name: "+dashed+"\n", recipe)
				made += string(sample) // which has those of a chart
				for _, class := range classOfRequest.FindAllStringSubmatch(string(sample), -1) {
					require.Regexp(t, `(?m)^  name: `+regexp.QuoteMeta(strings.Trim(class[1], `"'`))+`$`, made, recipe)
				}
			}
		})
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

// kustomized renders the kustomization of the page with one profile.
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
	require.NoError(t, os.CopyFS(filepath.Join(dir, "kustomize"), os.DirFS(filepath.Join(sidecar.Root(), "kustomize"))))
	kustomization += "- ../kustomize/profiles/" + profile + "\n"
	own := filepath.Join(dir, "profiles")
	require.NoError(t, os.Mkdir(own, 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(own, "kustomization.yaml"), []byte(kustomization), 0o600))
	return rendered(t, own)
}

func rendered(t *testing.T, dir string) string {
	t.Helper()
	objects, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(filesys.MakeFsOnDisk(), dir)
	require.NoError(t, err)
	text, err := objects.AsYaml()
	require.NoError(t, err)
	return string(text)
}

// generated is what kwok-dractl generate prints for a profile.
func generated(t *testing.T, profile string) string {
	t.Helper()
	var out, errOut bytes.Buffer
	command := dractl.New(cli.Streams{In: strings.NewReader(""), Out: &out, ErrOut: &errOut})
	command.SetArgs([]string{"generate", "--profile", profile, "--nodes", "1"})
	require.NoError(t, command.ExecuteContext(t.Context()), errOut.String())
	require.Contains(t, out.String(), "kind: Node\n")
	return out.String()
}
