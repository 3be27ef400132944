package docs

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kwok-dra/kwok-dra/pkg/dractl"
	"github.com/kwok-dra/kwok-dra/pkg/dractl/cli"
	"github.com/kwok-dra/kwok-dra/test/e2e/docs/page"
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
	command := dractl.New(cli.Name, cli.Streams{In: strings.NewReader(""), Out: &out, ErrOut: &errOut})
	command.SetArgs([]string{"schedule", "-f", dir})
	require.NoError(t, command.ExecuteContext(t.Context()), out.String()+errOut.String())
	require.Contains(t, out.String(), "gpu=gpu.nvidia.com/my-node/gpu-")
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
