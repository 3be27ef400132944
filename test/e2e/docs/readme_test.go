package docs

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kwok-dra/kwok-dra/internal/dractl"
	"github.com/kwok-dra/kwok-dra/internal/dractl/cli"
	"github.com/kwok-dra/kwok-dra/test/e2e/docs/page"
	"github.com/kwok-dra/kwok-dra/test/internal/sidecar"
	"github.com/kwok-dra/kwok-dra/test/tools/demo/world"
)

// TestReadmeExampleSuitsTheClassOfItsDriver has a claim of NVIDIA's own DeviceClass
// served by the nodes of README.md. A device on which the selector of a class fails
// keeps every Pod that claims this class from every node, also in the cluster of the
// demo, which has the class.
func TestReadmeExampleSuitsTheClassOfItsDriver(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for name, text := range map[string]string{
		"h100.yaml": readmeFile(t, "h100.yaml"), "profile.yaml": generated(t, "nvidia-h100"), "claim.yaml": claimOfNVIDIA,
	} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}

	var out, errOut bytes.Buffer
	command := dractl.New(cli.Streams{In: strings.NewReader(""), Out: &out, ErrOut: &errOut})
	command.SetArgs([]string{"schedule", "-f", dir})
	require.NoError(t, command.ExecuteContext(t.Context()), out.String()+errOut.String())
	require.Contains(t, out.String(), "gpu=gpu.nvidia.com/my-node/gpu-")
}

// TestReadmeOnTheCore follows README.md with a sidecar that has no extension, and the rights
// of the core alone.
func TestReadmeOnTheCore(t *testing.T) {
	t.Parallel()
	core := filepath.Join(t.TempDir(), "core")
	require.NoError(t, sidecar.Build(filepath.Join(sidecar.Root(), "test"), core, "./internal/core"))
	demo, err := world.Start(t.Context(), world.Options{AnyPort: true})
	require.NoError(t, err)
	t.Cleanup(func() { demo.Cluster.StopAfter(t) })
	require.NoError(t, demo.AwaitNodes(t.Context()))
	require.NoError(t, demo.RunPods(t.Context()))
	require.NoError(t, demo.Sidecar.Stop())
	for _, extension := range []string{"explaining", "device-taints", "real-drivers"} {
		_, err := demo.Cluster.Kubectl(t.Context(), "delete", "clusterrolebinding", "kwok-dra-"+extension)
		require.NoError(t, err)
	}

	arguments := demo.Sidecar.Arguments()
	if view := slices.Index(arguments, "--container-view"); view >= 0 {
		arguments = slices.Delete(arguments, view, view+2)
	}
	demo.Sidecar, err = sidecar.LaunchProgram(demo.Cluster, core, arguments...)
	require.NoError(t, err)
	require.NoError(t, demo.Sidecar.WaitReady(t.Context()))
	follow(t, demo, "README.md", readPages(t)["README.md"])

	log, err := os.ReadFile(demo.Sidecar.Log)
	require.NoError(t, err)
	require.NotContains(t, string(log), "is forbidden")
}

// readmeFile is a file of README.md.
func readmeFile(t *testing.T, name string) string {
	t.Helper()
	for _, step := range readPages(t)["README.md"].Steps {
		if step.Kind == page.File && step.File == name {
			return step.Text
		}
	}
	require.FailNow(t, "README.md has no file "+name)
	return ""
}

const claimOfNVIDIA = `apiVersion: resource.k8s.io/v1
kind: ResourceClaim
metadata: {name: any}
spec:
  devices:
    requests:
    - name: gpu
      exactly: {deviceClassName: gpu.nvidia.com}
---
apiVersion: v1
kind: Pod
metadata: {name: other}
spec:
  nodeSelector: {gpu: h100}
  resourceClaims: [{name: gpu, resourceClaimName: any}]
  containers:
  - name: main
    image: training
    resources: {claims: [{name: gpu}]}
`
