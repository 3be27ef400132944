package main

import (
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"
	"sigs.k8s.io/yaml"

	"github.com/kwok-dra/kwok-dra/test/internal/sidecar"
)

// TestWorkflow: the workflow that releases a tag can be read, and pushes the archive that this
// program makes, by the name that it puts into the manifests.
func TestWorkflow(t *testing.T) {
	t.Parallel()
	content, err := os.ReadFile(filepath.Join(sidecar.Root(), ".github", "workflows", "release.yaml"))
	require.NoError(t, err)
	var workflow struct {
		Name        string            `json:"name"`
		On          any               `json:"on"`
		Permissions map[string]string `json:"permissions"`
		Env         map[string]string `json:"env"`
		Jobs        map[string]struct {
			RunsOn string `json:"runs-on"`
			Steps  []struct {
				Name string            `json:"name"`
				Uses string            `json:"uses"`
				With map[string]any    `json:"with"`
				Env  map[string]string `json:"env"`
				Run  string            `json:"run"`
			} `json:"steps"`
		} `json:"jobs"`
	}
	require.NoError(t, yaml.UnmarshalStrict(content, &workflow))
	require.Equal(t, "write", workflow.Permissions["packages"])
	commands := ""
	for _, step := range workflow.Jobs["release"].Steps {
		require.NotEqual(t, step.Uses == "", step.Run == "", "a step uses an action or runs commands: %+v", step)
		commands += step.Run + "\n"
	}
	require.Contains(t, commands, `make release VERSION="$VERSION" IMAGE="$IMAGE"`)
	require.Contains(t, commands, `"oci-archive:dist/kwok-dra-$VERSION-image.tar" "docker://$IMAGE:$VERSION"`)
	require.Contains(t, commands, "--notes-file dist/"+notesFile)
	for _, variable := range regexp.MustCompile(`\$([A-Z]+)\b`).FindAllStringSubmatch(commands, -1) {
		require.Contains(t, []string{"VERSION", "IMAGE", "PASSWORD"}, variable[1], "a variable that nothing sets")
	}
}
