package classes

import (
	"testing"

	"github.com/stretchr/testify/require"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kwok-dra/kwok-dra/internal/config"
)

// classOf is a DeviceClass with a CEL expression, of which the labels are pairs.
func classOf(expression string, labels ...string) *resourcev1.DeviceClass {
	class := &resourcev1.DeviceClass{
		ObjectMeta: metav1.ObjectMeta{Name: "gpu.example.com"},
		Spec: resourcev1.DeviceClassSpec{
			Selectors:            []resourcev1.DeviceSelector{{CEL: &resourcev1.CELDeviceSelector{Expression: expression}}},
			ExtendedResourceName: new("example.com/gpu"),
		},
	}
	for i := 0; i < len(labels); i += 2 {
		if class.Labels == nil {
			class.Labels = map[string]string{}
		}
		class.Labels[labels[i]] = labels[i+1]
	}
	return class
}

const managedBy = "dra.kwok.x-k8s.io/managed-by"

func TestPlan(t *testing.T) {
	t.Parallel()
	want := &config.Class{DeviceClass: *classOf("true", "team", "ml")}
	for name, test := range map[string]struct {
		want     *config.Class
		existing *resourcev1.DeviceClass
		verb     verb
		labels   map[string]string
	}{
		"nothing":                    {nil, nil, nothing, nil},
		"someone else's, not wanted": {nil, classOf("true"), nothing, nil},
		"ours, not wanted":           {nil, classOf("true", managedBy, "kwok-dra"), remove, map[string]string{managedBy: "kwok-dra"}},
		"missing":                    {want, nil, create, map[string]string{managedBy: "kwok-dra", "team": "ml"}},
		"someone else's":             {want, classOf("true", "team", "ml"), leave, map[string]string{"team": "ml"}},
		"another's":                  {want, classOf("true", managedBy, "another"), leave, map[string]string{managedBy: "another"}},
		"as it should be":            {want, classOf("true", managedBy, "kwok-dra", "team", "ml"), nothing, nil},
		"with someone's label":       {want, classOf("true", managedBy, "kwok-dra", "team", "ml", "mine", "x"), nothing, nil},
		"without a label":            {want, classOf("true", managedBy, "kwok-dra", "mine", "x"), update, map[string]string{managedBy: "kwok-dra", "team": "ml", "mine": "x"}},
		"edited":                     {want, classOf("false", managedBy, "kwok-dra", "team", "ml"), update, map[string]string{managedBy: "kwok-dra", "team": "ml"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			next := planClass("", test.want, test.existing, true)
			require.Equal(t, test.verb, next.verb)
			if next.class == nil {
				return
			}
			require.Equal(t, test.labels, next.class.Labels)
			if next.verb == create || next.verb == update {
				require.Equal(t, want.Spec, next.class.Spec)
				require.Equal(t, nothing, planClass("", test.want, next.class, true).verb, "one step is enough")
			}
		})
	}
	require.Equal(t, map[string]string{"team": "ml"}, want.Labels, "what is wanted is not written to")
}

// TestPlanAsksNowAndThen for what the API server drops, and what else is to be changed
// does not wait.
func TestPlanAsksNowAndThen(t *testing.T) {
	t.Parallel()
	want := &config.Class{DeviceClass: *classOf("true")}
	dropped, edited := classOf("true", managedBy, "kwok-dra"), classOf("false", managedBy, "kwok-dra")
	dropped.Spec.ExtendedResourceName, edited.Spec.ExtendedResourceName = nil, nil
	require.Equal(t, nothing, planClass("", want, dropped, false).verb)
	require.Equal(t, update, planClass("", want, dropped, true).verb)
	require.Equal(t, update, planClass("", want, edited, false).verb)
	require.Equal(t, want.Spec, planClass("", want, edited, false).class.Spec)
}
