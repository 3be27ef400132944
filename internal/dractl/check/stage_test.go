package check

import (
	"testing"

	"github.com/stretchr/testify/require"
	nodefast "sigs.k8s.io/kwok/kustomize/stage/node/fast"
	nodeheartbeat "sigs.k8s.io/kwok/kustomize/stage/node/heartbeat"
	podfast "sigs.k8s.io/kwok/kustomize/stage/pod/fast"
	kwokv1alpha1 "sigs.k8s.io/kwok/pkg/apis/v1alpha1"
	"sigs.k8s.io/yaml"
)

func stageOf(t *testing.T, text string) *kwokv1alpha1.Stage {
	t.Helper()
	stage := &kwokv1alpha1.Stage{}
	require.NoError(t, yaml.UnmarshalStrict([]byte(text), stage))
	return stage
}

// TestCheckStageTakesKwoksOwn: kwok's own Stages have all there is.
func TestCheckStageTakesKwoksOwn(t *testing.T) {
	t.Parallel()
	for name, text := range map[string]string{
		"node-initialize": nodefast.DefaultNodeInit,
		"node-heartbeat":  nodeheartbeat.DefaultNodeHeartbeat,
		"pod-ready":       podfast.DefaultPodReady,
		"pod-complete":    podfast.DefaultPodComplete,
	} {
		require.Empty(t, checkStage(stageOf(t, text)), name)
	}
}

func TestCheckStage(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct{ spec, want string }{
		"nothing wrong":            {"resourceRef: {kind: Pod}, selector: {}", ""},
		"another kind":             {"resourceRef: {apiGroup: example.com/v1, kind: Thing}, selector: {matchExpressions: [{cel: {expression: self.spec.x == 1}}]}", ""},
		"no kind":                  {"selector: {}", "spec.resourceRef.kind"},
		"no selector":              {"resourceRef: {kind: Pod}", "spec.selector"},
		"weight":                   {"resourceRef: {kind: Pod}, selector: {}, weight: -1", "spec.weight"},
		"jq":                       {"resourceRef: {kind: Pod}, selector: {matchExpressions: [{jq: {key: '.a |', operator: Exists}}]}", "spec.selector.matchExpressions[0]"},
		"operator":                 {"resourceRef: {kind: Pod}, selector: {matchExpressions: [{key: .a, operator: in, values: [b]}]}", "spec.selector.matchExpressions[0]"},
		"cel":                      {"resourceRef: {kind: Pod}, selector: {matchExpressions: [{cel: {expression: self.spec.nodename == ''}}]}", "spec.selector.matchExpressions[0]"},
		"weight from":              {"resourceRef: {kind: Pod}, selector: {}, weightFrom: {expressionFrom: '.a['}", "spec.weightFrom.expressionFrom"},
		"weight from none":         {"resourceRef: {kind: Pod}, selector: {}, weightFrom: {}", "spec.weightFrom"},
		"delay":                    {"resourceRef: {kind: Pod}, selector: {}, delay: {durationMilliseconds: -1}", "spec.delay.durationMilliseconds"},
		"delay from jq":            {"resourceRef: {kind: Pod}, selector: {}, delay: {durationFrom: {jq: {expression: '.a['}}}", "spec.delay.durationFrom.jq.expression"},
		"delay from cel":           {"resourceRef: {kind: Pod}, selector: {}, delay: {durationFrom: {cel: {expression: 'self.'}}}", "spec.delay.durationFrom.cel.expression"},
		"jitter from cel":          {"resourceRef: {kind: Pod}, selector: {}, delay: {jitterDurationFrom: {cel: {expression: 'duration(\"1s\")'}}}", "spec.delay.jitterDurationFrom.cel"},
		"status template":          {"resourceRef: {kind: Pod}, selector: {}, next: {statusTemplate: '{{ if }}'}", "spec.next.statusTemplate"},
		"function":                 {"resourceRef: {kind: Node}, selector: {}, next: {statusTemplate: '{{ PodIP }}'}", "spec.next.statusTemplate"},
		"patch template":           {"resourceRef: {kind: Pod}, selector: {}, next: {patches: [{template: '{{ end }}'}]}", "spec.next.patches[0].template"},
		"patch type":               {"resourceRef: {kind: Pod}, selector: {}, steps: [{patch: {type: Merge, template: a}}]", "spec.steps[0].patch.type"},
		"apply template":           {"resourceRef: {kind: Pod}, selector: {}, steps: [{}, {apply: {template: '{{'}}]", "spec.steps[1].apply.template"},
		"event type":               {"resourceRef: {kind: Pod}, selector: {}, steps: [{event: {type: warning}}]", "spec.steps[0].event.type"},
		"everything lacks a field": {"resourceRef: {kind: Pod}, selector: {}, next: {statusTemplate: '{{ index .spec.containers 3 }}'}", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			errs := checkStage(stageOf(t, "metadata: {name: a}\nspec: {"+test.spec+"}"))
			if test.want == "" {
				require.Empty(t, errs)
				return
			}
			require.Len(t, errs, 1, "%v", errs)
			require.Equal(t, test.want, errs[0].Field)
		})
	}
}
