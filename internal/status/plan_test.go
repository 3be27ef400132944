package status

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/kwok-dra/kwok-dra/internal/config"
	"github.com/kwok-dra/kwok-dra/internal/resourceslice"
	"github.com/kwok-dra/kwok-dra/pkg/api/v1alpha1"
)

// plannedStatus returns the status that is written for a template which shows another one, or nil.
func plannedStatus(t *testing.T, template config.Acceptance, shown v1alpha1.ResourcePoolTemplateStatus, all Totals, now metav1.Time) *v1alpha1.ResourcePoolTemplateStatus {
	t.Helper()
	source, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&v1alpha1.ResourcePoolTemplate{Status: shown})
	require.NoError(t, err)
	template.Source = &unstructured.Unstructured{Object: source}
	patch := planTemplate("", template, all, now)
	if patch == nil {
		return nil
	}
	return new(patch.Body["status"].(v1alpha1.ResourcePoolTemplateStatus))
}

func TestPlan(t *testing.T) {
	t.Parallel()
	refused := errors.New("bad")
	for name, test := range map[string]struct {
		err                            error
		all                            Totals
		accepted, published, reason    string
		acceptedMessage, publishedText string
	}{
		"published":        {nil, Totals{Published: 2, Outcome: resourceslice.Outcome{Slices: 4, Devices: 16}}, "True", "True", "Published", "the newest version is in force", "published on 2 nodes"},
		"on one":           {nil, Totals{Published: 1, Waiting: 3}, "True", "True", "Published", "", "published on 1 node, waiting on 3"},
		"hidden on one":    {nil, Totals{Published: 1, Hidden: 2, Outcome: resourceslice.Outcome{HiddenBy: "a"}}, "True", "True", "Published", "", "published on 1 node, hidden on 2 by template a of a higher priority"},
		"hidden":           {nil, Totals{Hidden: 2, Outcome: resourceslice.Outcome{HiddenBy: "a"}}, "True", "False", "Hidden", "", "template a has a higher priority on 2 nodes that this one selects"},
		"waiting":          {nil, Totals{Waiting: 1}, "True", "False", "Waiting", "", "publishWhen does not match yet on 1 node that it selects"},
		"no node":          {nil, Totals{}, "True", "False", "NoNode", "", "no fake node is selected"},
		"a near miss":      {nil, Totals{unselected: "template t selects 0 of 3 nodes"}, "True", "False", "NoNode", "", "template t selects 0 of 3 nodes"},
		"failing on one":   {nil, Totals{Published: 2, Failing: 1, Outcome: resourceslice.Outcome{Problem: errors.New("node n: bad")}}, "True", "False", "Failing", "", "node n: bad"},
		"failing on more":  {nil, Totals{Failing: 3, Outcome: resourceslice.Outcome{Problem: errors.New("node n: bad")}}, "True", "False", "Failing", "", "node n: bad (and so on 2 more)"},
		"refused":          {refused, Totals{}, "False", "False", "NotAccepted", "bad", "no version has been accepted"},
		"old one in force": {refused, Totals{Published: 1}, "False", "True", "Published", "bad", "published on 1 node"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			template := config.Acceptance{Generation: 3, Err: test.err}
			status := plannedStatus(t, template, v1alpha1.ResourcePoolTemplateStatus{}, test.all, metav1.Now())
			require.Equal(t, test.all.Published, status.Nodes)
			require.EqualValues(t, test.all.Slices, status.Slices)
			require.EqualValues(t, test.all.Devices, status.Devices)
			accepted := meta.FindStatusCondition(status.Conditions, v1alpha1.ConditionAccepted)
			published := meta.FindStatusCondition(status.Conditions, v1alpha1.ConditionPublished)
			require.EqualValues(t, test.accepted, accepted.Status)
			require.EqualValues(t, test.published, published.Status)
			require.Equal(t, test.reason, published.Reason)
			require.Equal(t, test.publishedText, published.Message)
			require.Contains(t, accepted.Message, test.acceptedMessage)
			require.EqualValues(t, 3, published.ObservedGeneration)

			require.Nil(t, plannedStatus(t, template, *status, test.all, metav1.NewTime(time.Now().Add(time.Hour))), "it is written only when it changes")
		})
	}
}

// TestPlanKeepsTransitionTimes: only another status is a transition.
func TestPlanKeepsTransitionTimes(t *testing.T) {
	t.Parallel()
	early, late := metav1.NewTime(time.Unix(1, 0)), metav1.NewTime(time.Unix(2, 0))
	status := plannedStatus(t, config.Acceptance{Generation: 1}, v1alpha1.ResourcePoolTemplateStatus{}, Totals{Published: 1}, early)
	status = plannedStatus(t, config.Acceptance{Generation: 2}, *status, Totals{Published: 5}, late)
	require.EqualValues(t, 5, status.Nodes)
	require.Equal(t, early, meta.FindStatusCondition(status.Conditions, v1alpha1.ConditionPublished).LastTransitionTime)
	status = plannedStatus(t, config.Acceptance{Generation: 2}, *status, Totals{}, late)
	require.Equal(t, late, meta.FindStatusCondition(status.Conditions, v1alpha1.ConditionPublished).LastTransitionTime)
}

// TestPlanKeepsForeignConditions: someone else may have conditions there.
func TestPlanKeepsForeignConditions(t *testing.T) {
	t.Parallel()
	given := v1alpha1.ResourcePoolTemplateStatus{Conditions: []metav1.Condition{{Type: "Mine", Status: "True"}}}
	status := plannedStatus(t, config.Acceptance{}, given, Totals{}, metav1.Now())
	require.Len(t, status.Conditions, 3)
}

func TestPlanCutsMessages(t *testing.T) {
	t.Parallel()
	status := plannedStatus(t, config.Acceptance{Err: errors.New(strings.Repeat("a", 40000))}, v1alpha1.ResourcePoolTemplateStatus{}, Totals{}, metav1.Now())
	require.Len(t, meta.FindStatusCondition(status.Conditions, v1alpha1.ConditionAccepted).Message, maxMessage)
}
