package stages_test

import (
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kwok-dra/kwok-dra/stages/node/chaos"
	"github.com/kwok-dra/kwok-dra/stages/node/features"
	"github.com/kwok-dra/kwok-dra/stages/node/general"
	podchaos "github.com/kwok-dra/kwok-dra/stages/pod/chaos"
	podfast "github.com/kwok-dra/kwok-dra/stages/pod/fast"
	podgeneral "github.com/kwok-dra/kwok-dra/stages/pod/general"
)

// knob is a label or annotation that drives a Stage: the Stage's name, and what
// an annotation sets.
var knob = regexp.MustCompile(`([a-z-]+)\.stage\.kwok\.x-k8s\.io(/[a-z-]+)?`)

func TestFoldersAreKnown(t *testing.T) {
	t.Parallel()
	have, err := filepath.Glob("*/*")
	require.NoError(t, err)
	have = slices.DeleteFunc(have, func(name string) bool { return strings.HasSuffix(name, ".go") })
	require.ElementsMatch(t, folders, have)
}

func TestKustomizationListsEveryStage(t *testing.T) {
	t.Parallel()
	for _, folder := range folders {
		t.Run(folder, func(t *testing.T) {
			t.Parallel()
			var kustomization struct {
				APIVersion string   `json:"apiVersion"`
				Kind       string   `json:"kind"`
				Resources  []string `json:"resources"`
			}
			decode(t, readFile(t, filepath.Join(folder, "kustomization.yaml")), &kustomization)
			require.Equal(t, "kustomize.config.k8s.io/v1beta1", kustomization.APIVersion)
			require.Equal(t, "Kustomization", kustomization.Kind)
			listed := []string{}
			for _, resource := range kustomization.Resources {
				listed = append(listed, filepath.Join(folder, resource))
			}
			require.ElementsMatch(t, stageFiles(t, folder), listed)
		})
	}
}

func TestEmbeddedIsTheFile(t *testing.T) {
	t.Parallel()
	embedded := map[string]string{
		"node/general/node-dra-plugin-register.yaml":   general.NodeDRAPluginRegister,
		"node/general/node-dra-plugin-unregister.yaml": general.NodeDRAPluginUnregister,
		"node/general/node-dra-plugin-wipe.yaml":       general.NodeDRAPluginWipe,
		"node/general/kwok-dra-configuration.yaml":     general.KwokDRAConfiguration,
		"node/chaos/node-dra-plugin-crash.yaml":        chaos.NodeDRAPluginCrash,
		"node/chaos/node-kubelet-restart.yaml":         chaos.NodeKubeletRestart,
		"node/chaos/node-kubelet-restart-reset.yaml":   chaos.NodeKubeletRestartReset,
		"node/chaos/node-unreachable.yaml":             chaos.NodeUnreachable,
		"node/chaos/node-crash.yaml":                   chaos.NodeCrash,
		"node/chaos/node-boot.yaml":                    chaos.NodeBoot,
		"node/features/node-declare-features.yaml":     features.NodeDeclareFeatures,

		"pod/fast/pod-ready.yaml":                       podfast.PodReady,
		"pod/general/pod-create.yaml":                   podgeneral.PodCreate,
		"pod/general/pod-prepare.yaml":                  podgeneral.PodPrepare,
		"pod/general/pod-init-container-running.yaml":   podgeneral.PodInitContainerRunning,
		"pod/general/pod-init-container-completed.yaml": podgeneral.PodInitContainerCompleted,
		"pod/general/pod-ready.yaml":                    podgeneral.PodReady,
		"pod/general/pod-complete.yaml":                 podgeneral.PodComplete,
		"pod/general/pod-unprepare.yaml":                podgeneral.PodUnprepare,
		"pod/general/pod-terminate.yaml":                podgeneral.PodTerminate,
		"pod/general/pod-delete.yaml":                   podgeneral.PodDelete,
		"pod/general/kwok-dra-configuration.yaml":       podgeneral.KwokDRAConfiguration,
		"pod/chaos/pod-prepare-fail.yaml":               podchaos.PodPrepareFail,
		"pod/chaos/pod-prepare-fail-reset.yaml":         podchaos.PodPrepareFailReset,
		"pod/chaos/pod-unprepare-fail.yaml":             podchaos.PodUnprepareFail,
		"pod/chaos/pod-image-pull-fail.yaml":            podchaos.PodImagePullFail,
		"pod/chaos/kwok-dra-configuration.yaml":         podchaos.KwokDRAConfiguration,
	}
	for file, text := range embedded {
		require.Equal(t, readFile(t, file), text, file)
	}
	for _, folder := range folders {
		for _, file := range stageFiles(t, folder) {
			require.Contains(t, embedded, file)
		}
	}
}

func TestEveryStageIsGolden(t *testing.T) {
	t.Parallel()
	for _, folder := range folders {
		for _, file := range stageFiles(t, folder) {
			t.Run(file, func(t *testing.T) {
				t.Parallel()
				name := stageName(file)
				require.Equal(t, name, decodeStage(t, readFile(t, file)).Name, "named like its file")
				input := filepath.Join(folder, "testdata", name+".input.yaml")
				require.FileExists(t, input)
				var output golden
				decode(t, readFile(t, outputOf(input)), &output)
				require.Len(t, output.Stages, 1, "plays alone")
				require.Equal(t, name, output.Stages[0].Stage)
			})
		}
	}
}

func TestGoldenFilesArePairs(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("*/*/testdata/*.yaml")
	require.NoError(t, err)
	for _, file := range files {
		base := strings.TrimSuffix(strings.TrimSuffix(file, ".input.yaml"), ".output.yaml")
		require.FileExists(t, base+".input.yaml")
		require.FileExists(t, base+".output.yaml")
	}
}

// Labels and annotations are named after a Stage, an annotation after the Stage
// that reads it, and the section of the folder in docs/reference/stages.md names
// each.
func TestKnobsAreNamedAfterStages(t *testing.T) {
	t.Parallel()
	var names []string
	for _, folder := range folders {
		for _, file := range stageFiles(t, folder) {
			names = append(names, stageName(file))
		}
	}
	page := readFile(t, filepath.Join("..", "docs", "reference", "stages.md"))
	for _, folder := range folders {
		section := sectionOf(t, page, folder)
		for _, file := range stageFiles(t, folder) {
			require.Contains(t, section, "`"+stageName(file)+"`")
			for _, found := range knob.FindAllStringSubmatch(readFile(t, file), -1) {
				name, setting := found[1], found[2]
				require.Contains(t, names, name, file)
				if setting != "" {
					require.Equal(t, stageName(file), name, file)
					require.Contains(t, section, "`"+setting+"`", file)
				}
			}
		}
	}
}

// sectionOf is the section of a page about a folder: "Node general" is about
// node/general.
func sectionOf(t *testing.T, page, folder string) string {
	t.Helper()
	heading := "\n## " + strings.ToUpper(folder[:1]) + strings.Replace(folder[1:], "/", " ", 1) + "\n"
	_, section, found := strings.Cut(page, heading)
	require.True(t, found, "docs/reference/stages.md has no section %q", heading)
	section, _, _ = strings.Cut(section, "\n## ")
	return section
}
