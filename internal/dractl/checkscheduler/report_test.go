package checkscheduler

import (
	"testing"

	"github.com/stretchr/testify/require"
	resourcev1 "k8s.io/api/resource/v1"

	"github.com/kwok-dra/kwok-dra/internal/dractl/checkscheduler/story"
	"github.com/kwok-dra/kwok-dra/pkg/drajudge"
)

// Each statement that depends on a feature exists: a renamed one would be judged where it cannot be tried.
func TestFeaturesOfStatements(t *testing.T) {
	t.Parallel()
	all := drajudge.Statements()
	skipped := map[string]string{}
	addSkipped(skipped, &story.Features{}, "the API server does not have it")
	require.Len(t, skipped, 14)
	require.Equal(t, 14, countSkipped(newReport("s", "v", 1, skipped, all)))
	with := newReport("s", "v", 1, nil, all)
	require.Zero(t, countSkipped(with))
	require.Len(t, with.Results, len(drajudge.Statements()))
}

// What the user leaves out is in no story, and is told apart from what the API server lacks.
func TestLeaveOutFeatures(t *testing.T) {
	t.Parallel()
	f := story.Features{AdminAccess: true, DeviceTaints: true, TaintRuleVersion: "v1", ExtendedResources: true, ConsumableCapacity: true}
	skipped := map[string]string{}
	addSkipped(skipped, &f, "not served")
	require.NoError(t, leaveOutFeatures(&f, []string{"device-taints", "admin-access"}))
	addSkipped(skipped, &f, "left out")
	require.Equal(t, story.Features{ExtendedResources: true, ConsumableCapacity: true}, f)
	require.Equal(t, map[string]string{
		"taints-tolerated": "left out", "tolerations-copied": "left out", "admin-namespace": "left out", "admin-requested": "left out",
		"counters-total": "not served", "first-available-one": "not served", "binding-conditions-copied": "not served", "bound-after-conditions": "not served",
	}, skipped)
	require.ErrorContains(t, leaveOutFeatures(&f, []string{"taints"}), `parse --without "taints": must be of admin-access, binding-conditions,`)
}

// Labels are on Pods, on claims, and on those that come from templates; those of the story itself stay.
func TestLabelWorkloads(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for seed := range int64(20) {
		s := story.New("story", seed, story.Features{})
		labelWorkloads(s, map[string]string{"queue": "a"})
		for _, step := range s.Steps {
			for _, object := range step.Create {
				labels := object.GetLabels()
				kind := object.GetObjectKind().GroupVersionKind().Kind
				if template, isTemplate := object.(*resourcev1.ResourceClaimTemplate); isTemplate {
					labels = template.Spec.Labels
				} else {
					require.Equal(t, "story", labels[story.Label])
				}
				isLabelled := kind == "Pod" || kind == "ResourceClaim" || kind == "ResourceClaimTemplate"
				require.Equal(t, isLabelled, labels["queue"] == "a", kind)
				seen[kind] = true
			}
		}
	}
	require.Subset(t, seen, map[string]bool{"Pod": true, "ResourceClaim": true, "ResourceClaimTemplate": true, "Node": true})
}

func countSkipped(r *Report) int {
	skipped := 0
	for i := range r.Results {
		if r.Results[i].Outcome == "skipped" {
			skipped++
		}
	}
	return skipped
}
