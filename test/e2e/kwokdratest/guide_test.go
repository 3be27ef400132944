package kwokdratest_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kwok-dra/kwok-dra/test/cluster"
	"github.com/kwok-dra/kwok-dra/test/internal/sidecar"
)

// envtest stands for controller-runtime's package, which is no module of this project: its
// API server is that of KUBECONFIG.
const envtest = `package envtest

import (
	"os"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

type Environment struct{}

func (*Environment) Start() (*rest.Config, error) { return clientcmd.BuildConfigFromFlags("", os.Getenv("KUBECONFIG")) }
func (*Environment) Stop() error                  { return nil }
`

const h100 = `apiVersion: dra.kwok.x-k8s.io/v1alpha1
kind: ResourcePoolTemplate
metadata: {name: h100}
spec:
  driver: gpu.example.com
  nodeSelector: {nodeSelectorTerms: [{matchExpressions: [{key: accelerator, operator: In, values: [h100]}]}]}
  devices: [{name: gpu, count: 8}]
`

// TestGuide: the test that the guide shows passes as it is printed.
func TestGuide(t *testing.T) {
	t.Parallel()
	const path = "sigs.k8s.io/controller-runtime/pkg/envtest"
	const folder = "docs/testdata-of-guide"
	page, err := os.ReadFile(filepath.Join(sidecar.Root(), "docs", "guides", "go-tests.md"))
	require.NoError(t, err)
	block := regexp.MustCompile("(?ms)^```go\n(.*?)^```$").FindSubmatch(page)
	require.NotNil(t, block)
	require.Contains(t, string(block[1]), path)

	dir := t.TempDir()
	replace := map[string]string{}
	for file, content := range map[string]string{
		"guide_test.go":      strings.Replace(string(block[1]), path, "github.com/kwok-dra/kwok-dra/"+folder+"/envtest", 1),
		"envtest/envtest.go": envtest,
	} {
		written := filepath.Join(dir, filepath.Base(file))
		require.NoError(t, os.WriteFile(written, []byte(content), 0o600))
		replace[filepath.Join(sidecar.Root(), folder, file)] = written
	}
	overlay, err := json.Marshal(map[string]any{"Replace": replace})
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "overlay.json"), overlay, 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "gpus.yaml"), []byte(h100), 0o600))

	program := filepath.Join(dir, "guide.test")
	compile := exec.CommandContext(t.Context(), "go", "test", "-c", "-vet=off", "-overlay", filepath.Join(dir, "overlay.json"), "-o", program, "./"+folder)
	compile.Dir = sidecar.Root()
	output, err := compile.CombinedOutput()
	require.NoError(t, err, string(output))

	api := cluster.ForTest(t, cluster.Options{Disable: []string{cluster.Kwok, cluster.Scheduler, cluster.ControllerManager}})
	run := exec.CommandContext(t.Context(), program, "-test.v")
	run.Dir, run.Env = dir, append(os.Environ(), "KUBECONFIG="+api.Kubeconfig())
	output, err = run.CombinedOutput()
	require.NoError(t, err, string(output))
	require.Contains(t, string(output), "--- PASS: TestMyController")
}
