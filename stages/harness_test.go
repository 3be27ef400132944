package stages_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"sigs.k8s.io/json"
	"sigs.k8s.io/kwok/kustomize/stage/node/fast"
	"sigs.k8s.io/kwok/kustomize/stage/node/heartbeat"
	heartbeatwithlease "sigs.k8s.io/kwok/kustomize/stage/node/heartbeat-with-lease"
	"sigs.k8s.io/kwok/pkg/apis/internalversion"
	kwokv1alpha1 "sigs.k8s.io/kwok/pkg/apis/v1alpha1"
	"sigs.k8s.io/kwok/pkg/utils/gotpl"
	"sigs.k8s.io/kwok/pkg/utils/lifecycle"
	"sigs.k8s.io/yaml"

	"github.com/kwok-dra/kwok-dra/stages/node/chaos"
	"github.com/kwok-dra/kwok-dra/stages/node/general"
)

const pluginRegistered = "dra.kwok.x-k8s.io/PluginRegistered"

var (
	// folders are those that hold Stages, and those that could.
	folders = []string{"node/fast", "node/general", "node/chaos"}

	// notStages are the other YAML files in the folders.
	notStages = []string{"kustomization.yaml", "kwok-dra-configuration.yaml"}

	generalStages = []string{general.NodeDRAPluginRegister, general.NodeDRAPluginUnregister, general.NodeDRAPluginWipe}
	chaosStages   = []string{chaos.NodeDRAPluginCrash, chaos.NodeKubeletRestart, chaos.NodeKubeletRestartReset}

	kwokFast      = []string{fast.DefaultNodeInit, heartbeatwithlease.DefaultNodeHeartbeatWithLease}
	kwokHeartbeat = []string{fast.DefaultNodeInit, heartbeat.DefaultNodeHeartbeat}
)

// kwokNotReady is kwok's own chaos Stage for nodes, which kwok does not embed.
var kwokNotReady = sync.OnceValues(func() (string, error) {
	dir, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "sigs.k8s.io/kwok").Output()
	if err != nil {
		return "", err
	}
	text, err := os.ReadFile(filepath.Join(strings.TrimSpace(string(dir)), "kustomize/stage/node/chaos/node-not-ready.yaml"))
	return string(text), err
})

// stageFiles lists the Stage files of a folder.
func stageFiles(t *testing.T, folder string) []string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(folder, "*.yaml"))
	require.NoError(t, err)
	stages := []string{}
	for _, file := range files {
		if !slices.Contains(notStages, filepath.Base(file)) {
			stages = append(stages, file)
		}
	}
	return stages
}

func stageName(file string) string {
	return strings.TrimSuffix(filepath.Base(file), ".yaml")
}

func readFile(t *testing.T, file string) string {
	t.Helper()
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	return string(text)
}

// decode is strict: no field that kwok does not know, in the right case.
func decode(t *testing.T, text string, into any) {
	t.Helper()
	data, err := yaml.YAMLToJSONStrict([]byte(text))
	require.NoError(t, err)
	strict, err := json.UnmarshalStrict(data, into)
	require.NoError(t, err)
	require.Empty(t, strict)
}

func decodeStage(t *testing.T, text string) *kwokv1alpha1.Stage {
	t.Helper()
	stage := &kwokv1alpha1.Stage{}
	decode(t, text, stage)
	return stage
}

// newLifecycle is what kwok makes of the Stages when it starts.
func newLifecycle(t *testing.T, texts ...[]string) lifecycle.Lifecycle {
	t.Helper()
	var stages []*internalversion.Stage
	for _, list := range texts {
		for _, text := range list {
			stage, err := internalversion.ConvertToInternalStage(decodeStage(t, text))
			require.NoError(t, err)
			stages = append(stages, stage)
		}
	}
	compiled, err := lifecycle.NewLifecycle(stages)
	require.NoError(t, err)
	return compiled
}

// newRenderer renders templates as kwok does for Nodes, at the given time.
func newRenderer(now func() time.Time) gotpl.Renderer {
	return gotpl.NewRenderer(gotpl.FuncMap{
		"NodeIP":   func() string { return "10.0.0.1" },
		"NodeName": func() string { return "kwok" },
		"NodePort": func() int { return 10247 },
		"Now":      func() string { return now().Format(time.RFC3339Nano) },
		"now":      now,
	})
}
