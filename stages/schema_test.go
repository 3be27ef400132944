package stages_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"sigs.k8s.io/kwok/pkg/apis/internalversion"
	"sigs.k8s.io/kwok/pkg/utils/expression"

	"github.com/kwok-dra/kwok-dra/internal/config"
	"github.com/kwok-dra/kwok-dra/stages/node/general"
	podchaos "github.com/kwok-dra/kwok-dra/stages/pod/chaos"
	podgeneral "github.com/kwok-dra/kwok-dra/stages/pod/general"
)

// oldStage has the fields of a Stage in kwok 0.6.1 that 0.7 and 0.8 have too,
// as far as the Stages here need them. Newer ones, such as steps, jq and cel, an
// older API server drops without a word.
type oldStage struct {
	APIVersion string        `json:"apiVersion"`
	Kind       string        `json:"kind"`
	Metadata   oldObjectMeta `json:"metadata"`
	Spec       oldStageSpec  `json:"spec"`
}

type oldObjectMeta struct {
	Name string `json:"name"`
}

type oldStageSpec struct {
	ResourceRef oldResourceRef `json:"resourceRef"`
	Selector    oldSelector    `json:"selector"`
	Weight      int            `json:"weight"`
	WeightFrom  oldFrom        `json:"weightFrom"`
	Delay       oldDelay       `json:"delay"`
	Next        oldNext        `json:"next"`
}

type oldResourceRef struct {
	APIGroup string `json:"apiGroup"`
	Kind     string `json:"kind"`
}

type oldSelector struct {
	MatchExpressions []oldRequirement `json:"matchExpressions"`
}

type oldRequirement struct {
	Key      string   `json:"key"`
	Operator string   `json:"operator"`
	Values   []string `json:"values"`
}

type oldDelay struct {
	DurationMilliseconds       int64   `json:"durationMilliseconds"`
	DurationFrom               oldFrom `json:"durationFrom"`
	JitterDurationMilliseconds int64   `json:"jitterDurationMilliseconds"`
	JitterDurationFrom         oldFrom `json:"jitterDurationFrom"`
}

type oldFrom struct {
	ExpressionFrom string `json:"expressionFrom"`
}

type oldNext struct {
	Event          oldEvent `json:"event"`
	StatusTemplate string   `json:"statusTemplate"`
	Delete         bool     `json:"delete"`
}

type oldEvent struct {
	Type    string `json:"type"`
	Reason  string `json:"reason"`
	Message string `json:"message"`
}

// Every Stage must be one that kwok 0.6 understands whole, and every expression
// must compile: kwok accepts a Stage with a bad one, and 0.8 crashes over it.
func TestStagesAreForEveryKwok(t *testing.T) {
	t.Parallel()
	for _, folder := range folders {
		for _, file := range stageFiles(t, folder) {
			t.Run(file, func(t *testing.T) {
				t.Parallel()
				stage := oldStage{}
				decode(t, readFile(t, file), &stage)
				require.Equal(t, "kwok.x-k8s.io/v1alpha1", stage.APIVersion)
				require.Equal(t, "Stage", stage.Kind)
				kind := "Node"
				if strings.HasPrefix(folder, "pod/") {
					kind = "Pod"
				} else {
					require.Positive(t, stage.Spec.Weight, "kwok's heartbeat, weight 0, must not be picked instead")
				}
				require.Equal(t, oldResourceRef{APIGroup: "v1", Kind: kind}, stage.Spec.ResourceRef)
				require.NotEqual(t, stage.Spec.Next.Delete, stage.Spec.Next.StatusTemplate != "", "either")
				requireCompiles(t, &stage.Spec)
			})
		}
	}
}

func requireCompiles(t *testing.T, spec *oldStageSpec) {
	t.Helper()
	require.NotEmpty(t, spec.Selector.MatchExpressions)
	for _, match := range spec.Selector.MatchExpressions {
		_, err := expression.NewRequirement(match.Key, internalversion.SelectorOperator(match.Operator), match.Values)
		require.NoError(t, err, match.Key)
	}
	for _, from := range []oldFrom{spec.WeightFrom, spec.Delay.DurationFrom, spec.Delay.JitterDurationFrom} {
		if from.ExpressionFrom == "" {
			continue
		}
		_, err := expression.NewQuery(from.ExpressionFrom)
		require.NoError(t, err, from.ExpressionFrom)
	}
}

// The configuration is kwok-dra's: it is read, and compiled, as kwok-dra does.
func TestConfigurationIsValid(t *testing.T) {
	t.Parallel()
	for _, texts := range [][]string{
		{general.KwokDRAConfiguration},
		{general.KwokDRAConfiguration, podgeneral.KwokDRAConfiguration},
		{podchaos.KwokDRAConfiguration},
		{general.KwokDRAConfiguration, podchaos.KwokDRAConfiguration},
	} {
		require.NotNil(t, configuration(t, texts...).PrepareWhen)
	}
}

// configuration is what kwok-dra makes of documents that it is given together.
func configuration(t *testing.T, texts ...string) *config.Set {
	t.Helper()
	documents, err := config.Decode("kwok-dra-configuration.yaml", []byte(strings.Join(texts, "---\n")))
	require.NoError(t, err)
	store := config.NewStore("test")
	require.NoError(t, store.Replace("test", documents))
	return store.Current()
}
