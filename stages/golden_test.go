package stages_test

import (
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/kwok/pkg/apis/internalversion"
	"sigs.k8s.io/kwok/pkg/utils/gotpl"
	"sigs.k8s.io/kwok/pkg/utils/lifecycle"
	"sigs.k8s.io/yaml"
)

var updateTestdata = flag.Bool("update-testdata", false, "write the golden files anew")

// goldenNow is the time at which every golden input is played.
var goldenNow = time.Date(2026, 1, 2, 15, 4, 5, 0, time.UTC)

// golden says what may be played on a Node or a Pod, out of the Stages that are
// used together.
type golden struct {
	Stages []goldenStage `json:"stages"`
}

type goldenStage struct {
	Stage       string          `json:"stage"`
	Weight      int64           `json:"weight"`
	Delay       []string        `json:"delay,omitempty"` // one, or the range
	Event       string          `json:"event,omitempty"` // its reason
	Subresource string          `json:"subresource,omitempty"`
	PatchType   string          `json:"patchType,omitempty"`
	Patch       json.RawMessage `json:"patch,omitempty"`
	Delete      bool            `json:"delete,omitempty"`
}

func TestGolden(t *testing.T) {
	t.Parallel()
	inputs, err := filepath.Glob("*/*/testdata/*.input.yaml")
	require.NoError(t, err)
	require.NotEmpty(t, inputs)
	for _, input := range inputs {
		t.Run(strings.TrimSuffix(input, ".input.yaml"), func(t *testing.T) {
			t.Parallel()
			got, err := yaml.Marshal(possible(t, input))
			require.NoError(t, err)
			output := outputOf(input)
			if *updateTestdata {
				require.NoError(t, os.WriteFile(output, got, 0o644))
			}
			require.Equal(t, readFile(t, output), string(got))
		})
	}
}

func outputOf(input string) string {
	return strings.TrimSuffix(input, ".input.yaml") + ".output.yaml"
}

// together are the Stages that are used together with those of a folder.
func together(folder string) [][]string {
	switch folder {
	case "node/general", "node/chaos":
		return [][]string{generalStages, chaosStages}
	case "node/features":
		return [][]string{featureStages}
	case "pod/fast":
		return [][]string{podFastStages, kwokPodFast, podChaosStages}
	case "pod/general", "pod/chaos":
		return [][]string{podGeneralStages, podChaosStages}
	}
	return nil
}

func possible(t *testing.T, input string) golden {
	t.Helper()
	folder := filepath.Dir(filepath.Dir(input))
	if strings.HasPrefix(folder, "node/") {
		node := &corev1.Node{}
		decode(t, readFile(t, input), node)
		return possibleOn(t, node, nil, together(folder)...)
	}
	pod := &corev1.Pod{}
	decode(t, readFile(t, input), pod)
	return possibleOn(t, pod, nil, together(folder)...)
}

func possibleOn[T object](t *testing.T, object T, more gotpl.FuncMap, texts ...[]string) golden {
	t.Helper()
	renderer := newRenderer(func() time.Time { return goldenNow }, more)
	event := &lifecycle.Event{Labels: object.GetLabels(), Annotations: object.GetAnnotations(), Data: object}
	stages, err := newLifecycle(t, texts...).ListAllPossible(t.Context(), event)
	require.NoError(t, err)
	result := golden{Stages: []goldenStage{}}
	for _, stage := range stages {
		result.Stages = append(result.Stages, playGolden(t, stage, event, renderer))
	}
	return result
}

func playGolden(t *testing.T, stage *lifecycle.Stage, event *lifecycle.Event, renderer gotpl.Renderer) goldenStage {
	t.Helper()
	result := goldenStage{Stage: stage.Name()}
	weight, _, err := stage.Weight(t.Context(), event)
	require.NoError(t, err)
	result.Weight = weight
	delays, _, err := stage.DelayRangePossible(t.Context(), event, goldenNow)
	require.NoError(t, err)
	for _, delay := range delays {
		result.Delay = append(result.Delay, delay.String())
	}
	_, err = stage.DoSteps(0, nil, event.Data, renderer, func(event *internalversion.StageEvent) error {
		result.Event = event.Reason
		return nil
	}, func() error {
		result.Delete = true
		return nil
	}, func(patch *lifecycle.Patch) error {
		require.Nil(t, result.Patch, "one patch, so that a Stage is played whole or not at all")
		result.Subresource, result.PatchType, result.Patch = patch.Subresource, string(patch.Type), patch.Data
		return nil
	}, nil)
	require.NoError(t, err)
	return result
}
