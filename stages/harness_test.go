package stages_test

import (
	"context"
	stdjson "encoding/json"
	"fmt"
	"maps"
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
	kwokpodfast "sigs.k8s.io/kwok/kustomize/stage/pod/fast"
	"sigs.k8s.io/kwok/pkg/apis/internalversion"
	kwokv1alpha1 "sigs.k8s.io/kwok/pkg/apis/v1alpha1"
	"sigs.k8s.io/kwok/pkg/utils/gotpl"
	"sigs.k8s.io/kwok/pkg/utils/lifecycle"
	"sigs.k8s.io/yaml"

	"github.com/kwok-dra/kwok-dra/stages/node/chaos"
	"github.com/kwok-dra/kwok-dra/stages/node/features"
	"github.com/kwok-dra/kwok-dra/stages/node/general"
	podchaos "github.com/kwok-dra/kwok-dra/stages/pod/chaos"
	podfast "github.com/kwok-dra/kwok-dra/stages/pod/fast"
	podgeneral "github.com/kwok-dra/kwok-dra/stages/pod/general"
)

const (
	pluginRegistered   = "dra.kwok.x-k8s.io/PluginRegistered"
	prepareResources   = "dra.kwok.x-k8s.io/PrepareResources"
	unprepareResources = "dra.kwok.x-k8s.io/UnprepareResources"
)

var (
	// folders are those that hold Stages, and those that could.
	folders = []string{"node/fast", "node/general", "node/chaos", "node/features", "pod/fast", "pod/general", "pod/chaos"}

	// notStages are the other YAML files in the folders.
	notStages = []string{"kustomization.yaml", "kwok-dra-configuration.yaml"}

	generalStages = []string{general.NodeDRAPluginRegister, general.NodeDRAPluginUnregister, general.NodeDRAPluginWipe}
	chaosStages   = []string{chaos.NodeDRAPluginCrash, chaos.NodeKubeletRestart, chaos.NodeKubeletRestartReset, chaos.NodeUnreachable, chaos.NodeCrash, chaos.NodeBoot}
	featureStages = []string{features.NodeDeclareFeatures}

	podFastStages    = []string{podfast.PodReady}
	podGeneralStages = []string{
		podgeneral.PodCreate, podgeneral.PodPrepare, podgeneral.PodInitContainerRunning,
		podgeneral.PodInitContainerCompleted, podgeneral.PodReady, podgeneral.PodComplete, podgeneral.PodUnprepare,
		podgeneral.PodTerminate, podgeneral.PodDelete,
	}
	podChaosStages = []string{podchaos.PodPrepareFail, podchaos.PodPrepareFailReset, podchaos.PodUnprepareFail, podchaos.PodImagePullFail}

	kwokFast      = []string{fast.DefaultNodeInit, heartbeatwithlease.DefaultNodeHeartbeatWithLease}
	kwokHeartbeat = []string{fast.DefaultNodeInit, heartbeat.DefaultNodeHeartbeat}

	// kwokPodFast are those of kwok's fast Pod Stages that ours leave alone, which
	// kwokPodReady is not.
	kwokPodFast  = []string{kwokpodfast.DefaultPodComplete, kwokpodfast.DefaultPodDelete}
	kwokPodReady = []string{kwokpodfast.DefaultPodReady}
)

var kwokDir = sync.OnceValues(func() (string, error) { return downloadKwok(context.Background()) })

// downloadKwok returns the directory of kwok's module, which is downloaded if need
// be. "go list -m" prints nothing, and exits with 0, for one that is not there yet.
func downloadKwok(ctx context.Context) (string, error) {
	download, err := exec.CommandContext(ctx, "go", "mod", "download", "-json", "sigs.k8s.io/kwok").Output()
	if err != nil {
		return "", fmt.Errorf("download kwok: %w", err)
	}
	var module struct{ Dir string }
	if err := stdjson.Unmarshal(download, &module); err != nil || module.Dir == "" {
		return "", fmt.Errorf("find where kwok was downloaded to in %q: %w", download, err)
	}
	return module.Dir, nil
}

// TestKwokIntoEmptyModuleCache is what happens on a fresh machine.
func TestKwokIntoEmptyModuleCache(t *testing.T) {
	cache := t.TempDir()
	t.Setenv("GOMODCACHE", cache)
	t.Setenv("GOFLAGS", os.Getenv("GOFLAGS")+" -modcacherw") // else the files cannot be removed
	dir, err := downloadKwok(t.Context())
	require.NoError(t, err)
	require.Contains(t, dir, cache)
	require.FileExists(t, filepath.Join(dir, "kustomize", "stage", "node", "fast", "node-initialize.yaml"))
}

// kwokStages are Stages of kwok's own that it does not embed.
func kwokStages(t *testing.T, folder string, names ...string) []string {
	t.Helper()
	dir, err := kwokDir()
	require.NoError(t, err)
	stages := []string{}
	for _, name := range names {
		stages = append(stages, readFile(t, filepath.Join(dir, "kustomize/stage", folder, name+".yaml")))
	}
	return stages
}

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

// newRenderer renders templates at the given time as kwok does, for Nodes and for
// Pods. The functions are those of kwok 0.6 and any more that are given.
func newRenderer(now func() time.Time, more ...gotpl.FuncMap) gotpl.Renderer {
	funcs := gotpl.FuncMap{
		"NodeIP":     func() string { return nodeIP },
		"NodeName":   func() string { return "kwok" },
		"NodePort":   func() int { return 10247 },
		"NodeIPWith": func(string) string { return nodeIP },
		"PodIP":      func() string { return podIP },
		"PodIPWith":  podIPWith,
		"Now":        func() string { return now().Format(time.RFC3339Nano) },
		"now":        now,
	}
	for _, add := range more {
		maps.Copy(funcs, add)
	}
	return gotpl.NewRenderer(funcs)
}

const (
	nodeIP = "10.0.0.1"
	podIP  = "10.244.0.7"
)

func podIPWith(_ string, hostNetwork bool, _, _, _ string) string {
	if hostNetwork {
		return nodeIP
	}
	return podIP
}

// kwok08 are the functions that kwok has only since 0.8.
var kwok08 = gotpl.FuncMap{
	"NodeIPsWith": func(string) []string { return []string{nodeIP} },
	"PodIPsWith": func(node string, hostNetwork bool, uid, name, namespace string) []string {
		return []string{podIPWith(node, hostNetwork, uid, name, namespace)}
	},
}
